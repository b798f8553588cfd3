import { describe, expect, it } from 'vitest';
import { type Admission, AdmissionWindow, admissionLimit } from '../../src/workers/admission.js';
import { fc } from '../support/property.js';

function admitted(result: ReturnType<AdmissionWindow['tryAdmit']>): Admission {
  if (typeof result === 'string') throw new Error(`refused: ${result}`);
  return result;
}

describe('AdmissionWindow', () => {
  it('LM-33: admits up to the limit, then says full, and again after a release', () => {
    const window = new AdmissionWindow();
    const first = admitted(window.tryAdmit(2));
    admitted(window.tryAdmit(2));
    expect(window.tryAdmit(2)).toBe('full');
    first.release();
    expect(window.inUse).toBe(1);
    admitted(window.tryAdmit(2));
    expect(window.tryAdmit(2)).toBe('full');
  });

  it('LM-33: a request wider than the window never fits, one that fits later is told to wait', () => {
    const window = new AdmissionWindow();
    expect(window.tryAdmit(4, 5)).toBe('too_wide');
    const wide = admitted(window.tryAdmit(4, 3));
    expect(window.tryAdmit(4, 2)).toBe('full');
    admitted(window.tryAdmit(4, 1));
    wide.release();
    expect(window.inUse).toBe(1);
  });

  it('LM-33: no window, no gate; what is running counts once a window is known', () => {
    const window = new AdmissionWindow();
    for (let i = 0; i < 5; i++) admitted(window.tryAdmit(undefined, 2));
    expect(window.inUse).toBe(10);
    expect(window.tryAdmit(10)).toBe('full');
  });

  it('LM-33: a limit that shrinks refuses until enough was released', () => {
    const window = new AdmissionWindow();
    const all = Array.from({ length: 4 }, () => admitted(window.tryAdmit(4)));
    expect(window.tryAdmit(2)).toBe('full');
    for (const one of all.slice(0, 3)) one.release();
    expect(admitted(window.tryAdmit(2))).toBeDefined();
  });

  it('B26: a second release of the same admission changes nothing', () => {
    const window = new AdmissionWindow();
    const one = admitted(window.tryAdmit(10, 3));
    admitted(window.tryAdmit(10, 2));
    one.release();
    one.release();
    expect(window.inUse).toBe(2);
  });

  it('LB-42: a width that is no integer ≥ 1 is refused before anything is counted', () => {
    const window = new AdmissionWindow();
    for (const width of [0, -1, 1.5, Number.NaN, Infinity]) {
      expect(() => window.tryAdmit(4, width)).toThrowError(/^width: /);
    }
    expect(window.inUse).toBe(0);
  });

  it.each(['4', Number.NaN, null])('LB-42: a limit of %j is refused before anything is counted', (limit) => {
    const window = new AdmissionWindow();
    expect(() => window.tryAdmit(limit as never)).toThrow(/^limit: expected a number/);
    expect(window.inUse).toBe(0);
  });

  it('LM-33, B25: over any sequence, in use is the sum of the widths held and never above the limit', () => {
    const step = fc.oneof(
      fc.record({ take: fc.integer({ min: 1, max: 6 }) }),
      fc.record({ release: fc.nat({ max: 30 }) }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.array(step, { maxLength: 60 }), (limit, steps) => {
        const window = new AdmissionWindow();
        const taken: { admission: Admission; width: number; held: boolean }[] = [];
        const inUse = (): number => taken.reduce((sum, { width, held }) => sum + (held ? width : 0), 0);
        for (const one of steps) {
          if ('take' in one) {
            const expected = one.take > limit ? 'too_wide' : inUse() + one.take > limit ? 'full' : 'admitted';
            const result = window.tryAdmit(limit, one.take);
            expect(typeof result === 'string' ? result : 'admitted').toBe(expected);
            if (typeof result !== 'string') taken.push({ admission: result, width: one.take, held: true });
          } else {
            const lease = taken[one.release % Math.max(1, taken.length)];
            if (lease === undefined) continue;
            lease.admission.release();
            lease.held = false;
          }
          expect(window.inUse).toBe(inUse());
          expect(window.inUse).toBeLessThanOrEqual(limit);
        }
      }),
      { numRuns: 200, seed: 33 },
    );
  });
});

describe('admissionLimit', () => {
  const reported = { ranks: [{ maxRunningRequests: 8 }, { waitingRequests: 1 }, { maxRunningRequests: 8 }] };
  const label = (value: string): Map<string, string> => new Map([['max_running_requests', value]]);

  it('LM-33: the label, else the report, else no window', () => {
    for (const places of [1, 32, 128, 999_999_999_999_999]) {
      expect(admissionLimit(label(`${places}`), reported)).toBe(places);
    }
    expect(admissionLimit(new Map(), reported)).toBe(16);
    expect(admissionLimit(new Map(), { maxRunningRequests: 8 })).toBe(8);
    expect(admissionLimit(label('32'), undefined)).toBe(32);
    expect(admissionLimit(new Map(), undefined)).toBeUndefined();
  });

  it('LM-33: a label that is no positive integer counts as absent', () => {
    for (const value of ['0', '-1', '1.5', 'many', '', '1e3', '032', '9'.repeat(16), 32 as never]) {
      expect(admissionLimit(label(value), reported)).toBe(16);
    }
  });

  it('LM-33: a reported window of 0 is none, and so is one that cannot be read', () => {
    expect(admissionLimit(new Map(), { maxRunningRequests: 1 })).toBe(1);
    expect(admissionLimit(new Map(), { maxRunningRequests: 0 })).toBeUndefined();
    expect(admissionLimit(new Map(), { waitingRequests: 3 })).toBeUndefined();
    expect(admissionLimit(new Map(), { maxRunningRequests: 8, waitingRequests: Number.NaN })).toBeUndefined();
  });

  it.each([undefined, null, {}])('LB-42: labels of %j are refused by name', (labels) => {
    expect(() => admissionLimit(labels as never, reported)).toThrow(/^labels: expected a Map/);
  });
});
