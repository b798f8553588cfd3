import { describe, expect, it } from 'vitest';
import { HashIndex, type HashPiece } from '../../src/prefix/hash-index.js';
import type { TokenIds } from '../../src/prefix/token-ids.js';
import { StepBudget } from '../../src/runtime/maintenance-budget.js';
import { range } from './kv-helpers.js';

const boundaries = [16, 32];
const ttlMs = 180_000;

function make(options: { maxHeads?: number; boundaries?: readonly number[] } = {}) {
  const index = new HashIndex({ boundaries, ttlMs, ...options });
  return {
    index,
    record: (tokens: TokenIds, worker: string, now = 0, namespace?: string) =>
      index.record(index.probe(tokens, namespace), worker, now),
    /** Holders at each applicable boundary, shallowest first. */
    holders: (tokens: TokenIds, now = 0, namespace?: string) => {
      const probe = index.probe(tokens, namespace);
      return range(0, probe.count).map((i) => index.holders(probe, i, now));
    },
  };
}

describe('HashIndex', () => {
  it('CA-71, CA-76: records at every applicable boundary and finds what shares a head', () => {
    const { index, record, holders } = make();
    expect(record(range(0, 40), 'w')).toBe(1);
    expect(index.headCount).toBe(2);
    expect(holders(range(0, 20))).toEqual([['w']]);
    expect(holders([...range(0, 16), ...range(100, 124)])).toEqual([['w'], []]);
    expect(holders(range(0, 40))).toEqual([['w'], ['w']]);
    expect(holders(range(0, 15))).toEqual([]);
    const probe = index.probe(range(0, 33));
    expect([probe.count, probe.boundary(0), probe.boundary(1)]).toEqual([2, 16, 32]);
  });

  it('CA-71: a request shorter than every boundary records nothing', () => {
    const { index, record } = make();
    expect(record(range(0, 15), 'w')).toBe(0);
    expect(record([], 'w')).toBe(0);
    expect([index.headCount, index.lastUse]).toEqual([0, 0]);
  });

  it('CA-73: a fourth holder replaces the stalest, and holders are listed most recent first', () => {
    const { record, holders } = make();
    const tokens = range(0, 16);
    for (const worker of ['a', 'b', 'c']) record(tokens, worker, 5);
    expect(holders(tokens, 5)).toEqual([['c', 'b', 'a']]);
    record(tokens, 'a', 5);
    expect(holders(tokens, 5)).toEqual([['a', 'c', 'b']]);
    record(tokens, 'd', 5);
    expect(holders(tokens, 5)).toEqual([['d', 'a', 'c']]);
  });

  it('CA-72: a holder is live while now − last touch ≤ ttl; probing does not refresh, recording does', () => {
    const { record, holders } = make();
    const tokens = range(0, 16);
    record(tokens, 'w', 1_000);
    expect(holders(tokens, 1_000 + ttlMs)).toEqual([['w']]);
    expect(holders(tokens, 1_001 + ttlMs)).toEqual([[]]);
    record(tokens, 'w', 1_000 + ttlMs);
    expect(holders(tokens, 1_000 + 2 * ttlMs)).toEqual([['w']]);
    expect(holders(tokens, 1_001 + 2 * ttlMs)).toEqual([[]]);
  });

  it('CA-73: an expired holder makes room before a live one', () => {
    const { record, holders } = make();
    const tokens = range(0, 16);
    record(tokens, 'a', 0);
    record(tokens, 'b', 100_000);
    record(tokens, 'c', 100_000);
    record(tokens, 'd', 200_000);
    expect(holders(tokens, 200_000)).toEqual([['d', 'c', 'b']]);
  });

  it('CA-75: a removed worker is gone from all heads at once, also when its id comes back', () => {
    const { index, record, holders } = make();
    record(range(0, 40), 'a');
    record(range(0, 40), 'b');
    index.removeWorker('a');
    expect(holders(range(0, 40))).toEqual([['b'], ['b']]);
    record(range(50, 90), 'a');
    expect(holders(range(0, 40))).toEqual([['b'], ['b']]);
    index.removeWorker('nobody');
    expect(JSON.stringify([...index.pieces(0)])).not.toContain('nobody');
  });

  it('CA-101: namespaces are apart from each other and from requests without one', () => {
    const { record, holders } = make();
    record(range(0, 16), 'plain');
    record(range(0, 16), 'x', 0, 'x');
    record(range(0, 16), 'y', 0, 'y');
    expect(holders(range(0, 16))).toEqual([['plain']]);
    expect(holders(range(0, 16), 0, 'x')).toEqual([['x']]);
    expect(holders(range(0, 16), 0, 'y')).toEqual([['y']]);
    expect(holders(range(0, 16), 0, '')).toEqual([[]]);
  });

  it('CA-71: a head does not depend on which other boundaries there are', () => {
    const one = make({ boundaries: [7, 9, 20] });
    const tokens = range(0, 30);
    one.record(tokens, 'w');
    one.index.boundaries = [9, 15, 20];
    expect(one.holders(tokens)).toEqual([['w'], [], ['w']]);
  });

  it('CA-71: the length of a head is part of it', () => {
    const { record, holders, index } = make({ boundaries: [1, 2, 3, 4] });
    record([0], 'w');
    expect(holders([0, 0, 0, 0])).toEqual([['w'], [], [], []]);
    expect(index.headCount).toBe(1);
  });

  it('LB-42: plain tokens are checked as far as they are read', () => {
    const { index } = make();
    const tokens = [...range(0, 32), -1, Number.NaN];
    expect(index.probe(tokens).count).toBe(2);
    expect(() => index.probe([...range(0, 31), -1])).toThrow(/^tokens: .* got -1 at 31/);
    // Nothing of a refused request is left to be recorded.
    expect(index.record(index.probe(range(0, 3)), 'w', 0)).toBe(0);
    expect(index.probe(Uint32Array.from(range(0, 32))).count).toBe(2);
  });

  it('CA-72, LB-5: a sweep frees what has expired in small steps and nothing else', () => {
    const { index, record } = make();
    for (let i = 0; i < 500; i++) record(range(i, i + 16), 'w', i);
    record(range(0, 16), 'w', 400);
    expect(index.headCount).toBe(500);
    const now = ttlMs + 300;
    let steps = 1;
    while (index.sweep(now, new StepBudget(0))) steps++;
    // 299 heads: those of 1 … 299; the first one was recorded again.
    expect(index.headCount).toBe(201);
    expect(steps).toBeGreaterThan(8);
    expect(index.sweep(now, new StepBudget(0))).toBe(false);
  });

  it('CA-75: heads without live holders are freed by the sweep, whatever their age', () => {
    const { index, record } = make();
    record(range(0, 40), 'a');
    record(range(9, 40), 'b');
    index.removeWorker('a');
    index.sweep(0, new StepBudget(100));
    expect(index.headCount).toBe(1);
  });

  it('LB-31: at the bound the stalest head makes room', () => {
    const { index, record, holders } = make({ maxHeads: 100 });
    for (let i = 0; i < 100; i++) record(range(i, i + 16), `w${i}`, i);
    record(range(0, 16), 'again', 100);
    record(range(500, 516), 'new', 101);
    expect(index.headCount).toBe(100);
    expect(holders(range(0, 16), 101)).toEqual([['again', 'w0']]);
    expect(holders(range(1, 17), 101)).toEqual([[]]);
    expect(holders(range(2, 18), 101)).toEqual([['w2']]);
  });

  it('LB-34: placements merge to the same state in any order, any number of times', () => {
    const tokens = range(0, 16);
    const deltas = [
      ['a', 1],
      ['b', 2],
      ['c', 2],
      ['d', 3],
      ['e', 1],
    ] as const;
    const orders = permutations(deltas);
    expect(orders.length).toBe(120);
    const results = orders.map((order) => {
      const { index, holders } = make();
      for (const [worker, use] of [...order, ...order]) index.merge(index.probe(tokens), worker, use, 7);
      return JSON.stringify([holders(tokens, 7), index.lastUse]);
    });
    expect(new Set(results)).toEqual(new Set([JSON.stringify([[['d', 'c', 'b']], 3])]));
  });

  it('LB-34: of placements of the same use those of the higher ids stay, in whatever order they arrive', () => {
    const tokens = range(0, 16);
    for (const order of permutations(['a', 'b', 'c', 'd'])) {
      const { index, holders } = make();
      const probe = index.probe(tokens);
      for (const worker of order) index.merge(probe, worker, 4, 7);
      expect(holders(tokens, 7)).toEqual([['d', 'c', 'b']]);
      expect(index.merge(index.probe(tokens), 'a', 4, 7)).toBe(false);
      expect(index.merge(index.probe(tokens), 'b', 4, 7)).toBe(false);
    }
  });

  it('LB-34: a repeated placement changes nothing, not even the touch', () => {
    const { index, holders, record } = make();
    const tokens = range(0, 16);
    expect(index.merge(index.probe(tokens), 'a', 5, 0)).toBe(true);
    expect(index.merge(index.probe(tokens), 'a', 5, 100)).toBe(false);
    expect(index.merge(index.probe(tokens), 'a', 4, 100)).toBe(false);
    expect(holders(tokens, ttlMs + 1)).toEqual([[]]);
    // What is recorded here comes after all that was merged.
    expect(record(tokens, 'b', 100)).toBe(6);
    expect(index.merge(index.probe(range(0, 3)), 'a', 9, 0)).toBe(false);
  });

  it('LB-33: pieces restore what is live, for the workers that are known', () => {
    const { index, record } = make();
    record(range(0, 40), 'a', 1_000);
    record(range(0, 40), 'b', 2_000);
    record(range(7, 30), 'c', 3_000);
    record(range(8, 30), 'old', -ttlMs);
    const pieces = [...index.pieces(4_000, 2)];
    expect(pieces.length).toBe(2);
    const copy = make();
    const results = pieces.map((piece) => {
      const plain = JSON.parse(JSON.stringify(piece)) as HashPiece;
      return copy.index.restore(plain, (worker) => worker !== 'b', 500_000);
    });
    expect(results).toEqual([
      { restored: 2, skipped: 2 },
      { restored: 1, skipped: 0 },
    ]);
    expect(copy.holders(range(0, 40), 500_000)).toEqual([['a'], ['a']]);
    // Ages go on where they were: a was 3 s old.
    expect(copy.holders(range(0, 40), 500_000 + ttlMs - 3_000)).toEqual([['a'], ['a']]);
    expect(copy.holders(range(0, 40), 500_001 + ttlMs - 3_000)).toEqual([[], []]);
    expect(copy.index.lastUse).toBe(3);
  });

  it('LB-33: the keys of heads are pinned, since pieces carry them', () => {
    const index = new HashIndex({ boundaries: [1, 2, 5], ttlMs: 1000 });
    const keysOf = (namespace: string | undefined): number[][] => {
      const probe = index.probe([1, 2, 3, 4, 0xffffffff], namespace);
      return [0, 1, 2].map((i) => [probe.low(i), probe.high(i)]);
    };
    expect(keysOf(undefined)).toEqual([
      [-2012582986, 1773717748],
      [-1153369304, 1647819899],
      [-1597844093, -1980590059],
    ]);
    expect(keysOf('n')).toEqual([
      [-1280920619, -724839360],
      [-507266349, -1485336317],
      [221561426, -1843656754],
    ]);
  });

  it('LB-33: other calls may come between pieces', () => {
    const { index, record } = make();
    for (let i = 0; i < 10; i++) record(range(i, i + 16), i === 9 ? 'gone' : 'w', 1_000 + i);
    const seen: number[] = [];
    let isFirst = true;
    for (const { workers, heads } of index.pieces(1_100, 1)) {
      expect(workers).toEqual(['w']);
      seen.push(heads[0] as number);
      expect(heads[4]).toBeGreaterThanOrEqual(0);
      if (!isFirst) continue;
      isFirst = false;
      index.removeWorker('gone');
      record(range(0, 16), 'w', 2_000);
      record(range(1, 17), 'w', 2_000);
      index.sweep(1_004 + ttlMs, new StepBudget(100));
    }
    // Heads 2 and 3 had expired, that of the removed worker was freed or passed over.
    expect(seen.length).toBe(7);
    expect(new Set(seen).size).toBe(7);
  });

  it('LB-33: malformed pieces are skipped and counted', () => {
    const { index } = make();
    const malformed: readonly unknown[] = [
      {},
      { workers: ['w'], heads: 5 },
      { workers: ['w'], heads: [1] },
      { workers: ['w'], heads: [1, 2 ** 40, 1, 0, 0, 1] },
      { workers: ['w'], heads: [1, 2, 4, 0, 0, 1] },
      { workers: ['w'], heads: [1, 2, 0] },
      { workers: [7], heads: [1, 2, 1, 0, 0, 1] },
      { workers: ['w'], heads: [1, 2, 1, 1, 0, 1] },
      { workers: ['w'], heads: [1, 2, 1, 0, -1, 1] },
      { workers: ['w'], heads: [1, 2, 1, 0, 'x', 1] },
      { workers: ['w'], heads: [1, 2, 1, 0, '5', 1] },
      { workers: ['w'], heads: [1, 2, 1, 0, null, 1] },
      { workers: ['w'], heads: [1, 2, 1, 0, 0, 1.5] },
      { workers: ['w'], heads: [1, 2, 1, 0, 0] },
      { workers: ['w'], heads: [1, 2, 1, 0, ttlMs + 1, 1] },
    ];
    for (const piece of malformed) {
      expect(index.restore(piece as HashPiece, () => true, 0)).toEqual({ restored: 0, skipped: 1 });
    }
    expect(index.headCount).toBe(0);
    expect(index.restore({ workers: ['w'], heads: [1, 2, 1, 0, 0, 8] }, () => true, 0).restored).toBe(1);
    expect(index.restore({ workers: ['w'], heads: [3, 4, 1, 0, 0, 5] }, () => true, 0).restored).toBe(1);
    expect([index.headCount, index.lastUse]).toEqual([2, 8]);
  });
});

function permutations<T>(list: readonly T[]): T[][] {
  if (list.length === 0) return [[]];
  return list.flatMap((one, i) =>
    permutations([...list.slice(0, i), ...list.slice(i + 1)]).map((rest) => [one, ...rest]),
  );
}

describe('wrong arguments', () => {
  it('LB-42: no piece size makes the walk over the heads endless', () => {
    const { index, record } = make();
    record(range(0, 20), 'a');
    for (const size of [0, -1, Number.NaN, null as never]) {
      expect(() => [...index.pieces(0, size)]).toThrow(/^headsPerPiece: expected a number above 0/);
    }
    expect([...index.pieces(0, 1)]).toHaveLength(1);
  });

  it('LB-33: a worker that is named by no number is skipped and counted', () => {
    const { index } = make();
    const piece = { workers: ['a'], heads: [1, 2, 1, Object.create(null), 0, 1] };
    expect(index.restore(piece, () => true, 0)).toEqual({ restored: 0, skipped: 1 });
  });

  it('LB-42: a refused record and a refused merge leave no use and no worker behind', () => {
    const { index } = make();
    const probe = index.probe(range(0, 20));
    expect(() => index.record(probe, 5 as never, 0)).toThrow(/^worker: /);
    expect(() => index.record(probe, 'a', 1n as never)).toThrow(/^now: /);
    expect(() => index.merge(probe, 'a', 0.5, 0)).toThrow(/^use: /);
    expect(() => index.probe('tokens' as never)).toThrow(/^tokens: /);
    expect([index.lastUse, index.headCount]).toEqual([0, 0]);
  });

  it('LB-42: restoring asks a function, at a time that is a number', () => {
    const { index } = make();
    const piece = { workers: ['w'], heads: [1, 2, 1, 0, 0, 1] };
    expect(() => index.restore(piece, 'w' as never, 0)).toThrow(/^accepts: expected a function, got "w"$/);
    expect(() => index.restore(piece, () => true, '0' as never)).toThrow(/^now: expected a number, got "0"$/);
    expect(() => index.merge(index.probe(range(0, 20)), 'a', 1, '0' as never)).toThrow(/^now: expected a number/);
    expect(() => index.pieces('0' as never).next()).toThrow(/^now: expected a number/);
    expect(index.headCount).toBe(0);
  });
});
