import { describe, expect, it } from 'vitest';
import type { PowerOfTwoOptions } from '../../src/options/policy-options.js';
import { createPowerOfTwo, powerOfTwo } from '../../src/policies/power-of-two.js';
import type { Candidate } from '../../src/workers/candidate.js';
import { pick, report, winners } from './reported.js';

describe('P2: power_of_two', () => {
  const make = (options: PowerOfTwoOptions) => (seed: number) => powerOfTwo({ ...options, seed });

  it('P2-2: every pair is equally likely, so each worker is in two thirds of three', () => {
    // Expected waits 3 < 2 < 1 by in-flight: the busiest never wins, the idlest wins 2 of 3 pairs.
    const policy = powerOfTwo({ seed: 2 });
    const counts: Record<string, number> = { a: 0, b: 0, c: 0 };
    for (let i = 0; i < 9000; i++) {
      const id = pick(policy, [
        { id: 'a', inFlight: 10 },
        { id: 'b', inFlight: 5 },
        { id: 'c', inFlight: 0 },
      ]);
      counts[id] = (counts[id] as number) + 1;
    }
    expect(counts.a).toBe(0);
    expect(Math.abs((counts.b as number) - 3000)).toBeLessThan(200);
    expect((counts.b as number) + (counts.c as number)).toBe(9000);
  });

  it('B68: with two workers the idle one always wins', () => {
    const candidates = [
      { id: 'a', inFlight: 9 },
      { id: 'b', inFlight: 0 },
    ];
    const policy = powerOfTwo({ seed: 68, loadMetric: 'requests' });
    for (let i = 0; i < 1000; i++) expect(pick(policy, candidates)).toBe('b');
  });

  it('P2-2, EW-27: the pair is its own fleet', () => {
    // With c in the comparison a would be measured by it; alone with b it is judged by requests in flight.
    const candidates = [
      { id: 'a', inFlight: 1 },
      { id: 'b', inFlight: 2 },
      { id: 'c', inFlight: 0, report: report(9e9) },
    ];
    expect(winners(make({}), candidates)).toEqual(['a', 'c']);
  });

  it('P2-3: fewer requests in flight win whatever the report says, a tie goes to the score', () => {
    const decided = [
      { id: 'a', inFlight: 3 },
      { id: 'b', inFlight: 1, report: report(50_000) },
      { id: 'c', inFlight: 2 },
    ];
    expect(winners(make({ loadMetric: 'requests' }), decided)).toEqual(['b', 'c']);
    const tied = [
      { id: 'a', inFlight: 2, report: report(100) },
      { id: 'b', inFlight: 2, report: report(50_000) },
    ];
    expect(winners(make({ loadMetric: 'requests' }), tied)).toEqual(['a']);
  });

  it('P2-4: least_requests keeps everybody with the fewest', () => {
    const candidates = [
      { id: 'a', inFlight: 1, report: report(100) },
      { id: 'b', inFlight: 1, report: report(5000) },
      { id: 'c', inFlight: 9, report: report(0) },
      { id: 'd', inFlight: 1, report: report(100) },
    ];
    expect(winners(make({ loadMetric: 'least_requests' }), candidates)).toEqual(['a', 'd']);
  });

  it('P2-5, EW-17: a single kept candidate is scored and credited all the same', () => {
    const policy = powerOfTwo({ loadMetric: 'least_requests' });
    const candidates = [
      { id: 'a', inFlight: 0, report: report(1000) },
      { id: 'b', inFlight: 5, report: report(0) },
    ];
    expect(policy.selectWorker({}, candidates).record.expectedWaitSeconds).toBe(10.0375);
    expect(policy.selectWorker({}, candidates).record.expectedWaitSeconds).toBe(20.2775);
  });

  it('P2-2, LB-3: a pair takes two draws, a fleet of two is the pair without any', () => {
    let draws = 0;
    const random = () => {
      draws += 1;
      return 0.5;
    };
    const workers = [1, 2, 3].map((inFlight) => ({ id: `w${inFlight}`, inFlight }));
    pick(powerOfTwo({ random }), workers.slice(0, 2));
    expect(draws).toBe(0);
    pick(powerOfTwo({ random }), workers);
    expect(draws).toBe(2);
  });

  it('P2-5: every in-flight count is read once', () => {
    let reads = 0;
    const candidates = ['a', 'b', 'c'].map((id) => ({
      id,
      get inFlight() {
        reads += 1;
        return 1;
      },
    }));
    // Once for the check of the literal and once for the copy that the policy reads.
    powerOfTwo({ loadMetric: 'requests' }).selectWorker({}, candidates);
    expect(reads).toBe(6);
  });

  it.each(['expected_wait', 'requests', 'least_requests'] as const)(
    'P2-1: one candidate wins under %s',
    (loadMetric) => {
      expect(pick(powerOfTwo({ loadMetric }), [{ id: 'a', inFlight: 7 }])).toBe('a');
      expect(pick(powerOfTwo({ loadMetric }), [])).toBe('no_available_workers');
    },
  );

  it('P2-6, EW-30: always the default tuning, without a cap', () => {
    const candidates = [{ id: 'a', inFlight: 0, report: { waitingRequests: 500, kvCacheUsage: 0 } }];
    expect(powerOfTwo().selectWorker({}, candidates).record.expectedWaitSeconds).toBe((500 * 1024) / 2000);
  });

  it('P2-6, EW-12: credit is read and given', () => {
    const policy = powerOfTwo();
    const candidates = [
      { id: 'a', inFlight: 0, report: report(1000) },
      { id: 'b', inFlight: 0, report: report(2000) },
    ];
    expect([pick(policy, candidates), pick(policy, candidates)]).toEqual(['a', 'b']);
  });

  it('LR-26: reads reports, so that they are polled', () => {
    expect(createPowerOfTwo({ loadMetric: 'expected_wait' }).needs).toEqual({ reports: true });
  });

  it('CF-44: an unknown metric is refused', () => {
    expect(() => powerOfTwo({ loadMetric: 'latency' as never })).toThrow(
      expect.objectContaining({ field: 'loadMetric', value: 'latency' }),
    );
  });

  const fleets: readonly (readonly Candidate[])[] = [
    [{ id: 'a', inFlight: 1 }],
    [
      { id: 'a', inFlight: 1 },
      { id: 'b', inFlight: 1 },
      { id: 'c', inFlight: 4 },
    ],
    [
      { id: 'a', inFlight: 4 },
      { id: 'b', inFlight: 4, report: report(10) },
      { id: 'c', inFlight: 4, report: report(9) },
    ],
    [
      { id: 'a', inFlight: 0 },
      { id: 'b', inFlight: 1 },
      { id: 'c', inFlight: 2, report: report(9) },
    ],
    [
      { id: 'a', inFlight: 0, report: report(3) },
      { id: 'b', inFlight: 9, report: report(3) },
      { id: 'c', inFlight: 9 },
    ],
    [
      { id: 'a', inFlight: 0 },
      { id: 'b', inFlight: 2, report: report(9) },
      { id: 'c', inFlight: 1, report: report(3) },
    ],
    [
      { id: 'a', inFlight: 0 },
      { id: 'b', inFlight: 0 },
      { id: 'c', inFlight: 0 },
    ],
    [1, 2, 3, 4].map((n) => ({ id: `w${n}`, inFlight: 5 - n, report: report(n) })),
    [4, 3, 2, 1].map((n) => ({ id: `w${n}`, inFlight: 5 - n, report: report(n) })),
  ];
  for (const loadMetric of ['expected_wait', 'requests', 'least_requests'] as const) {
    it(`LB-12: under ${loadMetric} the tie set of explain is exactly who can win`, () => {
      for (const candidates of fleets) {
        const explained = powerOfTwo({ seed: 1, loadMetric }).explain({}, candidates);
        expect([...(explained.policy.tieSet ?? [])].sort()).toEqual(winners(make({ loadMetric }), candidates));
      }
    });
  }
});
