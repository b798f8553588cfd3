import { describe, expect, it } from 'vitest';
import type { KvEvent } from '../../src/prefix/kv-event.js';
import { StepBudget } from '../../src/runtime/maintenance-budget.js';
import { Fleet, range, stored } from './kv-helpers.js';

describe('pruning', () => {
  const block = (content: number): KvEvent => stored(null, [content, [content, content]]);

  it('CA-96: what was neither stored nor read for the time to live is gone, on reading', () => {
    const fleet = new Fleet(['w1']);
    fleet.feed.configure('m', { ttlMs: 10_000 });
    fleet.apply('w1', block(1), block(2));
    fleet.now = 5_000;
    expect(fleet.use([2, 2])).toEqual({ w1: 1 });
    fleet.now = 10_999;
    expect(fleet.overlaps([1, 1])).toEqual({ w1: 1 });
    fleet.now = 11_000;
    expect(fleet.overlaps([1, 1])).toEqual({});
    expect(fleet.overlaps([2, 2])).toEqual({ w1: 1 });
    fleet.now = 16_000;
    expect(fleet.overlaps([2, 2])).toEqual({});
    expect(fleet.index.isEmpty(fleet.now)).toBe(true);
  });

  it('CA-96: a query that led to no decision touches nothing', () => {
    const fleet = new Fleet(['w1']);
    fleet.feed.configure('m', { ttlMs: 10_000 });
    fleet.apply('w1', block(1));
    fleet.now = 8_000;
    expect(fleet.overlaps([1, 1])).toEqual({ w1: 1 });
    fleet.now = 11_000;
    expect(fleet.overlaps([1, 1])).toEqual({});
  });

  it('CA-96: the memory of expired blocks is freed by the check every 30 s', () => {
    const fleet = new Fleet(['w1', 'w2']);
    fleet.feed.configure('m', { ttlMs: 10_000 });
    fleet.apply('w1', block(1), block(2));
    fleet.now = 20_000;
    // Stored anew, it belongs to whoever stored it only.
    fleet.apply('w2', block(2));
    expect(fleet.overlaps([2, 2])).toEqual({ w2: 1 });
    fleet.apply('w2', { type: 'removed', hashes: [2] });
    fleet.apply('w1', { type: 'removed', hashes: [2] });
    fleet.advance(9_999);
    expect([fleet.index.memberships, fleet.index.blockCount]).toEqual([1, 1]);
    fleet.advance(1);
    expect([fleet.index.memberships, fleet.index.blockCount]).toEqual([0, 0]);
    // A removal of a pruned block is harmless, and its name is no parent any more.
    fleet.apply('w1', { type: 'removed', hashes: [1] }, stored(1, [5, [5, 5]]));
    expect(fleet.index.memberships).toBe(0);
    expect(fleet.feed.counts.orphanedBlocks).toBe(1);
  });

  it('CA-96: above the ceiling the oldest go, down to nine tenths of it', () => {
    const fleet = new Fleet(['w1', 'w2']);
    fleet.feed.configure('m', { maxEntries: 20 });
    for (let i = 1; i <= 25; i++) {
      fleet.now = (i - 1) * 1000;
      fleet.apply(i % 2 === 0 ? 'w1' : 'w2', block(i));
    }
    fleet.now = 28_000;
    expect(fleet.use([2, 2])).toEqual({ w1: 1 });
    fleet.advance(2_000);
    expect(fleet.index.blockCount).toBe(18);
    const left = range(1, 26).filter((i) => Object.keys(fleet.overlaps([i, i])).length > 0);
    expect(left).toEqual([2, ...range(9, 26)]);
  });

  it('CA-96: of blocks of one age as many go as are too many', () => {
    const fleet = new Fleet(['w1']);
    fleet.feed.configure('m', { maxEntries: 20 });
    fleet.apply('w1', ...range(1, 24).map(block));
    fleet.now = 10_000;
    fleet.apply('w1', block(50));
    fleet.advance(20_000);
    expect([fleet.index.blockCount, fleet.index.memberships]).toEqual([18, 18]);
    expect(fleet.overlaps([50, 50])).toEqual({ w1: 1 });
    // At or below the ceiling nothing is pruned.
    fleet.apply('w1', block(60), block(61));
    fleet.advance(30_000);
    expect(fleet.index.blockCount).toBe(20);
  });

  it('CA-96: what was touched in the last two seconds is never pruned for the ceiling', () => {
    const fleet = new Fleet(['w1']);
    fleet.feed.configure('m', { maxEntries: 10 });
    fleet.apply('w1', ...range(1, 6).map(block));
    fleet.now = 28_000;
    fleet.apply('w1', ...range(6, 26).map(block));
    fleet.advance(2_000);
    expect(fleet.index.blockCount).toBe(20);
    expect(fleet.overlaps([1, 1])).toEqual({});
    expect(fleet.overlaps([25, 25])).toEqual({ w1: 1 });
    fleet.advance(30_000);
    expect(fleet.index.blockCount).toBe(9);
  });

  it('CA-96, CA-95: blocks of removed workers do not count against the ceiling', () => {
    const fleet = new Fleet(['gone', 'stays']);
    fleet.feed.configure('m', { maxEntries: 50 });
    fleet.apply('stays', ...range(1, 21).map(block));
    fleet.now = 1000;
    fleet.apply('gone', ...range(100, 1100).map(block));
    fleet.now = 30_000;
    fleet.feed.removeWorker('gone');
    fleet.advance(0);
    expect([fleet.index.blockCount, fleet.index.memberships]).toEqual([20, 20]);
  });

  it('CA-96: pruning forgets what a worker holds without a name, too', () => {
    const fleet = new Fleet(['w1']);
    fleet.feed.configure('m', { ttlMs: 10_000 });
    // The name of the first block moves on to the second.
    fleet.apply('w1', stored(null, [1, [1, 1]]), stored(null, [1, [2, 2]]));
    fleet.advance(30_000);
    expect(fleet.index.blockCount).toBe(0);
    // What is stored in their places is held until its last name is gone, as ever.
    for (const content of [5, 6]) {
      fleet.apply(
        'w1',
        stored(null, [10 + content, [content, content]]),
        stored(null, [20 + content, [content, content]]),
      );
      fleet.apply('w1', { type: 'removed', hashes: [10 + content] });
      expect(fleet.overlaps([content, content])).toEqual({ w1: 1 });
      fleet.apply('w1', { type: 'removed', hashes: [20 + content] });
      expect(fleet.overlaps([content, content])).toEqual({});
    }
  });

  it('CA-96: a touch that comes too late revives nothing', () => {
    const fleet = new Fleet(['w1']);
    const chain = stored(null, [1, [1, 1]], [2, [2, 2]]);
    fleet.apply('w1', chain);
    const match = fleet.index.overlaps([1, 1, 2, 2], 0);
    fleet.apply('w1', { type: 'removed', hashes: [2] });
    fleet.index.touch(match, 0);
    fleet.apply('w1', stored(1, [2, [2, 2]]), stored(null, [3, [3, 3]]), stored(3, [4, [4, 4]]));
    expect(fleet.overlaps([1, 1, 2, 2])).toEqual({ w1: 2 });
    expect(fleet.overlaps([3, 3, 4, 4])).toEqual({ w1: 2 });
    expect([fleet.index.blockCount, fleet.index.memberships]).toEqual([4, 4]);
    const other = new Fleet(['w1']);
    other.apply('w1', chain);
    // A match of another index is none of its business.
    other.index.touch(match, 99_000);
    other.feed.configure('m', { ttlMs: 1_000 });
    other.now = 50_000;
    expect(other.overlaps([1, 1])).toEqual({});
  });

  it('CA-96: ages far beyond a day are told apart to the second', () => {
    const fleet = new Fleet(['w1']);
    fleet.feed.configure('m', { maxEntries: 10 });
    for (let i = 1; i <= 11; i++) {
      fleet.now = i * 20_000_000;
      fleet.apply('w1', block(i), block(i + 100));
      fleet.now += 1000;
      fleet.apply('w1', block(i + 200));
    }
    fleet.advance(3_000);
    expect(fleet.index.blockCount).toBe(9);
    const left = range(1, 212).filter((i) => Object.keys(fleet.overlaps([i, i])).length > 0);
    expect(left).toEqual([9, 10, 11, 109, 110, 111, 209, 210, 211]);
  });

  it('CA-96, LB-5: pruning takes small steps, and what it touches stays right in between', () => {
    const fleet = new Fleet(['w1', 'w2']);
    fleet.feed.configure('m', { ttlMs: 1_000 });
    const hashes = range(1, 20_001);
    const tokens = Uint32Array.from(hashes.flatMap((name) => [name, 0]));
    fleet.apply('w1', { type: 'stored', hashes, tokens, blockSize: 2 });
    fleet.apply('w2', { type: 'stored', hashes, tokens, blockSize: 2 });
    fleet.now = 30_000;
    let steps = 0;
    while (fleet.feed.maintain(fleet.now, new StepBudget(1))) {
      steps++;
      if (steps === 150) {
        fleet.apply('w1', { type: 'stored', hashes: hashes.slice(0, 100), tokens: tokens.slice(0, 200), blockSize: 2 });
        fleet.feed.reset('w2');
      }
    }
    expect(steps).toBeGreaterThan(300);
    expect([fleet.index.memberships, fleet.index.blockCount]).toEqual([100, 100]);
    expect(fleet.overlaps(tokens.slice(0, 400))).toEqual({ w1: 100 });
  });
});
