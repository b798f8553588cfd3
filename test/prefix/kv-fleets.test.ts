import { describe, expect, it } from 'vitest';
import { StepBudget } from '../../src/runtime/maintenance-budget.js';
import { Fleet, range, stored } from './kv-helpers.js';

describe('fleets', () => {
  it('B23: five thousand workers hold one block and all count', () => {
    const ids = range(0, 5000).map((i) => `w${i}`);
    const fleet = new Fleet(ids);
    for (const id of ids) fleet.apply(id, stored(null, [1, range(0, 4)]));
    const overlaps = fleet.overlaps(range(0, 4));
    expect(Object.keys(overlaps).length).toBe(5000);
    expect(new Set(Object.values(overlaps))).toEqual(new Set([1]));
    for (const id of ids.slice(0, 4999)) fleet.feed.removeWorker(id);
    expect(fleet.overlaps(range(0, 4))).toEqual({ w4999: 1 });
  });

  it('B23: ten thousand workers in turn leave nothing behind, without any maintenance', () => {
    const fleet = new Fleet(['stays']);
    fleet.apply('stays', stored(null, [1, range(0, 4)]));
    const bytes = (): number => fleet.index.byteLength;
    let after100 = 0;
    let found = 0;
    for (let i = 0; i < 10_000; i++) {
      fleet.feed.addWorker(`w${i}`, ['m']);
      fleet.apply(`w${i}`, stored(null, [1, [i, i, i, i]], [2, range(4, 8)]), stored(null, [3, range(0, 4)]));
      if (fleet.index.overlaps([i, i, i, i], 0).count === 1) found++;
      fleet.feed.removeWorker(`w${i}`);
      if (i === 100) after100 = bytes();
    }
    expect(found).toBe(10_000);
    expect(bytes()).toBe(after100);
    expect([fleet.index.memberships, fleet.index.blockCount, fleet.index.workerCount]).toEqual([1, 1, 1]);
    expect(fleet.overlaps(range(0, 4))).toEqual({ stays: 1 });
  });

  it('CA-95, LB-5: a removed worker is unreadable at once, and its memory comes back in small steps', () => {
    const fleet = new Fleet(['big', 'other']);
    fleet.apply('other', stored(null, [1, range(0, 4)]));
    for (let first = 0; first < 100_000; first += 10_000) {
      const hashes = range(first + 1, first + 10_001);
      const tokens = Uint32Array.from(hashes.flatMap((name) => [name, 1, 2, 3]));
      fleet.apply('big', { type: 'stored', parent: first === 0 ? null : first, hashes, tokens, blockSize: 4 });
    }
    expect(fleet.overlaps([1, 1, 2, 3, 2, 1, 2, 3])).toEqual({ big: 2 });
    fleet.feed.removeWorker('big');
    expect([fleet.index.memberships, fleet.index.blocksOf('big')]).toEqual([1, 0]);
    expect(fleet.overlaps([1, 1, 2, 3])).toEqual({});
    let before = fleet.index.blockCount;
    let steps = 0;
    while (fleet.feed.maintain(0, new StepBudget(1))) {
      expect(before - fleet.index.blockCount).toBeLessThanOrEqual(64);
      before = fleet.index.blockCount;
      steps++;
    }
    expect(steps).toBeGreaterThan(1000);
    expect(fleet.index.blockCount).toBe(1);
    // A worker added meanwhile under the same id starts with nothing.
    fleet.feed.addWorker('big', ['m']);
    fleet.apply('big', stored(1, [2, range(4, 8)]));
    expect(fleet.feed.counts.orphanedBlocks).toBe(1);
  });

  it('CA-95: a slot is not given again while blocks still mention its former worker', () => {
    const fleet = new Fleet(['big', 'stays']);
    const hashes = range(1, 1001);
    const tokens = hashes.flatMap((name) => [name, 0]);
    fleet.apply('big', { type: 'stored', hashes, tokens, blockSize: 2 });
    fleet.apply('stays', { type: 'stored', hashes: [1], tokens: [5, 5], blockSize: 2 });
    fleet.feed.removeWorker('big');
    fleet.feed.addWorker('new', ['m']);
    fleet.apply('new', { type: 'stored', hashes: [1], tokens: [6, 6], blockSize: 2 });
    expect(fleet.overlaps(tokens)).toEqual({});
    fleet.advance(0);
    expect(fleet.overlaps(tokens)).toEqual({});
    expect([fleet.index.memberships, fleet.index.blockCount]).toEqual([2, 2]);
  });

  it('CA-82, B23: workers far apart are followed along a request, whoever else holds its later blocks', () => {
    const ids = range(0, 100).map((i) => `w${i}`);
    const fleet = new Fleet(ids);
    const chain = stored(null, [1, range(0, 4)], [2, range(4, 8)], [3, range(8, 12)]);
    for (const id of ids) fleet.apply(id, chain);
    for (const id of ids) if (id !== 'w70' && id !== 'w99') fleet.apply(id, { type: 'removed', hashes: [1] });
    for (const id of ids.slice(0, 90)) if (id !== 'w3') fleet.apply(id, { type: 'removed', hashes: [3] });
    expect(fleet.overlaps(range(0, 12))).toEqual({ w70: 2, w99: 3 });
  });

  it('B85: each rank of a worker is fed under its own id', () => {
    const fleet = new Fleet(['w1@0', 'w1@1']);
    fleet.apply('w1@0', stored(null, [1, range(0, 4)]));
    expect(fleet.overlaps(range(0, 4))).toEqual({ 'w1@0': 1 });
  });
});
