import { describe, expect, it } from 'vitest';
import { summarizeReport } from '../../src/load/load-summary.js';
import { OverlapRanking } from '../../src/prefix/overlap-ranking.js';
import { seededRandom } from '../../src/runtime/random.js';
import type { WorkerSignals } from '../../src/workers/candidate.js';

/** A holder whose engine reports `waitingTokens`; undefined = no such field, null = no report at all. */
function holder(id: string, waitingTokens?: number | null): WorkerSignals {
  const load = waitingTokens === null ? undefined : summarizeReport({ waitingTokens }, 0, 1000);
  if (typeof load === 'string') throw new Error(load);
  return { id, inFlight: 0, activeKeys: 0, load, creditTokens: 0, creditRequests: 0, keyInFlight: () => 0 };
}

function ranking(entries: readonly (readonly [WorkerSignals, number])[]): OverlapRanking {
  const result = new OverlapRanking();
  for (const [worker, overlap] of entries) result.add(worker, overlap);
  return result;
}

const ids = (group: OverlapRanking): string[] => group.workers.map((worker) => worker.id);
const scores = (group: OverlapRanking): number[] => group.workers.map((_, i) => group.scoreAt(i));
const random = seededRandom(1);

describe('decay', () => {
  const tenBlocks = { decay: 1, blockSize: 16, requestBlocks: 10 };

  it('CA-51: overlaps 10 and 8 with backlogs 3200/0, 160/0 and 16/0', () => {
    for (const [backlog, expected] of [
      [3200, 10 / 21],
      [160, 5],
      [16, 10 / 1.1],
    ] as const) {
      const group = ranking([
        [holder('a', backlog), 10],
        [holder('b', 0), 8],
      ]);
      group.discount(tenBlocks, 0);
      expect(scores(group)).toEqual([expected, 8]);
    }
  });

  it('CA-50: the smallest backlog counts, wherever it stands', () => {
    const group = ranking([
      [holder('a', 320), 10],
      [holder('b', 160), 10],
      [holder('c', 480), 9],
    ]);
    group.discount(tenBlocks, 0);
    expect(scores(group)).toEqual([5, 10, 3]);
  });

  it('CA-50: who reports no waiting tokens is neither discounted nor part of the minimum', () => {
    const group = ranking([
      [holder('a', 320), 10],
      [holder('b', 160), 10],
      [holder('fieldless'), 10],
      [holder('dark', null), 10],
    ]);
    group.discount(tenBlocks, 0);
    expect(scores(group)).toEqual([5, 10, 10, 10]);
  });

  it('LR-30: a report that aged out is no report', () => {
    const group = ranking([
      [holder('a', 3200), 10],
      [holder('b', 0), 8],
    ]);
    group.discount(tenBlocks, 1000);
    expect(scores(group)).toEqual([10, 8]);
  });

  it('CA-50: a negative backlog counts as none', () => {
    const group = ranking([
      [holder('a', 160), 10],
      [holder('b', -50), 10],
    ]);
    group.discount(tenBlocks, 0);
    expect(scores(group)).toEqual([5, 10]);
  });

  it('CA-50: decay 0 changes nothing', () => {
    const group = ranking([
      [holder('a', 3200), 10],
      [holder('b', 0), 8],
    ]);
    group.discount({ ...tenBlocks, decay: 0 }, 0);
    expect(scores(group)).toEqual([10, 8]);
  });

  it('B48: extreme values yield a score, never NaN', () => {
    const group = ranking([
      [holder('a', Number.MAX_VALUE), 10],
      [holder('b', 0), 8],
    ]);
    group.discount({ decay: Number.MAX_VALUE, blockSize: 1, requestBlocks: 1 }, 0);
    expect(scores(group)).toEqual([0, 8]);
    group.keepGroup(1, () => 0.5);
    expect(ids(group)).toEqual(['b']);
  });
});

describe('group', () => {
  const threeTwoOne: readonly (readonly [WorkerSignals, number])[] = [
    [holder('a'), 10],
    [holder('b'), 8],
    [holder('c'), 6],
  ];

  it('CA-45: temperature 0 keeps all holders of the best score, in order', () => {
    const group = ranking([
      [holder('a'), 2],
      [holder('b'), 3],
      [holder('c'), 3],
      [holder('d'), 1],
    ]);
    group.keepGroup(0, random);
    expect(ids(group)).toEqual(['b', 'c']);
  });

  /** Share of evenly spaced draws that end at each group. */
  function shares(entries: readonly (readonly [WorkerSignals, number])[], temperature: number): Map<string, number> {
    const draws = 20_000;
    const counts = new Map<string, number>();
    for (let i = 0; i < draws; i++) {
      const group = ranking(entries);
      group.keepGroup(temperature, () => (i + 0.5) / draws);
      const key = ids(group).join('+');
      counts.set(key, (counts.get(key) ?? 0) + 1 / draws);
    }
    return counts;
  }

  it('CA-52: two candidates at temperature 1 and 0.1', () => {
    const pair = threeTwoOne.slice(0, 2);
    expect(shares(pair, 1).get('a')).toBeCloseTo(0.7311, 3);
    expect(shares(pair, 1).get('b')).toBeCloseTo(0.2689, 3);
    expect(shares(pair, 0.1).get('a')).toBeCloseTo(0.99995, 4);
  });

  it('CA-52: scores 10, 8, 6 at temperature 0.5', () => {
    const counts = shares(threeTwoOne, 0.5);
    expect(counts.get('a')).toBeCloseTo(0.6652, 3);
    expect(counts.get('b')).toBeCloseTo(0.2447, 3);
    expect(counts.get('c')).toBeCloseTo(0.09, 3);
  });

  it('CA-45: the sampled score brings all its holders along', () => {
    const counts = shares([...threeTwoOne, [holder('d'), 8]], 0.5);
    expect([...counts.keys()].sort()).toEqual(['a', 'b+d', 'c']);
  });

  it('CA-52: equal scores form one group at any temperature', () => {
    const group = ranking([
      [holder('a'), 4],
      [holder('b'), 4],
    ]);
    group.keepGroup(0.2, random);
    expect(ids(group)).toEqual(['a', 'b']);
  });

  it('CA-52: the lowest score counts, wherever it stands', () => {
    const [a, b, c] = threeTwoOne as [(typeof threeTwoOne)[0], (typeof threeTwoOne)[0], (typeof threeTwoOne)[0]];
    const counts = shares([a, c, b], 0.5);
    expect(counts.get('a')).toBeCloseTo(0.6652, 3);
    expect(counts.get('b')).toBeCloseTo(0.2447, 3);
    expect(counts.get('c')).toBeCloseTo(0.09, 3);
  });

  it('CA-45, LB-3: draws once above temperature 0, and not where nothing is to be drawn', () => {
    let draws = 0;
    const drawn = (entries: readonly (readonly [WorkerSignals, number])[], temperature: number): number => {
      draws = 0;
      const group = ranking(entries);
      group.keepGroup(temperature, () => {
        draws++;
        return 0.5;
      });
      return draws;
    };
    expect(drawn(threeTwoOne, 0.5)).toBe(1);
    expect(drawn(threeTwoOne, 0)).toBe(0);
    expect(drawn(threeTwoOne.slice(0, 1), 0.5)).toBe(0);
    expect(drawn([], 0.5)).toBe(0);
    const equal = threeTwoOne.map(([worker]) => [worker, 3] as const);
    expect(drawn(equal, 0.5)).toBe(0);
  });

  it('CA-52: a draw of 0 does not pick somebody whose weight is 0', () => {
    const group = ranking([...threeTwoOne].reverse());
    group.keepGroup(1e-9, () => 0);
    expect(ids(group)).toEqual(['a']);
  });

  it('CA-52: a draw of 1, which a host generator may return by mistake, still picks somebody', () => {
    const group = ranking(threeTwoOne);
    group.keepGroup(1e-9, () => 1);
    expect(ids(group)).toEqual(['a']);
  });

  it('LB-30: clear drops the references', () => {
    const group = ranking(threeTwoOne);
    group.clear();
    expect(group.workers).toEqual([]);
    group.keepGroup(0, random);
    expect(group.workers).toEqual([]);
  });
});

describe('for those who read it', () => {
  const mixed: readonly (readonly [WorkerSignals, number])[] = [
    [holder('a'), 2],
    [holder('b'), 10],
    [holder('c'), 2],
    [holder('d'), 9],
  ];

  it('CA-45, LB-13: the groups that may be left, best first', () => {
    const named = (temperature: number) =>
      ranking(mixed)
        .groups(temperature)
        .map((group) => group.map(({ id }) => id));
    expect(named(0)).toEqual([['b']]);
    expect(named(0.1)).toEqual([['b'], ['d'], ['a', 'c']]);
    expect(new OverlapRanking().groups(1)).toEqual([]);
  });

  it('CA-82: holders arranged by their position in the fleet, the last one first, scores with them', () => {
    const group = ranking(mixed);
    group.arrange(({ id }) => 'bdac'.indexOf(id));
    expect([ids(group), scores(group)]).toEqual([
      ['c', 'a', 'd', 'b'],
      [2, 2, 9, 10],
    ]);
  });
});
