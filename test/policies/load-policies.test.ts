import { createRouter, loadHash } from 'kvroute';
import { describe, expect, it } from 'vitest';
import type { PowerOfTwoOptions } from '../../src/options/policy-options.js';
import { cacheAware } from '../../src/policies/cache-aware.js';
import { leastLoad } from '../../src/policies/least-load.js';
import { manual } from '../../src/policies/manual.js';
import { powerOfTwo } from '../../src/policies/power-of-two.js';
import { prefixHash } from '../../src/policies/prefix-hash.js';
import type { StandalonePolicy } from '../../src/policies/standalone.js';
import type { Candidate } from '../../src/workers/candidate.js';

const report = (waitingTokens: number, tokensPerSecond = 100, kvCacheUsage = 0.2) => ({
  waitingTokens,
  tokensPerSecond,
  kvCacheUsage,
});

function pick(policy: StandalonePolicy, candidates: readonly Candidate[], tokens?: readonly number[]): string {
  const selection = policy.selectWorker({ tokens }, candidates);
  return selection.ok ? selection.worker.id : selection.reason;
}

/** The exact set of winners over many seeds. */
function winners(make: (seed: number) => StandalonePolicy, candidates: readonly Candidate[]): string[] {
  const won = new Set<string>();
  for (let seed = 0; seed < 300; seed++) won.add(pick(make(seed), candidates));
  return [...won].sort();
}

describe('LL: least_load', () => {
  it('E30, EW-12, EW-14: credit moves the second request, a new report resets it', () => {
    const policy = leastLoad({ seed: 1 });
    const [a, b] = [
      { id: 'a', inFlight: 0, report: report(1000) },
      { id: 'b', inFlight: 0, report: report(2000) },
    ];
    const first = policy.selectWorker({}, [a, b]);
    expect(first).toMatchObject({ worker: a, record: { expectedWaitSeconds: 10.0375 } });
    const second = policy.selectWorker({}, [a, b]);
    expect(second).toMatchObject({ worker: b, record: { expectedWaitSeconds: 20.0375 } });
    const anew = [
      { ...a, report: report(1000) },
      { ...b, report: report(2000) },
    ];
    expect(policy.selectWorker({}, anew)).toMatchObject({ worker: anew[0], record: { expectedWaitSeconds: 10.0375 } });
  });

  it('E31, EW-45: credited requests fill the queue', () => {
    const policy = leastLoad({ seed: 1, maxWaitingRequests: 2, kvPressureWeight: 0, defaultThroughput: 100 });
    const candidates = [
      { id: 'a', inFlight: 0, report: { waitingRequests: 1, kvCacheUsage: 0, tokensPerSecond: 100 } },
      { id: 'b', inFlight: 0, report: report(400_000) },
    ];
    expect([pick(policy, candidates), pick(policy, candidates)]).toEqual(['a', 'b']);
  });

  it('E33, EW-42: reason waiting_cap, code no_available_workers, retryable, and nobody is credited', () => {
    const policy = leastLoad({ maxWaitingRequests: 48 });
    const candidates = [{ id: 'a', inFlight: 0, report: { waitingRequests: 48 } }];
    expect(policy.selectWorker({}, candidates)).toMatchObject({
      ok: false,
      reason: 'waiting_cap',
      code: 'no_available_workers',
      retryable: true,
      excluded: 0,
    });
    expect(policy.explain({}, candidates).policy.scores?.[0]).toMatchObject({ creditTokens: 0, capped: true });
  });

  it('EW-50, EW-17: a single candidate is scored and credited', () => {
    const policy = leastLoad();
    const candidates = [{ id: 'a', inFlight: 0, report: report(1000) }];
    expect(policy.selectWorker({}, candidates)).toMatchObject({ record: { expectedWaitSeconds: 10.0375 } });
    expect(policy.selectWorker({}, candidates)).toMatchObject({ record: { expectedWaitSeconds: 20.2775 } });
  });

  it('EW-13: a known size is credited exactly, an empty list as 0, an unknown one as the mean of the options', () => {
    const policy = leastLoad({ meanPrefillTokens: 10 });
    const candidates = [{ id: 'a', inFlight: 0, report: report(0) }];
    const credit = () => policy.explain({}, candidates).policy.scores?.[0]?.creditTokens;
    pick(policy, candidates, [1, 2, 3]);
    expect(credit()).toBe(3);
    pick(policy, candidates, []);
    expect(credit()).toBe(3);
    pick(policy, candidates);
    expect(credit()).toBe(13);
    policy.selectWorker({ headers: { 'x-smg-routing-tokens': '7,8' } }, candidates);
    expect(credit()).toBe(15);
  });

  it('EW-15, EW-16: losing the report resets nothing; the same report again does not either, another one does', () => {
    const policy = leastLoad();
    const known = report(0);
    const credit = (candidate: Candidate) => policy.explain({}, [candidate]).policy.scores?.[0]?.creditTokens;
    pick(policy, [{ id: 'a', inFlight: 0, report: known }]);
    pick(policy, [{ id: 'a', inFlight: 0 }]);
    expect(credit({ id: 'a', inFlight: 0, report: known })).toBe(2048);
    expect(credit({ id: 'a', inFlight: 0, report: report(0) })).toBe(0);
  });

  it('B39: twenty selections between two reports split evenly', () => {
    const policy = leastLoad({ seed: 39 });
    const candidates = [
      { id: 'a', inFlight: 0, report: report(0) },
      { id: 'b', inFlight: 0, report: report(0) },
    ];
    const picks = Array.from({ length: 20 }, () => pick(policy, candidates));
    expect(picks.filter((id) => id === 'a')).toHaveLength(10);
  });

  it('B19: eight selections in one tick spread over four idle workers', () => {
    const policy = leastLoad({ seed: 19 });
    const candidates = ['a', 'b', 'c', 'd'].map((id) => ({ id, inFlight: 0, report: report(0) }));
    const counts = new Map<string, number>();
    for (let i = 0; i < 8; i++) {
      const id = pick(policy, candidates);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    expect([...counts.values()]).toEqual([2, 2, 2, 2]);
  });

  it('B38: a queue depth without tokens is no empty queue', () => {
    const depth = [
      { id: 'a', inFlight: 0, report: { waitingRequests: 64, tokensPerSecond: 100 } },
      { id: 'b', inFlight: 0, report: { waitingRequests: 6, tokensPerSecond: 100 } },
    ];
    for (let seed = 0; seed < 20; seed++) expect(pick(leastLoad({ seed }), depth)).toBe('b');
    const known = [
      { id: 'c', inFlight: 0, report: { waitingRequests: 200, waitingTokens: 500, tokensPerSecond: 100 } },
      { id: 'd', inFlight: 0, report: { waitingRequests: 1, waitingTokens: 8000, tokensPerSecond: 100 } },
    ];
    expect(pick(leastLoad(), known)).toBe('c');
  });

  it('B48: a full cache loses against half a cache; a report with NaN is none', () => {
    const full = [
      { id: 'a', inFlight: 0, report: report(0, 100, 1) },
      { id: 'b', inFlight: 0, report: report(0, 100, 0.5) },
    ];
    expect(pick(leastLoad(), full)).toBe('b');
    const broken = [
      { id: 'a', inFlight: 1, report: report(0, 100, Number.NaN) },
      { id: 'b', inFlight: 0, report: report(9) },
    ];
    const explained = leastLoad().explain({}, broken);
    expect(explained.policy.scores?.map(({ basis }) => basis)).toEqual(['baseline', 'report']);
  });

  it('B36, LR-30, LR-31: alone too, a report ages from its sample and stops counting at loadReportMaxAgeMs', () => {
    let now = 1_000_000;
    const policy = leastLoad({ clock: () => now, loadReportMaxAgeMs: 5000 });
    const candidates = [
      { id: 'a', inFlight: 0, report: { ...report(0), observedAt: now - 4000 } },
      { id: 'b', inFlight: 0, report: { ...report(10), observedAt: now + 99_000 } },
    ];
    const bases = () => policy.explain({}, candidates).policy.scores?.map(({ basis }) => basis);
    pick(policy, candidates);
    expect(bases()).toEqual(['report', 'report']);
    now += 1000;
    expect(bases()).toEqual(['baseline', 'report']);
    now += 3999;
    expect(bases()).toEqual(['baseline', 'report']);
    now += 1;
    expect(bases()).toEqual(['in_flight', 'in_flight']);
  });

  it('LR-30: the age rule is off with Infinity, and 30 s by default', () => {
    let now = 0;
    const candidates = [{ id: 'a', inFlight: 0, report: report(0) }];
    const basisAt = (policy: StandalonePolicy, ms: number) => {
      now = 0;
      pick(policy, candidates);
      now = ms;
      return policy.explain({}, candidates).policy.scores?.[0]?.basis;
    };
    const clock = () => now;
    expect(basisAt(leastLoad({ clock }), 29_999)).toBe('report');
    expect(basisAt(leastLoad({ clock }), 30_000)).toBe('in_flight');
    expect(basisAt(leastLoad({ clock, loadReportMaxAgeMs: Infinity }), 1e12)).toBe('report');
  });

  it('LB-11, EW-26: in a dark fleet there is no expected wait', () => {
    const selection = leastLoad().selectWorker({}, [{ id: 'a', inFlight: 2 }]);
    expect(selection.record).toMatchObject({ expectedWaitSeconds: undefined, inFlight: 2 });
  });

  it.each([
    ['kvPressureWeight', -0.1],
    ['kvPressureWeight', Number.NaN],
    ['defaultThroughput', 0],
    ['meanPrefillTokens', -1],
    ['meanPrefillTokens', 1.5],
    ['maxWaitingRequests', -1],
    ['maxWaitingRequests', '3'],
  ])('CF-113, B56: %s = %s is refused with its name', (field, value) => {
    expect(() => leastLoad({ [field]: value } as never)).toThrow(expect.objectContaining({ field, value }));
  });
});

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
    [1, 2, 3, 4].map((n) => ({ id: `w${n}`, inFlight: 5 - n, report: report(n) })),
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

describe('requests in flight', () => {
  const counts = [
    { id: 'a', inFlight: 3 },
    { id: 'b', inFlight: 1 },
    { id: 'c', inFlight: 2 },
  ];
  const reported = counts.map((candidate) => ({ ...candidate, report: report(candidate.inFlight === 1 ? 9000 : 0) }));

  it('WK-35: decide where nobody reports, for the pair and for the whole fleet', () => {
    expect(winners((seed) => leastLoad({ seed }), counts)).toEqual(['b']);
    expect(winners((seed) => powerOfTwo({ seed }), counts)).toEqual(['b', 'c']);
  });

  it.each([
    ['requests', ['b', 'c']],
    ['least_requests', ['b']],
  ] as const)('WK-35: decide first for the metric %s, whatever is reported', (loadMetric, won) => {
    expect(winners((seed) => powerOfTwo({ seed, loadMetric }), reported)).toEqual(won);
  });

  it('WK-35: place a new key with manual under min_load', () => {
    const policy = manual({ seed: 1, assignmentMode: 'min_load' });
    expect(policy.selectWorker({ headers: { 'x-smg-routing-key': 'k' } }, reported)).toMatchObject({
      worker: { id: 'b' },
    });
  });

  it('WK-35: are what prefix_hash and the spill gate of cache_aware compare', async () => {
    const fleet = (hot: number) => ['a', 'b', 'c'].map((id) => ({ id, inFlight: id === 'a' ? hot : 0 }));
    const idle = fleet(0);
    const byHash = prefixHash({ hash: await loadHash() });
    const text = 'the head of a prompt';
    const owner = pickText(byHash, text, idle);
    const loaded = idle.map((candidate) => ({ ...candidate, inFlight: candidate.id === owner ? 100 : 0 }));
    expect(pickText(byHash, text, loaded)).not.toBe(owner);
    const byTree = cacheAware({ seed: 1 });
    const holder = pickText(byTree, text, idle);
    const spilling = idle.map((candidate) => ({ ...candidate, inFlight: candidate.id === holder ? 200 : 0 }));
    expect(pickText(byTree, text, idle)).toBe(holder);
    expect(pickText(byTree, text, spilling)).not.toBe(holder);
  });
});

function pickText(policy: StandalonePolicy, text: string, candidates: readonly Candidate[]): string {
  const selection = policy.selectWorker({ text }, candidates);
  return selection.ok ? selection.worker.id : selection.reason;
}

describe('the lifetime counter', () => {
  it.each(['least_load', 'power_of_two', 'cache_aware'] as const)(
    'WK-50: %s counts each selection once, and no tie is decided by it',
    async (policy) => {
      const router = await createRouter({ policy, seed: 1 });
      router.addWorker({ id: 'a' });
      for (let i = 0; i < 10; i++) router.acquire({ text: `${i}` });
      expect(router.worker('a')?.selections).toBe(10);
      router.addWorker({ id: 'b' });
      // Of the two, one was selected ten times: only what is in flight and credited may tell them apart.
      const fresh = await createRouter({ policy, seed: 1 });
      for (const id of ['a', 'b']) fresh.addWorker({ id });
      const seen = new Set<string>();
      for (let i = 0; i < 100; i++) {
        const acquired = fresh.acquire({ text: `${i}` });
        if (!acquired.ok) throw new Error('nothing acquired');
        acquired.lease.end();
        for (const id of ['a', 'b']) fresh.reportLoad(id, report(0));
        seen.add(acquired.worker.id);
      }
      expect(seen).toEqual(new Set(['a', 'b']));
      const selections = ['a', 'b'].map((id) => fresh.worker(id)?.selections ?? 0);
      expect(selections[0] as number).not.toBe(selections[1]);
      expect(fresh.explain({ text: 'another' }).policy.tieSet ?? ['a', 'b']).toEqual(['a', 'b']);
    },
  );
});

it('LL-2: least_load has no branch, and its record the score of a decision', () => {
  const { record } = leastLoad({ seed: 1 }).selectWorker({}, [{ id: 'a', inFlight: 0, report: report(1000) }]);
  expect(record).toMatchObject({ policy: 'least_load', branch: undefined, expectedWaitSeconds: 10.0375 });
});
