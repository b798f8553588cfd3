import { describe, expect, it } from 'vitest';
import type { KvEvent } from '../../src/prefix/kv-event.js';
import { StepBudget } from '../../src/runtime/maintenance-budget.js';
import { Fleet, range, stored } from './kv-helpers.js';

const three = stored(null, [1, range(0, 4)], [2, range(4, 8)], [3, range(8, 12)]);

describe('overlap', () => {
  it('CA-82, CC-4: counts the leading blocks each worker holds', () => {
    const fleet = new Fleet(['w1', 'w2']);
    fleet.apply('w1', three);
    fleet.apply('w2', stored(null, [11, range(0, 4)]));
    expect(fleet.overlaps(range(0, 12))).toEqual({ w1: 3, w2: 1 });
    expect(fleet.index.memberships).toBe(4);
    expect(fleet.index.blockCount).toBe(3);
  });

  it('CA-81: drops the partial tail, and a request without a full block misses', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', three);
    expect(fleet.overlaps(range(0, 7))).toEqual({ w1: 1 });
    expect(fleet.overlaps(range(0, 3))).toEqual({});
    expect(fleet.overlaps([])).toEqual({});
    const match = fleet.index.overlaps(range(0, 11), 0);
    expect([match.requestBlocks, match.blockSize]).toEqual([2, 4]);
  });

  it('CA-82: lists workers in ascending order of overlap', () => {
    const fleet = new Fleet(['w1', 'w2', 'w3']);
    fleet.apply('w1', three);
    fleet.apply('w2', stored(null, [1, range(0, 4)]));
    fleet.apply('w3', stored(null, [1, range(0, 4)], [2, range(4, 8)]));
    const match = fleet.index.overlaps(range(0, 12), 0);
    expect(range(0, match.count).map((i) => [match.worker(i), match.overlap(i)])).toEqual([
      ['w2', 1],
      ['w3', 2],
      ['w1', 3],
    ]);
  });

  it('B13: a block is known together with its history', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', stored(null, [1, range(1, 5)], [2, range(5, 9)], [3, range(9, 13)]));
    expect(fleet.overlaps(range(5, 17))).toEqual({});
    expect(fleet.overlaps([...range(1, 9), 99, 99, 99, 99])).toEqual({ w1: 2 });
  });

  it('CA-83, B13: the same content behind another prefix is another block', () => {
    const fleet = new Fleet(['w1', 'w2']);
    fleet.apply('w1', stored(null, [1, range(0, 4)], [2, range(4, 8)]));
    fleet.apply('w2', stored(null, [9, range(100, 104)], [10, range(4, 8)]));
    expect(fleet.overlaps(range(0, 8))).toEqual({ w1: 2 });
  });

  it('B21: a gap ends the overlap, and block 0 is required', () => {
    const fleet = new Fleet(['w1', 'w2']);
    const four = stored(null, [1, range(0, 4)], [2, range(4, 8)], [3, range(8, 12)], [4, range(12, 16)]);
    fleet.apply('w1', four, { type: 'removed', hashes: [2] });
    fleet.apply('w2', four, { type: 'removed', hashes: [1] });
    expect(fleet.overlaps(range(0, 16))).toEqual({ w1: 1 });
    expect(fleet.index.memberships).toBe(6);
    fleet.apply('w1', stored(1, [2, range(4, 8)]));
    expect(fleet.overlaps(range(0, 16))).toEqual({ w1: 4 });
  });

  it('LB-42: plain tokens are checked as far as they are read', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', three);
    const bad = [...range(0, 8), 1.5, 0, 0, 0] as number[];
    expect(() => fleet.overlaps(bad)).toThrow(TypeError);
    expect(() => fleet.overlaps(bad)).toThrow(/^tokens: .* got 1\.5 at 8/);
    // The walk ends at block 0: what follows is not read.
    expect(fleet.overlaps([7, 7, 7, 7, Number.NaN, -1, 2 ** 32, 0])).toEqual({});
    for (const token of [-1, 2 ** 32, Number.NaN, '1', undefined, null, 1n]) {
      expect(() => fleet.overlaps([0, 1, 2, token as number])).toThrow(TypeError);
    }
    expect(fleet.overlaps(Uint32Array.from(range(0, 12)))).toEqual({ w1: 3 });
  });

  it('CA-81: token ids use all their 32 bits', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', stored(null, [1, [0xffffffff, 0x80000000]]));
    expect(fleet.overlaps([0xffffffff, 0x80000000])).toEqual({ w1: 1 });
    expect(fleet.overlaps([0x7fffffff, 0])).toEqual({});
  });
});

describe('events', () => {
  it('CA-90, B10: storing twice adds nothing', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', three, three);
    expect(fleet.index.memberships).toBe(3);
    fleet.apply('w1', { type: 'removed', hashes: [1, 2, 3] });
    expect(fleet.index.memberships).toBe(0);
    fleet.apply('w1', { type: 'removed', hashes: [1, 2, 3] });
    expect([fleet.index.memberships, fleet.index.blockCount]).toEqual([0, 0]);
  });

  it('CA-90: a stored block with a parent continues its chain', () => {
    const fleet = new Fleet(['w1', 'w2']);
    fleet.apply('w1', stored(null, [1, range(0, 4)]), stored(1, [2, range(4, 8)]), stored(2, [3, range(8, 12)]));
    expect(fleet.overlaps(range(0, 12))).toEqual({ w1: 3 });
    // A parent is looked up among the worker's own names.
    fleet.apply('w2', stored(2, [3, range(8, 12)]));
    expect(fleet.overlaps(range(0, 12))).toEqual({ w1: 3 });
  });

  it('CA-90: blocks of an unknown parent are ignored and counted, and so are their children', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', stored(77, [1, range(0, 4)], [5, range(4, 8)]), stored(1, [2, range(4, 8)]));
    expect(fleet.overlaps(range(0, 8))).toEqual({});
    expect(fleet.index.memberships).toBe(0);
    expect(fleet.feed.counts.orphanedBlocks).toBe(3);
  });

  it('CA-90: removing a name nobody gave changes nothing; children stay', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', { type: 'removed', hashes: [5] }, three, { type: 'removed', hashes: [99] });
    expect(fleet.overlaps(range(0, 12))).toEqual({ w1: 3 });
    fleet.apply('w1', { type: 'removed', hashes: [1] });
    expect(fleet.index.memberships).toBe(2);
  });

  it('CA-90, B81: cleared drops the blocks of that worker only', () => {
    const fleet = new Fleet(['w1', 'w2']);
    fleet.apply('w1', stored(null, [1, range(0, 4)], [2, range(4, 8)]));
    fleet.apply('w2', stored(null, [1, range(0, 4)]));
    fleet.apply('w1', { type: 'cleared' });
    expect(fleet.overlaps(range(0, 8))).toEqual({ w2: 1 });
    expect(fleet.index.memberships).toBe(1);
    fleet.apply('w1', stored(null, [1, range(0, 4)]));
    expect(fleet.overlaps(range(0, 8))).toEqual({ w1: 1, w2: 1 });
    // Names from before are gone, too.
    fleet.apply('w1', stored(2, [3, range(8, 12)]));
    expect(fleet.feed.counts.orphanedBlocks).toBe(1);
  });

  it('CA-90: the latest block of a name is the one it names', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', stored(null, [1, range(0, 4)]), stored(null, [1, range(50, 54)]));
    expect(fleet.index.memberships).toBe(2);
    fleet.apply('w1', stored(1, [2, range(54, 58)]));
    expect(fleet.overlaps(range(50, 58))).toEqual({ w1: 2 });
    fleet.apply('w1', { type: 'removed', hashes: [1] });
    expect(fleet.overlaps(range(50, 58))).toEqual({});
    // The former block was never removed.
    expect(fleet.overlaps(range(0, 4))).toEqual({ w1: 1 });
    fleet.feed.removeWorker('w1');
    expect(fleet.feed.indexFor('m')).toBeUndefined();
  });

  it('CA-90: a block is held until the last of its names is removed', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', stored(null, [1, range(0, 4)]), stored(null, [2, range(0, 4)]), stored(null, [2, range(0, 4)]));
    expect(fleet.index.memberships).toBe(1);
    fleet.apply('w1', { type: 'removed', hashes: [1] });
    expect(fleet.overlaps(range(0, 4))).toEqual({ w1: 1 });
    fleet.apply('w1', { type: 'removed', hashes: [2] });
    expect(fleet.index.memberships).toBe(0);
  });

  it('CA-90: an empty block list does nothing, not even teach a block size', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', { type: 'stored', hashes: [], tokens: [], blockSize: 7 }, { type: 'stored', blocks: [] });
    expect(fleet.feed.counts.rejectedEvents).toBe(0);
    expect(fleet.feed.indexFor('m')).toBeUndefined();
  });
});

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
