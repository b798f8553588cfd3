import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { decodeKvEventBatch } from '../../src/engines/kv-events.js';
import type { KvEvent } from '../../src/prefix/kv-event.js';
import { Fleet } from './kv-helpers.js';

/** Recorded and invented event batches beside the checkout. Without them their cases are not registered. */
const folder = fileURLToPath(new URL('../../../shared/data/kvevents/', import.meta.url));

function readText(name: string): string | undefined {
  return existsSync(folder + name) ? readFileSync(folder + name, 'utf8') : undefined;
}

interface Shapes {
  readonly decoded_batches: readonly {
    readonly name: string;
    readonly batch: unknown;
    readonly expect: Readonly<Record<string, unknown>>;
  }[];
  readonly sequences: readonly { readonly name: string; readonly seq?: readonly number[] }[];
}

const shapesText = readText('kv_event_shapes.json');
const recordings = ['llmd_kv_event_base.json', 'llmd_kv_event_lora.json'].flatMap((name) => {
  const text = readText(name);
  return text === undefined ? [] : [[name, text] as const];
});
if (shapesText === undefined) console.log('kv-event-data: kv_event_shapes.json is absent, its cases did not run');
if (recordings.length < 2) console.log('kv-event-data: recordings of llm-d are absent, their cases did not run');

it('CA-90, B84: the positional and the named form of an event lead to the same index', () => {
  const positional = ['BlockStored', [2n ** 60n + 1n], null, [1, 2], 2, null, 'GPU', null, null, 0, 'more'];
  const named = { type: 'BlockStored', block_hashes: [2n ** 60n + 1n], token_ids: [1, 2], block_size: 2 };
  for (const form of [positional, named]) {
    const fleet = new Fleet(['w1']);
    fleet.apply('w1', ...decodeKvEventBatch([0, [form]]).events);
    expect(fleet.overlaps([1, 2])).toEqual({ w1: 1 });
    fleet.apply(
      'w1',
      ...decodeKvEventBatch([0, [['BlockRemoved', [String(2n ** 60n + 2n), String(2n ** 60n)]]]]).events,
    );
    expect(fleet.overlaps([1, 2])).toEqual({ w1: 1 });
    fleet.apply('w1', ...decodeKvEventBatch([0, [['BlockRemoved', [String(2n ** 60n + 1n)]]]]).events);
    expect(fleet.overlaps([1, 2])).toEqual({});
  }
});

if (shapesText !== undefined) {
  const shapes = JSON.parse(shapesText) as Shapes;
  describe('kv_event_shapes.json', () => {
    for (const { name, batch, expect: wanted } of shapes.decoded_batches) {
      it(`CA-90, B84: ${name}`, () => {
        const fleet = new Fleet(['w1']);
        // Every name of the file is held before, so that removals, children and clearing have something to act on.
        const known = ['123', '18388723977999946127'];
        fleet.apply('w1', { type: 'stored', hashes: known, tokens: [9, 9, 9, 9, 8, 8, 8, 8], blockSize: 4 });
        const before = fleet.index.memberships;
        const decoded = decodeKvEventBatch(batch);
        const last: KvEvent = { type: 'stored', hashes: ['777'], tokens: [7, 7, 7, 7], blockSize: 4 };
        fleet.apply('w1', ...decoded.events, last);
        const isLastHeld = fleet.overlaps([7, 7, 7, 7]).w1 === 1;
        const rejected = decoded.rejected + fleet.feed.counts.rejectedEvents;
        const added = fleet.index.memberships - before - 1;
        expect(isLastHeld).toBe(true);
        expect(rejected).toBe(wanted.rejected ?? 0);
        if (wanted.worker_empty === true) expect(fleet.index.memberships).toBe(1);
        else if (wanted.gpu_still_present === true) {
          expect(added).toBe(0);
          expect(fleet.feed.counts.otherMediumEvents).toBe(1);
        } else expect(added).toBe(Number(wanted.stored ?? 0) - Number(wanted.removed ?? 0));
      });
    }

    for (const { name, seq } of shapes.sequences) {
      if (seq === undefined) continue;
      it(`CA-92: ${name}`, () => {
        const fleet = new Fleet(['w1']);
        const results = seq.map((sequence, i) => {
          const apply = () => fleet.feed.applyBatch('w1', { sequence, events: [store(i)] }, 0);
          const first = apply();
          if (first.result !== 'gap') return first.result;
          // No replay to be had: the host gives up what was learned and goes on.
          fleet.feed.reset('w1');
          return `gap, ${apply().result}`;
        });
        const held = seq.map((_, i) => fleet.overlaps([i, i]).w1 === 1);
        expect({ name, results, held }).toEqual({ name, ...expectedSequences[name] });
      });
    }
  });
}

const store = (content: number): KvEvent => ({
  type: 'stored',
  hashes: [content],
  tokens: [content, content],
  blockSize: 2,
});

/** What the file says in prose, with the statements that settle it (CA-92, CA-93). */
const expectedSequences: Readonly<Record<string, { results: string[]; held: boolean[] }>> = {
  gap: { results: ['applied', 'applied', 'gap, applied'], held: [false, false, true] },
  restart_in_place: {
    results: ['applied', 'applied', 'restarted', 'applied'],
    held: [false, false, true, true],
  },
  first_seen_not_zero: { results: ['applied', 'applied'], held: [true, true] },
  duplicate_delivery: { results: ['applied', 'stale', 'applied'], held: [true, false, true] },
};

if (recordings.length > 0) {
  describe('recordings of llm-d', () => {
    for (const [name, text] of recordings) {
      it(`CA-90: ${name} is indexed with its 64-bit names exact`, () => {
        // JSON.parse would round the names: they are taken from the text.
        const list = /"block_hashes":\[([^\]]*)\]/.exec(text)?.[1]?.split(',').map(BigInt) as bigint[];
        const record = JSON.parse(text) as { token_ids: number[]; block_size: number };
        expect(list.length).toBe(25);
        expect(list.some((hash) => hash > 2n ** 63n)).toBe(true);
        const wire = { ...record, block_hashes: list };
        const decoded = decodeKvEventBatch([0, [wire]]);
        expect(decoded.rejected).toBe(0);
        const fleet = new Fleet(['w1']);
        fleet.apply('w1', ...decoded.events);
        expect(fleet.overlaps(record.token_ids)).toEqual({ w1: 25 });
        expect(fleet.overlaps(Uint32Array.from(record.token_ids))).toEqual({ w1: 25 });
        // A neighbour of the last name in double precision is another name.
        const last = list[24] as bigint;
        fleet.apply('w1', { type: 'removed', hashes: [last + 1n, last - 1n, BigInt(Number(last)) + 1n] });
        expect(fleet.overlaps(record.token_ids)).toEqual({ w1: 25 });
        fleet.apply('w1', { type: 'removed', hashes: [String(last)] });
        expect(fleet.overlaps(record.token_ids)).toEqual({ w1: 24 });
        fleet.apply('w1', { type: 'removed', hashes: list });
        expect(fleet.index.memberships).toBe(0);
      });
    }
  });
}
