import { describe, expect, it } from 'vitest';
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

  it('LB-42: where nobody holds anything, nothing of a request is read', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', three, { type: 'removed', hashes: [1, 2, 3] });
    const match = fleet.index.overlaps([-1, 0.5, 0, 0, 0], 0);
    expect([match.count, match.requestBlocks, match.blockSize]).toEqual([0, 1, 4]);
    fleet.apply('w1', three);
    expect(() => fleet.overlaps([-1, 0.5, 0, 0, 0])).toThrow(TypeError);
  });

  it('CA-81, CA-91: without a learned block size a request has no blocks', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', three);
    fleet.feed.reset('w1');
    const match = fleet.index.overlaps(range(0, 12), 0);
    expect([match.count, match.requestBlocks, match.blockSize]).toEqual([0, 0, 0]);
    expect(fleet.index.blockSize).toBeUndefined();
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

  it('CA-90: a removal takes the names it has and no others', () => {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', three, { type: 'removed', hashes: [1] });
    expect(fleet.index.blocksOf('w1')).toBe(2);
    fleet.apply('w1', { type: 'removed', hashes: [2] }, { type: 'removed', hashes: [3] });
    expect(fleet.index.blocksOf('w1')).toBe(0);
  });

  it('CA-90, CA-95: a worker that stored nothing has nothing to lose', () => {
    const fleet = new Fleet(['w1', 'idle']);
    fleet.apply('w1', three);
    const { index } = fleet;
    expect(fleet.apply('idle', { type: 'removed', hashes: [1] }, { type: 'cleared' })).toEqual({ result: 'applied' });
    fleet.feed.reset('idle');
    fleet.feed.removeWorker('idle');
    expect([index.blocksOf('idle'), index.blocksOf('w1'), index.memberships, index.workerCount]).toEqual([0, 3, 3, 1]);
    expect(fleet.overlaps(range(0, 12))).toEqual({ w1: 3 });
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
