import { describe, expect, it } from 'vitest';
import { RoutingConfigError } from '../../src/errors.js';
import { leastLoad } from '../../src/policies/least-load.js';
import { random } from '../../src/policies/random.js';
import { ringOf } from '../../src/policies/runtime-options.js';
import { two } from './custom-alone.js';

describe('LB-2, LB-40: runtime options', () => {
  it.each([
    ['clock', { clock: 3 }],
    ['random', { random: {} }],
    ['seed', { seed: 1.5 }],
    ['seed', { seed: {} }],
    ['seed', { seed: 1, random: () => 0 }],
    ['loadReportMaxAgeMs', { loadReportMaxAgeMs: 0 }],
    ['loadReportMaxAgeMs', { loadReportMaxAgeMs: Number.NaN }],
    ['sede', { sede: 1 }],
  ])('refuses %s in %j', (field, options) => {
    expect(() => random(options as never)).toThrow(RoutingConfigError);
    expect(() => random(options as never)).toThrow(
      expect.objectContaining({ field, reason: expect.stringMatching(/^\w/) }),
    );
  });

  it('CC-10: a ring is an object with lookup', () => {
    for (const ring of [{}, null, 5]) {
      expect(() => ringOf({ ring })).toThrow(RoutingConfigError);
      expect(() => ringOf({ ring })).toThrow(
        expect.objectContaining({ field: 'ring', value: ring, reason: expect.stringMatching(/lookup/) }),
      );
    }
    expect(ringOf({})).toBeUndefined();
  });

  it('LB-3: the same seed gives the same picks; any 32-bit integer or string', () => {
    const picks = (seed: number | string) => {
      const policy = random({ seed });
      return Array.from({ length: 40 }, () => policy.selectWorker({}, two).record.inFlight).join('');
    };
    for (const seed of [0, -1, 2 ** 31, 'a', '']) expect(picks(seed)).toBe(picks(seed));
    expect(picks('a')).not.toBe(picks('b'));
  });

  it('LB-2: a clock that steps back undoes nothing', () => {
    let now = 10_000;
    const policy = leastLoad({ clock: () => now });
    const candidates = [{ id: 'a', inFlight: 0, report: { waitingTokens: 0 } }];
    const age = () => policy.explain({}, candidates).policy.scores?.[0]?.reportAgeMs;
    policy.selectWorker({}, candidates);
    now = 10_500;
    expect(age()).toBe(500);
    now = 4000;
    expect(age()).toBe(500);
    now = 4100;
    expect(age()).toBe(600);
  });
});
