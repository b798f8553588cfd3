import { describe, expect, it } from 'vitest';
import type { LeaseOutcome } from '../../src/lease-outcome.js';
import {
  classifyOutcome,
  type OutcomeClass,
  RequestScope,
  resolveOutcomeCodes,
} from '../../src/workers/outcome-class.js';

const byDefault = resolveOutcomeCodes(undefined);
const [s, f, n] = ['success', 'failure', 'nothing'] as const;

describe('classifyOutcome', () => {
  // CB-21's table: status, default, capacity {429, 503}, capacity {}.
  const rows: readonly [readonly number[], OutcomeClass, OutcomeClass, OutcomeClass][] = [
    [[200, 204, 301, 400, 401, 404, 413, 422], s, s, s],
    [[408, 500, 502, 504], f, f, f],
    [[503], f, n, f],
    [[429], n, n, f],
    [[501, 505], s, s, s],
  ];
  const both = resolveOutcomeCodes({ capacityStatusCodes: [429, 503] });
  const none = resolveOutcomeCodes({ capacityStatusCodes: [] });
  for (const [statuses, ...expected] of rows) {
    it(`CB-21: ${statuses.join(', ')} → ${expected.join(' / ')}`, () => {
      for (const status of statuses) {
        expect([byDefault, both, none].map((codes) => classifyOutcome({ status }, codes))).toEqual(expected);
      }
    });
  }

  it('CB-22: a list that is set replaces the default completely', () => {
    const codes = resolveOutcomeCodes({ retryableStatusCodes: [500] });
    expect([500, 502, 503, 429].map((status) => classifyOutcome({ status }, codes))).toEqual([f, s, s, n]);
    const silent = resolveOutcomeCodes({ retryableStatusCodes: [], capacityStatusCodes: [] });
    expect([500, 429].map((status) => classifyOutcome({ status }, silent))).toEqual([s, s]);
  });

  it('CB-23: an abort and an end without outcome record nothing', () => {
    expect(classifyOutcome({ aborted: true }, byDefault)).toBe(n);
    for (const other of [{ status: 500 }, { status: 200 }, { error: 'body' }, { error: 'connect' }] as const) {
      expect(classifyOutcome({ ...other, aborted: true }, byDefault)).toBe(n);
    }
    expect(classifyOutcome(undefined, byDefault)).toBe(n);
  });

  it('CB-20, CB-25: no answer counts as 502, a timeout as 504, through the same lists', () => {
    expect(classifyOutcome({ error: 'connect' }, byDefault)).toBe(f);
    expect(classifyOutcome({ error: 'timeout' }, byDefault)).toBe(f);
    const only502 = resolveOutcomeCodes({ retryableStatusCodes: [502] });
    expect(classifyOutcome({ error: 'connect' }, only502)).toBe(f);
    expect(classifyOutcome({ error: 'timeout' }, only502)).toBe(s);
    const full504 = resolveOutcomeCodes({ capacityStatusCodes: [504] });
    expect(classifyOutcome({ error: 'timeout' }, full504)).toBe(n);
  });

  it('CB-25: a body that broke off is a failure whatever the lists say', () => {
    expect(classifyOutcome({ error: 'body' }, resolveOutcomeCodes({ retryableStatusCodes: [] }))).toBe(f);
  });

  it('LB-42: an outcome that says nothing usable records nothing and does not throw', () => {
    const odd: unknown[] = [null, {}, { status: 0 }, { status: Number.NaN }, { status: '500' }, { error: 'other' }];
    for (const outcome of odd) expect(classifyOutcome(outcome as LeaseOutcome, byDefault)).toBe(n);
  });

  it('CB-21: a status says something from 100 to 599', () => {
    expect([99, 100, 599, 600].map((status) => classifyOutcome({ status }, byDefault))).toEqual([n, s, s, n]);
  });

  it('LB-42: an outcome that fails when it is read records nothing and does not throw', () => {
    const failing = {
      get status(): number {
        throw new Error('unreadable');
      },
    };
    expect(classifyOutcome(failing, byDefault)).toBe(n);
  });

  it('CF-95: status lists out of range are refused by name', () => {
    expect(() => resolveOutcomeCodes({ capacityStatusCodes: [99] })).toThrowError(
      expect.objectContaining({ field: 'worker.resilience.capacityStatusCodes' }),
    );
  });
});

describe('RequestScope', () => {
  it('CB-30, CB-31: one failure a worker and request, every success', () => {
    const scope = new RequestScope();
    expect([scope.admits('w1', f), scope.admits('w1', f), scope.admits('w2', f), scope.admits('w2', f)]).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect([scope.admits('w1', s), scope.admits('w1', s)]).toEqual([true, true]);
  });

  it('CB-32: a success does not clear the account', () => {
    const scope = new RequestScope();
    expect([scope.admits('w1', f), scope.admits('w1', s), scope.admits('w1', f)]).toEqual([true, true, false]);
  });

  it('CB-23: nothing is never recorded and charges nobody', () => {
    const scope = new RequestScope();
    expect([scope.admits('w1', n), scope.admits('w1', f)]).toEqual([false, true]);
  });

  it('LB-31: worker ids such as __proto__ are ordinary', () => {
    const scope = new RequestScope();
    expect([scope.admits('__proto__', f), scope.admits('__proto__', f), scope.admits('constructor', f)]).toEqual([
      true,
      false,
      true,
    ]);
  });
});
