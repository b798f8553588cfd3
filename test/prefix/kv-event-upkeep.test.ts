import { describe, expect, it } from 'vitest';
import { BlockTable } from '../../src/prefix/block-table.js';
import type { KvEvent } from '../../src/prefix/kv-event.js';
import { Map64 } from '../../src/prefix/map64.js';
import type { MaintenanceBudget } from '../../src/runtime/maintenance-budget.js';
import { Fleet, range, stored } from './kv-helpers.js';

const block = (content: number): KvEvent => stored(null, [content, [content, content]]);

/** A fleet whose blocks live for 10 s. */
function shortLived(...workers: readonly string[]): Fleet {
  const fleet = new Fleet(workers);
  fleet.feed.configure('m', { ttlMs: 10_000 });
  return fleet;
}

describe('what is there to find', () => {
  it('CA-80: an index is empty until something is stored, and again when all of it is removed', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', block(1));
    expect(fleet.index.isEmpty(0)).toBe(false);
    fleet.apply('w1', { type: 'removed', hashes: [1] });
    expect(fleet.index.isEmpty(0)).toBe(true);
  });

  it('CA-80, CA-96: an index is empty from the second in which its last block is too old', () => {
    const fleet = shortLived('w1');
    fleet.now = 5_000;
    fleet.apply('w1', block(1));
    expect([15_999, 16_000].map((now) => fleet.index.isEmpty(now))).toEqual([false, true]);
  });

  it('CA-80, CA-96: a block that is read keeps the index, a request that finds nothing does not', () => {
    const fleet = shortLived('w1');
    fleet.apply('w1', block(1));
    fleet.now = 5_000;
    expect(fleet.use([9, 9])).toEqual({});
    expect([10_999, 11_000].map((now) => fleet.index.isEmpty(now))).toEqual([false, true]);
    fleet.now = 7_000;
    expect(fleet.use([1, 1])).toEqual({ w1: 1 });
    expect([17_999, 18_000].map((now) => fleet.index.isEmpty(now))).toEqual([false, true]);
  });

  it('CA-96: a match of another index touches nothing, whatever this one was asked last', () => {
    const fleet = shortLived('w1');
    const other = shortLived('w1');
    for (const each of [fleet, other]) each.apply('w1', block(1));
    const match = fleet.index.overlaps([1, 1], 0);
    expect(other.overlaps([1, 1])).toEqual({ w1: 1 });
    other.index.touch(match, 9_000);
    other.now = 11_000;
    expect([other.overlaps([1, 1]), other.index.isEmpty(11_000)]).toEqual([{}, true]);
  });

  it('CA-96: a block that is too old is no parent', () => {
    const fleet = shortLived('w1');
    fleet.apply('w1', block(1));
    fleet.now = 10_999;
    fleet.apply('w1', stored(1, [2, [2, 2]]));
    expect(fleet.overlaps([1, 1, 2, 2])).toEqual({ w1: 2 });
    fleet.now = 11_000;
    fleet.apply('w1', stored(1, [3, [3, 3]], [4, [4, 4]]));
    expect([fleet.feed.counts.orphanedBlocks, fleet.index.memberships]).toEqual([2, 2]);
  });

  it('CA-95: a removed worker is not found, though its memory has not come back yet', () => {
    const fleet = new Fleet(['big', 'stays']);
    fleet.apply('stays', block(1));
    fleet.apply('big', ...range(1, 201).map(block));
    fleet.feed.removeWorker('big');
    expect(fleet.index.blockCount).toBeGreaterThan(100);
    expect(range(1, 201).map((i) => fleet.overlaps([i, i]))).toEqual([{ stays: 1 }, ...range(2, 201).map(() => ({}))]);
    fleet.advance(0);
    expect([fleet.index.blockCount, fleet.index.blocksOf('big'), fleet.index.memberships]).toEqual([1, 0, 1]);
  });
});

describe('maintenance', () => {
  it('CA-96: expired blocks are looked for every 30 s', () => {
    const fleet = shortLived('w1');
    fleet.apply('w1', block(1));
    fleet.advance(29_999);
    expect(fleet.index.blockCount).toBe(1);
    fleet.advance(1);
    expect(fleet.index.blockCount).toBe(0);
    fleet.apply('w1', block(2));
    fleet.advance(29_999);
    expect(fleet.index.blockCount).toBe(1);
    fleet.advance(1);
    expect(fleet.index.blockCount).toBe(0);
  });

  it('LB-5: an index without work takes nothing of the budget', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', block(1));
    let looks = 0;
    const budget: MaintenanceBudget = { spent: () => ++looks > 100 };
    expect(fleet.feed.maintain(0, budget)).toBe(false);
    expect(looks).toBe(0);
    // A pruning that finds nothing to do is one step.
    expect(fleet.feed.maintain(30_000, budget)).toBe(false);
    expect(looks).toBe(1);
  });

  it('B23: the memory of an index is that of its blocks and of the names of each worker', () => {
    const table = new BlockTable();
    table.add(1, 2, 0);
    const names = new Map64().byteLength;
    const fleet = new Fleet(['w1', 'w2']);
    fleet.apply('w1', block(1));
    expect(fleet.index.byteLength).toBe(table.byteLength + names);
    fleet.apply('w2', block(1));
    expect(fleet.index.byteLength).toBe(table.byteLength + 2 * names);
  });
});
