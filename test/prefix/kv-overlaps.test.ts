import { describe, expect, it } from 'vitest';
import { KvOverlaps } from '../../src/prefix/kv-overlaps.js';
import { range } from './kv-helpers.js';

/** (word index, bits) pairs as `WorkerSets` gives them. */
const words = (...pairs: readonly number[]): Int32Array => Int32Array.from(pairs);

/** Overlaps whose workers are named by their slots, but for those that were removed. */
function started(removed: readonly number[] = []) {
  const overlaps = new KvOverlaps((slot) => (removed.includes(slot) ? undefined : `s${slot}`));
  overlaps.start(4, 10);
  const listed = () => range(0, overlaps.count).map((i) => [overlaps.worker(i), overlaps.overlap(i)]);
  return { overlaps, listed };
}

describe('KvOverlaps', () => {
  it('CA-82: who drops out has as many blocks as were read before, who stays has all', () => {
    const { overlaps, listed } = started();
    overlaps.follow(words(0, 0b1011, 2, 0b1));
    expect(overlaps.narrow(words(0, 0b0011, 2, 0b1), 1)).toBe(true);
    expect(overlaps.narrow(words(0, 0b0001, 2, 0b1), 4)).toBe(true);
    overlaps.finish(6);
    expect(listed()).toEqual([
      ['s3', 1],
      ['s1', 4],
      ['s0', 6],
      ['s64', 6],
    ]);
  });

  it('CA-82: workers are found among the holders of a block, whoever else holds it', () => {
    const { overlaps, listed } = started();
    overlaps.follow(words(1, 0b1, 5, 0b10));
    expect(overlaps.narrow(words(0, -1, 1, 0b11, 3, -1, 4, -1, 5, 0b11, 9, 0b1), 1)).toBe(true);
    expect(listed()).toEqual([]);
    overlaps.finish(2);
    expect(listed()).toEqual([
      ['s32', 2],
      ['s161', 2],
    ]);
  });

  it('CA-82: equal bits of another word are other workers', () => {
    const { overlaps, listed } = started();
    overlaps.follow(words(0, 0b11, 2, 0b1));
    expect(overlaps.narrow(words(1, 0b11, 2, 0b1), 3)).toBe(true);
    overlaps.finish(4);
    expect(listed()).toEqual([
      ['s0', 3],
      ['s1', 3],
      ['s64', 4],
    ]);
  });

  it('CA-82: once nobody is left the walk may end, and nobody is listed twice', () => {
    const { overlaps, listed } = started();
    overlaps.follow(words(0, 0b1, 1, 0b1, 2, 0b1));
    expect(overlaps.narrow(words(0, 0b1), 1)).toBe(true);
    expect(overlaps.narrow(words(0, 0b1), 2)).toBe(true);
    expect(overlaps.narrow(words(7, 0b1), 3)).toBe(false);
    overlaps.finish(4);
    overlaps.finish(5);
    expect(listed()).toEqual([
      ['s32', 1],
      ['s64', 1],
      ['s0', 3],
    ]);
  });

  it('CA-95: a removed worker is not listed, however long the sets mention it', () => {
    const { overlaps, listed } = started([1, 33]);
    overlaps.follow(words(0, 0b111, 1, 0b11));
    overlaps.narrow(words(0, 0b011), 1);
    overlaps.finish(2);
    expect(listed()).toEqual([
      ['s2', 1],
      ['s32', 1],
      ['s0', 2],
    ]);
  });

  it('B23: any number of workers is listed, each with its own overlap', () => {
    const { overlaps, listed } = started();
    const everybody = words(...range(0, 100).flatMap((index) => [index, -1]));
    const later = words(...range(50, 100).flatMap((index) => [index, -1]));
    overlaps.follow(everybody);
    expect(overlaps.narrow(later, 7)).toBe(true);
    overlaps.finish(9);
    expect(listed()).toEqual(range(0, 3200).map((slot) => [`s${slot}`, slot < 1600 ? 7 : 9]));
  });

  it('CA-96: the blocks that were read are known, however many they are', () => {
    const { overlaps } = started();
    const read = () => [...overlaps.path.subarray(0, overlaps.pathLength)];
    for (const block of range(1000, 1300)) overlaps.visit(block);
    expect(read()).toEqual(range(1000, 1300));
    overlaps.start(4, 10);
    expect(read()).toEqual([]);
    overlaps.visit(5);
    expect(read()).toEqual([5]);
  });

  it('CA-82: a request starts with nothing of the one before', () => {
    const { overlaps, listed } = started();
    overlaps.follow(words(0, 0b1, 1, 0b1));
    overlaps.narrow(words(0, 0b1), 1);
    overlaps.start(16, 3);
    expect([overlaps.count, overlaps.blockSize, overlaps.requestBlocks]).toEqual([0, 16, 3]);
    overlaps.finish(2);
    expect(listed()).toEqual([]);
  });
});
