import { describe, expect, it } from 'vitest';
import type { BucketOptions } from '../../src/options/policy-options.js';
import { bucket, createBucket } from '../../src/policies/bucket.js';
import { type StandalonePolicy, standalone } from '../../src/policies/standalone.js';
import { seededRandom } from '../../src/runtime/random.js';

const off: BucketOptions = { balanceAbsThreshold: 1_000_000 };
const fleet = (...ids: string[]) => ids.map((id) => ({ id, inFlight: 0 }));
const three = fleet('a', 'b', 'c');

/** A policy on a clock that the test moves. */
function bucketAt(options: BucketOptions, seed = 1) {
  const time = { now: 0 };
  return { time, policy: bucket({ ...options, seed, clock: () => time.now }) };
}

function pick(policy: StandalonePolicy, size: number, candidates = three, exclude?: readonly string[]): string {
  const selection = policy.selectWorker({ text: 'a'.repeat(size), exclude }, candidates);
  return selection.ok ? selection.worker.id : selection.reason;
}

/** Who owns each size, as long as the gate is kept off. */
const owners = (policy: StandalonePolicy, sizes: readonly number[]) =>
  sizes.map((size) => policy.explain({ text: 'a'.repeat(size) }, three).policy.bucket?.owner);

/** What was routed to each worker within the window. */
const routed = (policy: StandalonePolicy, candidates = three) =>
  policy.explain({}, candidates).policy.bucket?.routed.map(({ units }) => units);

describe('BU-4, BU-5: the even split', () => {
  it('holds for a fleet registered one by one', () => {
    const { policy } = bucketAt(off);
    expect(owners(policy, [0, 1364, 1365, 2729, 2730, 9999])).toEqual(['a', 'a', 'b', 'b', 'c', 'c']);
    expect([0, 1364, 1365, 2729, 2730].map((size) => pick(policy, size))).toEqual(['a', 'a', 'b', 'b', 'c']);
  });
});

describe('BU-3: the size of a request', () => {
  it('is the number of token ids when there is a list, else code points, else 0', () => {
    const { policy } = bucketAt(off);
    const size = (request: object) => policy.explain(request, three).policy.bucket?.size;
    expect(size({ tokens: new Uint32Array(1400), text: 'x' })).toBe(1400);
    expect(size({ tokens: [], text: 'abc' })).toBe(0);
    expect(size({ text: 'a😀b' })).toBe(3);
    expect(size({})).toBe(0);
    expect(size({ text: 'abc', headers: { 'x-smg-routing-tokens': '1,2' } })).toBe(2);
  });

  it('B90: a prompt of 5 MB in one line is counted', () => {
    const { policy } = bucketAt(off);
    expect(pick(policy, 5_000_000)).toBe('c');
    expect(routed(policy)).toEqual([0, 0, 5_000_000]);
  });
});

describe('BU-6, BU-7, BU-14: selection', () => {
  it('BU-12: the gate sends the second request away, and the third to the last idle worker', () => {
    const won = new Set<string>();
    for (let seed = 0; seed < 200; seed++) {
      const { policy, time } = bucketAt({ balanceAbsThreshold: 32, balanceRelThreshold: 1.0001 }, seed);
      // Traffic that leaves the ranges [0,33] [34,67] [68,∞] behind, and a window that has forgotten it.
      for (const size of [33, 34, 34]) policy.selectWorker({ text: 'a'.repeat(size) }, three);
      time.now += 5000;
      policy.maintain();
      time.now += 5001;
      const picks = [pick(policy, 33), pick(policy, 33), pick(policy, 33)];
      expect(picks[0]).toBe('a');
      expect([...picks].sort()).toEqual(['a', 'b', 'c']);
      won.add(picks[1] as string);
    }
    expect([...won].sort()).toEqual(['b', 'c']);
  });

  it('BU-13: both comparisons are strict, and both must hold', () => {
    const abs = bucketAt({ balanceAbsThreshold: 30, balanceRelThreshold: 1 }).policy;
    expect([pick(abs, 20), pick(abs, 8), pick(abs, 7)]).toEqual(['a', 'a', 'a']);
    expect(pick(abs, 1)).not.toBe('a');
    const exactly = bucketAt({ balanceAbsThreshold: 30, balanceRelThreshold: 1 }).policy;
    // 30 and 0: a difference of 30 is not more than 30.
    expect([pick(exactly, 20), pick(exactly, 10), pick(exactly, 7)]).toEqual(['a', 'a', 'a']);
    expect(exactly.explain({}, three).policy.bucket?.imbalanced).toBe(true);
    const apart = bucketAt({ balanceAbsThreshold: 2100, balanceRelThreshold: 1 }).policy;
    // 1500 and 2048: the difference counts, not the sum.
    expect([1500, 2048, 3000].map((size) => pick(apart, size, fleet('a', 'b')))).toEqual(['a', 'b', 'b']);
    const rel = bucketAt({ balanceAbsThreshold: 5, balanceRelThreshold: 3 });
    const two = fleet('a', 'b');
    expect([pick(rel.policy, 2048, two), pick(rel.policy, 0, two)]).toEqual(['b', 'a']);
    // 2048 - 0 > 5, but with nothing routed to a any positive load is more than three times it.
    expect(pick(rel.policy, 2049, two)).toBe('a');
    // 2049 and 2048: the difference is within 5.
    expect(pick(rel.policy, 3000, two)).toBe('b');
    // 5048 and 2049: the difference is large, but not more than threefold.
    expect(pick(rel.policy, 3000, two)).toBe('b');
    // 8048 > 3 × 2049.
    expect(pick(rel.policy, 3000, two)).toBe('a');
    const exact = bucketAt({ balanceAbsThreshold: 5, balanceRelThreshold: 3 }).policy;
    // 3000 is not more than 3 × 1000.
    expect([pick(exact, 3000, two), pick(exact, 1000, two), pick(exact, 2500, two)]).toEqual(['b', 'a', 'b']);
  });

  it('BU-7: entries leave the window when older than five seconds, not at five', () => {
    const within = bucketAt({ balanceAbsThreshold: 32, balanceRelThreshold: 1.0001 });
    const two = fleet('a', 'b');
    pick(within.policy, 30, two);
    within.time.now += 5000;
    pick(within.policy, 10, two);
    expect(routed(within.policy, two)).toEqual([40, 0]);
    expect(pick(within.policy, 5, two)).toBe('b');
    within.time.now += 0.5;
    expect(routed(within.policy, two)).toEqual([10, 5]);
    within.time.now += 5000;
    expect(routed(within.policy, two)).toEqual([0, 0]);
  });

  it('BU-14: an owner that is not available hands over to the available worker with the least routed', () => {
    const won = new Set<string>();
    for (let seed = 0; seed < 200; seed++) won.add(pick(bucketAt(off, seed).policy, 3000, three, ['c']));
    expect([...won].sort()).toEqual(['a', 'b']);
    const { policy } = bucketAt(off);
    pick(policy, 10);
    expect(pick(policy, 3000, three, ['c'])).toBe('b');
    expect(routed(policy)).toEqual([10, 3000, 0]);
  });

  it('BU-14: nothing is accounted when nothing was selected', () => {
    const { policy } = bucketAt(off);
    expect(pick(policy, 100, three, ['a', 'b', 'c'])).toBe('no_available_workers');
    expect(routed(policy)).toEqual([0, 0, 0]);
    const fresh = bucketAt(off).policy;
    expect(pick(fresh, 100, [])).toBe('no_available_workers');
    expect(fresh.explain({}, []).policy).toEqual({
      bucket: { size: 0, owner: undefined, imbalanced: false, routed: [] },
      tieSet: [],
    });
  });

  it('BU-14: each candidate is judged by what was routed to itself, whoever is missing and in whatever order', () => {
    const { policy } = bucketAt(off);
    // a 10, b 1400, c 0.
    expect([pick(policy, 10), pick(policy, 1400)]).toEqual(['a', 'b']);
    expect(pick(policy, 5, three, ['a'])).toBe('c');
    // a 10, b 1400, c 5; only the list is in another order.
    expect(pick(policy, 9000, fleet('b', 'a'))).toBe('a');
    expect(routed(policy, fleet('c', 'b', 'a'))).toEqual([9010, 1400, 5]);
  });

  it('BU-14, LB-12: the tie set is the owner alone, or whoever of the available has the least routed', () => {
    const { policy } = bucketAt(off);
    const tieSet = (exclude: readonly string[] = []) =>
      policy.explain({ text: 'short', exclude: [...exclude] }, three).policy.tieSet;
    pick(policy, 10);
    expect(tieSet()).toEqual(['a']);
    expect(tieSet(['a'])).toEqual(['b', 'c']);
    pick(policy, 1400);
    expect(tieSet(['a'])).toEqual(['c']);
    const gated = bucketAt({ balanceAbsThreshold: 5 }).policy;
    pick(gated, 10);
    expect(gated.explain({ text: 'short' }, three).policy).toMatchObject({
      bucket: { owner: 'a', imbalanced: true },
      tieSet: ['b', 'c'],
    });
  });

  it('BU-14, LB-3: chance is asked for ties only', () => {
    const source = seededRandom(1);
    let draws = 0;
    const random = () => {
      draws += 1;
      return source();
    };
    const policy = bucket({ ...off, random, clock: () => 0 });
    expect([pick(policy, 10), pick(policy, 1400)]).toEqual(['a', 'b']);
    expect(pick(policy, 5, three, ['a'])).toBe('c');
    expect(draws).toBe(0);
    expect(pick(bucket({ ...off, random, clock: () => 0 }), 5, three, ['a'])).toMatch(/^[bc]$/);
    expect(draws).toBe(1);
  });

  it('BU-14: the gate reads unavailable workers too, but never chooses them', () => {
    const { policy } = bucketAt({ balanceAbsThreshold: 10 });
    pick(policy, 100);
    // b and c have nothing routed; c, the only one left, takes what a owns.
    expect(pick(policy, 5, three, ['b'])).toBe('c');
    expect(pick(policy, 5, three, ['b', 'c'])).toBe('a');
  });

  it('BU-8: in-flight counts and reports play no part', () => {
    const { policy } = bucketAt(off);
    const busy = [{ id: 'a', inFlight: 900, report: { waitingTokens: 1e9, kvCacheUsage: 1 } }, ...fleet('b', 'c')];
    expect(pick(policy, 10, busy)).toBe('a');
  });
});

describe('BU-9, LB-5: checks', () => {
  it('BU-9: the first check with traffic adjusts, later ones only on a change of more than twofold', () => {
    const { policy, time } = bucketAt(off);
    for (const size of [5, 10, 15, 20, 24, 26]) pick(policy, size);
    time.now = 5000;
    expect(owners(policy, [20, 21, 26, 27])).toEqual(['a', 'b', 'b', 'c']);
    time.now = 10_001;
    for (const size of [10, 20, 30, 40, 45, 57]) pick(policy, size);
    time.now = 15_000;
    expect(owners(policy, [40, 41, 57, 58])).toEqual(['a', 'b', 'b', 'c']);
    time.now = 20_001;
    for (const size of [10, 20, 30, 32, 45, 55]) pick(policy, size);
    time.now = 25_000;
    expect(owners(policy, [40, 41, 57, 58])).toEqual(['a', 'b', 'b', 'c']);
  });

  it('LB-5: first due five seconds after the first worker, not before', () => {
    const { policy, time } = bucketAt(off);
    time.now = 700;
    pick(policy, 20);
    time.now = 5699;
    expect(owners(policy, [21])).toEqual(['a']);
    time.now = 5700;
    expect(owners(policy, [20, 21])).toEqual(['a', 'b']);
  });

  it('LB-5: a late check forgets what was too old at the instant it was due', () => {
    const { policy, time } = bucketAt(off);
    pick(policy, 0);
    time.now = 4500;
    pick(policy, 30);
    time.now = 9000;
    pick(policy, 600);
    pick(policy, 600);
    time.now = 12_000;
    // Of 600 and 600 the share is 400; with the 30 it would be 410, and b would own up to 1011.
    expect(owners(policy, [600, 601, 1001, 1002])).toEqual(['a', 'b', 'b', 'c']);
  });

  it('LB-5: a check missed by a long silence sees the window of the instant it was due', () => {
    const { policy, time } = bucketAt(off);
    time.now = 4000;
    pick(policy, 20);
    time.now = 1_000_000;
    expect(owners(policy, [20, 21, 27, 28])).toEqual(['a', 'b', 'b', 'c']);
    expect(routed(policy)).toEqual([0, 0, 0]);
  });

  it('LB-5: a second worker does not move the instants of the checks', () => {
    const { policy, time } = bucketAt(off);
    pick(policy, 0, fleet('a'));
    time.now = 3000;
    pick(policy, 20);
    time.now = 5000;
    expect(owners(policy, [20, 21])).toEqual(['a', 'b']);
  });

  it('LB-5: checks that found no traffic count as made, however many a silence passed over', () => {
    const { policy, time } = bucketAt(off);
    time.now = 3000;
    expect(pick(policy, 0, three, ['a', 'b', 'c'])).toBe('no_available_workers');
    // Due at 8000, 13 000 and so on; nothing was routed before.
    time.now = 8000;
    pick(policy, 20);
    time.now = 12_999;
    expect(owners(policy, [21])).toEqual(['a']);
    time.now = 13_000;
    expect(owners(policy, [20, 21])).toEqual(['a', 'b']);
  });

  it('LB-5: a silence of ages costs nothing', () => {
    const policy = createBucket({ balanceAbsThreshold: 1, balanceRelThreshold: 1 });
    policy.workerAdded?.('a', 0);
    expect(policy.maintain?.(Number.MAX_SAFE_INTEGER, { spent: () => false })).toBe(false);
  });

  it('LB-5: an instant of which rounding leaves a little less than five seconds is passed all the same', () => {
    const start = 6000.3;
    const due = start + 5000;
    expect(due - start).toBeLessThan(5000);
    const policy = createBucket({ balanceAbsThreshold: 1, balanceRelThreshold: 1 });
    policy.workerAdded?.('a', start);
    expect(policy.maintain?.(due, { spent: () => false })).toBe(false);
  });
});

describe('BU-5, LM-37, LB-30: membership', () => {
  it('BU-5, LM-37: a worker that comes or goes starts the split and the routed sizes anew', () => {
    const { policy } = bucketAt(off);
    pick(policy, 100);
    const four = [...three, ...fleet('d')];
    pick(policy, 1100, four);
    expect(routed(policy, four)).toEqual([0, 1100, 0, 0]);
    policy.forget('d');
    expect(owners(policy, [1364, 1365])).toEqual(['a', 'b']);
    expect(routed(policy)).toEqual([0, 0, 0]);
  });

  it('LB-30: the window keeps the sizes of a removed worker for the next check', () => {
    const { policy, time } = bucketAt(off);
    const four = [...three, ...fleet('d')];
    for (const size of [33, 34, 34]) pick(policy, size, four);
    policy.forget('d');
    time.now = 5000;
    expect(owners(policy, [33, 34, 67, 68])).toEqual(['a', 'b', 'b', 'c']);
  });

  it('B78: what was routed before a change is not subtracted from what was routed after it', () => {
    const { policy, time } = bucketAt(off);
    pick(policy, 100, fleet('a', 'b'));
    time.now = 3000;
    pick(policy, 70);
    time.now = 5500;
    expect(routed(policy)).toEqual([70, 0, 0]);
  });

  it('LB-12: explain shows unknown candidates the fleet they would make, and registers nobody', () => {
    const { policy } = bucketAt(off);
    expect(policy.explain({ text: 'a'.repeat(1400) }, three).policy.bucket?.owner).toBe('b');
    pick(policy, 0, fleet('x'));
    expect(policy.explain({}, fleet('x')).policy.bucket?.routed.map(({ worker }) => worker)).toEqual(['x']);
  });

  it('LB-12: explain shows registered workers and unknown candidates with nothing routed, as a new fleet has', () => {
    const { policy } = bucketAt(off);
    pick(policy, 1000, fleet('a', 'b'));
    expect(policy.explain({ text: 'a'.repeat(1400) }, fleet('b', 'c')).policy).toEqual({
      bucket: {
        size: 1400,
        owner: 'b',
        imbalanced: false,
        routed: ['a', 'b', 'c'].map((worker) => ({ worker, units: 0 })),
      },
      tieSet: ['b'],
    });
    expect(routed(policy, fleet('a', 'b'))).toEqual([1000, 0]);
  });

  it('BU-5: a worker registered twice is one, an unknown one leaves as if it had never been', () => {
    const policy = createBucket({ balanceAbsThreshold: 1_000_000, balanceRelThreshold: 1 });
    const used = standalone(policy, { clock: () => 0 });
    pick(used, 100);
    policy.workerAdded?.('a', 0);
    expect(routed(used)).toEqual([100, 0, 0]);
    policy.workerRemoved?.('d', 0);
    expect(routed(used)).toEqual([100, 0, 0]);
    policy.workerRemoved?.('a', 0);
    expect(routed(used, fleet('b', 'c'))).toEqual([0, 0]);
  });
});
