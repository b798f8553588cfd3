import { describe, expect, it } from 'vitest';
import type { BucketOptions } from '../../src/options/policy-options.js';
import { bucket, createBucket } from '../../src/policies/bucket.js';
import { bucketRecompute, initialBucketRanges } from '../../src/policies/bucket-boundaries.js';
import type { StandalonePolicy } from '../../src/policies/standalone.js';

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

describe('BU-4: the even split', () => {
  it.each([
    [1, [[0, Infinity]]],
    [
      2,
      [
        [0, 2047],
        [2048, Infinity],
      ],
    ],
    [
      3,
      [
        [0, 1364],
        [1365, 2729],
        [2730, Infinity],
      ],
    ],
  ])('of %i workers', (count, expected) => {
    expect(initialBucketRanges(count).map(({ low, high }) => [low, high])).toEqual(expected);
  });

  it('gives everybody a size of its own in fleets beyond the base range', () => {
    const ranges = initialBucketRanges(5000);
    expect(ranges[4998]).toEqual({ low: 4998, high: 4998 });
    expect(ranges[4999]).toEqual({ low: 4999, high: Infinity });
  });

  it('BU-5: holds for a fleet registered one by one', () => {
    const { policy } = bucketAt(off);
    expect(owners(policy, [0, 1364, 1365, 2729, 2730, 9999])).toEqual(['a', 'a', 'b', 'b', 'c', 'c']);
    expect([0, 1364, 1365, 2729, 2730].map((size) => pick(policy, size))).toEqual(['a', 'a', 'b', 'b', 'c']);
  });
});

describe('BU-10, BU-11: recomputing ranges', () => {
  it.each([
    {
      sizes: [5, 10, 15, 20, 24, 26],
      previous: 0,
      share: 33,
      ranges: [
        [0, 20],
        [21, 26],
        [27, Infinity],
      ],
    },
    {
      sizes: [57, 20, 30, 45, 40, 10],
      previous: 33,
      share: 67,
      ranges: [
        [0, 40],
        [41, 57],
        [58, Infinity],
      ],
    },
    {
      sizes: [33, 34, 34],
      previous: 0,
      share: 33,
      ranges: [
        [0, 33],
        [34, 67],
        [68, Infinity],
      ],
    },
    {
      sizes: [20],
      previous: 0,
      share: 6,
      ranges: [
        [0, 20],
        [21, 27],
        [28, Infinity],
      ],
    },
    {
      sizes: [7],
      previous: 6,
      share: 2,
      ranges: [
        [0, 7],
        [8, 10],
        [11, Infinity],
      ],
    },
    {
      sizes: [100, 200, 300, 400, 3000],
      previous: 0,
      share: 1333,
      ranges: [
        [0, 3000],
        [3001, 4334],
        [4335, Infinity],
      ],
    },
    {
      sizes: [50, 50, 50, 50],
      previous: 0,
      share: 66,
      ranges: [
        [0, 50],
        [51, 117],
        [118, Infinity],
      ],
    },
    {
      sizes: [0, 0, 0],
      previous: 0,
      share: 0,
      ranges: [
        [0, 0],
        [1, 1],
        [2, Infinity],
      ],
    },
  ])('$sizes after a share of $previous', ({ sizes, previous, share, ranges }) => {
    const given = [...sizes];
    const adjusted = bucketRecompute(3, given, previous);
    expect(adjusted?.share).toBe(share);
    expect(adjusted?.ranges.map(({ low, high }) => [low, high])).toEqual(ranges);
    expect(given).toEqual(sizes);
  });

  it('BU-9b: a share within a factor of two changes nothing', () => {
    expect(bucketRecompute(3, [10, 20, 30, 32, 45, 55], 33)).toBeUndefined();
    expect(bucketRecompute(1, [66], 33)).toBeUndefined();
    expect(bucketRecompute(1, [67], 33)?.share).toBe(67);
    expect(bucketRecompute(1, [17], 33)).toBeUndefined();
    expect(bucketRecompute(1, [16], 33)?.share).toBe(16);
  });

  it('BU-9a: without traffic or workers nothing changes', () => {
    expect(bucketRecompute(3, [], 0)).toBeUndefined();
    expect(bucketRecompute(0, [5], 0)).toBeUndefined();
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

  it('BU-5: a worker registered twice is one, an unknown one leaves as if it had never been', () => {
    const policy = createBucket({ balanceAbsThreshold: 1, balanceRelThreshold: 1 });
    policy.workerAdded?.('a', 0);
    policy.workerAdded?.('a', 0);
    policy.workerRemoved?.('b', 0);
    policy.workerRemoved?.('a', 0);
    expect(policy.maintain?.(10_000, { spent: () => false })).toBe(false);
  });
});
