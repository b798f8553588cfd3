import { describe, expect, it } from 'vitest';
import type { CheckedEvent } from '../../src/prefix/kv-event-reader.js';
import { KvEventReader } from '../../src/prefix/kv-event-reader.js';
import { range } from './kv-helpers.js';

const read = (event: unknown): CheckedEvent | undefined => new KvEventReader().read(event);

/** The lanes of all names. */
const lanesOf = (event: CheckedEvent | undefined): number[] => [
  ...(event?.keys.subarray(0, 2 * event.count) ?? ['refused' as never]),
];

describe('KvEventReader', () => {
  it('CA-90, B87: what is no object with a known type is refused', () => {
    const typed = Object.assign(() => 0, { type: 'cleared' });
    for (const event of [null, undefined, 7, 'cleared', Symbol('cleared'), typed, {}, { type: 'Cleared' }]) {
      expect(read(event)).toBeUndefined();
    }
    expect(read({ type: 'cleared' })?.type).toBe('cleared');
  });

  it('CA-90: each name has its two lanes, in both forms of a stored event and in a removal', () => {
    const hashes = [2n ** 32n + 5n, 5n, 2n ** 33n + 6n];
    const lanes = [5, 1, 5, 0, 6, 2];
    expect(lanesOf(read({ type: 'removed', hashes }))).toEqual(lanes);
    expect(lanesOf(read({ type: 'stored', hashes, tokens: [1, 2, 3], blockSize: 1 }))).toEqual(lanes);
    const blocks = hashes.map((hash) => ({ hash, tokens: [1] }));
    expect(lanesOf(read({ type: 'stored', blocks }))).toEqual(lanes);
  });

  it('CA-90: an event has any number of names', () => {
    const hashes = range(0, 500);
    const lanes = hashes.flatMap((name) => [name, 0]);
    expect(lanesOf(read({ type: 'removed', hashes }))).toEqual(lanes);
    expect(lanesOf(read({ type: 'stored', blocks: hashes.map((hash) => ({ hash, tokens: [hash] })) }))).toEqual(lanes);
  });

  it('CA-90, B87: names in anything but a list are refused, even where each of its items were a name', () => {
    for (const hashes of [undefined, null, '12', Uint8Array.of(1, 2), { 0: 1, length: 1 }]) {
      expect(read({ type: 'removed', hashes })).toBeUndefined();
      expect(read({ type: 'stored', hashes, tokens: [1, 2], blockSize: 1 })).toBeUndefined();
    }
  });

  it('CA-90: the tokens of blocks are joined, whether plain or packed', () => {
    const event = read({
      type: 'stored',
      blocks: [
        { hash: 1, tokens: Uint32Array.of(1, 2) },
        { hash: 2, tokens: [3, 4] },
        { hash: 3, tokens: Uint32Array.of(5, 2 ** 32 - 1) },
      ],
    });
    expect([event?.count, event?.blockSize]).toEqual([3, 2]);
    expect(event?.tokens).toEqual(Uint32Array.of(1, 2, 3, 4, 5, 2 ** 32 - 1));
  });

  it('LB-42: packed tokens of a run are taken as they are, plain ones are checked from the first to the last', () => {
    const run = (tokens: unknown) => read({ type: 'stored', hashes: [1], tokens, blockSize: 3 });
    const packed = Uint32Array.of(7, 8, 9);
    expect(run(packed)?.tokens).toBe(packed);
    expect(run([7, 8, 9])?.tokens).toEqual(packed);
    for (const bad of [
      [-1, 8, 9],
      [7, -1, 9],
      [7, 8, -1],
    ]) {
      expect(run(bad)).toBeUndefined();
      expect(read({ type: 'stored', blocks: [{ hash: 1, tokens: bad }] })).toBeUndefined();
    }
  });

  it('CA-90, B87: blocks that are none, or of another length than the first, are refused', () => {
    const packed = (length: number) => new Uint32Array(length);
    for (const block of [
      null,
      undefined,
      7,
      {},
      { hash: 2 },
      { hash: 2, tokens: null },
      { hash: 2, tokens: '12' },
      { hash: 2, tokens: Float64Array.of(1, 2) },
      { hash: 2, tokens: [1] },
      { hash: 2, tokens: [1, 2, 3] },
      { hash: 2, tokens: packed(1) },
      { hash: 2, tokens: packed(3) },
      { tokens: [1, 2] },
    ]) {
      const sound = { hash: 1, tokens: [1, 2] };
      expect(read({ type: 'stored', blocks: [block], blockSize: 2 })).toBeUndefined();
      expect(read({ type: 'stored', blocks: [sound, block, sound] })).toBeUndefined();
      expect(read({ type: 'stored', blocks: [block, sound] }), 'first').toBeUndefined();
    }
  });

  it('CA-90: an event without blocks is sound, and its block size is not looked at', () => {
    for (const blockSize of [undefined, 0, 'x']) {
      expect(read({ type: 'stored', hashes: [], tokens: [], blockSize })?.count).toBe(0);
      expect(read({ type: 'stored', blocks: [], blockSize })?.count).toBe(0);
    }
    expect(read({ type: 'stored', hashes: [], tokens: [1], blockSize: 1 })).toBeUndefined();
  });

  it('CA-90: a parent is kept by its two lanes, and forgotten by the next event', () => {
    const reader = new KvEventReader();
    const run = { type: 'stored', hashes: [9], tokens: [1], blockSize: 1 };
    const event = reader.read({ ...run, parent: 2n ** 32n * 3n + 4n });
    expect([event?.hasParent, event?.parentLow, event?.parentHigh]).toEqual([true, 4, 3]);
    for (const parent of [undefined, null]) expect(reader.read({ ...run, parent })?.hasParent).toBe(false);
  });
});
