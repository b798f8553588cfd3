import { decodeKvEventBatch } from 'kvroute/engines';
import { describe, expect, it } from 'vitest';
import { readShared, sharedData } from './shared-data.js';

const ids = (...tokens: number[]) => new Uint32Array(tokens);

describe('KV-event batches', () => {
  it('B84: positional events, with trailing fields omitted or added', () => {
    const full = ['BlockStored', ['1', 2n], 0n, [5, 6, 7, 8], 2, 9, 'GPU', 'adapter', null, 0, { more: 1 }];
    const short = ['BlockStored', [3], null, [5, 6], 2];
    const events = [full, short, ['BlockRemoved', ['1']], ['BlockRemoved', [2], 'CPU', 0], ['AllBlocksCleared', 1]];
    expect(decodeKvEventBatch([1.5, events, 3, 'more'])).toStrictEqual({
      events: [
        { type: 'stored', hashes: ['1', 2n], tokens: ids(5, 6, 7, 8), blockSize: 2, parent: 0n, medium: 'GPU' },
        { type: 'stored', hashes: [3], tokens: ids(5, 6), blockSize: 2 },
        { type: 'removed', hashes: ['1'] },
        { type: 'removed', hashes: [2], medium: 'CPU' },
        { type: 'cleared' },
      ],
      rejected: 0,
      dpRank: 3,
      timestamp: 1.5,
    });
  });

  it('B84: maps of named fields, as objects or as Map, with either rank name', () => {
    const hash = new Uint8Array(32).fill(7);
    const stored = {
      type: 'BlockStored',
      block_hashes: [hash],
      parent_block_hash: null,
      token_ids: ids(1, 2),
      block_size: 2,
      medium: null,
    };
    const removed = new Map<string, unknown>([
      ['event_type', 'BlockRemoved'],
      ['block_hashes', [-5]],
      ['medium', 'GPU'],
    ]);
    const events = [stored, removed, { type: 'AllBlocksCleared' }];
    const decoded = {
      events: [
        { type: 'stored', hashes: [hash], tokens: ids(1, 2), blockSize: 2 },
        { type: 'removed', hashes: [-5], medium: 'GPU' },
        { type: 'cleared' },
      ],
      rejected: 0,
      dpRank: 1,
      timestamp: 2,
    };
    expect(decodeKvEventBatch({ ts: 2, events, data_parallel_rank: 1 })).toStrictEqual(decoded);
    const map = new Map<string, unknown>(Object.entries({ ts: 2, events, attn_dp_rank: 1 }));
    expect(decodeKvEventBatch(map)).toStrictEqual(decoded);
  });

  it('CA-90: an empty block list is sound', () => {
    expect(decodeKvEventBatch([0, [['BlockStored', [], null, [], 16]]])).toStrictEqual({
      events: [{ type: 'stored', hashes: [], tokens: ids(), blockSize: 16 }],
      rejected: 0,
      timestamp: 0,
    });
  });

  it.each([
    ['no type', { block_hashes: ['1'] }],
    ['an unknown type', ['BlockMoved', ['1']]],
    ['no event', 5],
    ['null', null],
    ['an empty list', []],
    ['a type of the prototype', JSON.parse('{"__proto__":{"type":"AllBlocksCleared"}}')],
    ['no hashes', ['BlockRemoved']],
    ['hashes that are no list', ['BlockRemoved', '1']],
    ['a hash that is no integer', ['BlockRemoved', ['0x1']]],
    ['an empty hash', ['BlockRemoved', ['']]],
    ['a hash that lost digits', ['BlockRemoved', [2 ** 60]]],
    ['a fractional hash', ['BlockRemoved', [1.5]]],
    ['a null hash', ['BlockRemoved', [null]]],
    ['a hash of 156 digits', ['BlockRemoved', ['1'.repeat(156)]]],
    ['a hash of 65 bytes', ['BlockRemoved', [new Uint8Array(65)]]],
    ['a hash of no bytes', ['BlockRemoved', [new Uint8Array(0)]]],
    ['a medium of the wrong type', ['BlockRemoved', ['1'], 5]],
    ['tokens that do not fill the blocks', ['BlockStored', ['1', '2'], null, [1, 2, 3, 4, 5], 4]],
    ['no tokens', ['BlockStored', ['1'], null, null, 4]],
    ['a token out of range', ['BlockStored', ['1'], null, [1, 2 ** 32], 2]],
    ['block size 0', ['BlockStored', [], null, [], 0]],
    ['a fractional block size', ['BlockStored', ['1'], null, [1], 0.5]],
    ['a parent of the wrong type', ['BlockStored', ['1'], {}, [1], 1]],
    ['a stored medium of the wrong type', ['BlockStored', ['1'], null, [1], 1, null, 7]],
    ['stored hashes of the wrong type', ['BlockStored', [true], null, [1], 1]],
  ])('B84, B87: an event with %s is refused, the rest of its batch is kept', (_, event) => {
    expect(decodeKvEventBatch([0, [['AllBlocksCleared'], event, ['BlockRemoved', ['1']]]])).toStrictEqual({
      events: [{ type: 'cleared' }, { type: 'removed', hashes: ['1'] }],
      rejected: 1,
      timestamp: 0,
    });
  });

  it.each([undefined, null, 5, 'x', [], [0], [0, 5], {}, { events: {} }, new Uint8Array(3), new Map()])(
    'B87: %j is no batch',
    (batch) => {
      expect(decodeKvEventBatch(batch)).toStrictEqual({ events: [], rejected: 1 });
    },
  );

  it.each([Number.NaN, 'now', null, 5n])('B87: rank and time stamp %s are absent', (value) => {
    expect(decodeKvEventBatch([value, [], value])).toStrictEqual({ events: [], rejected: 0 });
    expect(decodeKvEventBatch([0, [], -1])).toStrictEqual({ events: [], rejected: 0, timestamp: 0 });
  });
});

interface ShapeCase {
  name: string;
  batch: unknown;
  expect: { stored?: number; removed?: number; rejected?: number; tier?: string; dp_rank?: number };
}

const folder = sharedData('kvevents');
if (folder !== undefined) {
  describe('recorded KV events', () => {
    const shapes = JSON.parse(readShared(folder, 'kv_event_shapes.json')) as { decoded_batches: ShapeCase[] };

    it.each(shapes.decoded_batches.map((shape) => [shape.name, shape] as const))('B84: %s', (name, shape) => {
      const { events, rejected, dpRank } = decodeKvEventBatch(shape.batch);
      const blocks = (type: string) =>
        events.reduce((n, event) => n + (event.type === type && 'hashes' in event ? event.hashes.length : 0), 0);
      expect(rejected).toBe(shape.expect.rejected ?? 0);
      if (shape.expect.stored !== undefined) expect(blocks('stored')).toBe(shape.expect.stored);
      if (shape.expect.removed !== undefined) expect(blocks('removed')).toBe(shape.expect.removed);
      if (shape.expect.tier !== undefined) expect(events).toMatchObject([{ medium: shape.expect.tier }]);
      if (shape.expect.dp_rank !== undefined) expect(dpRank).toBe(shape.expect.dp_rank);
      if (name === 'all_cleared') expect(events).toStrictEqual([{ type: 'cleared' }]);
      if (name === 'removed_cpu_tier_only') expect(events).toMatchObject([{ type: 'removed', medium: 'CPU' }]);
    });

    it.each(['llmd_kv_event_base.json', 'llmd_kv_event_lora.json'])('B84, B87: %s', (file) => {
      const text = readShared(folder, file);
      // JSON.parse rounds 64-bit integers: as plain JSON the event is refused, with the hashes as strings it is read.
      expect(decodeKvEventBatch([0, [JSON.parse(text)]])).toMatchObject({ events: [], rejected: 1 });
      const exact = JSON.parse(text.replace(/\b[0-9]{16,}\b/g, '"$&"')) as { block_hashes: string[] };
      const { events, rejected } = decodeKvEventBatch([0, [exact]]);
      expect(rejected).toBe(0);
      expect(events).toMatchObject([{ type: 'stored', blockSize: 16, hashes: exact.block_hashes, medium: 'GPU' }]);
    });
  });
}
