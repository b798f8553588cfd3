import { describe, expect, it } from 'vitest';
import type { KvEvent, KvEventBatch } from '../../src/prefix/kv-event.js';
import { KvEventFeed, type KvEventWarning } from '../../src/prefix/kv-event-feed.js';
import { Fleet, range, stored } from './kv-helpers.js';

const block = (content: number): KvEvent => stored(null, [content, [content, content]]);
const batch = (sequence: unknown, ...events: readonly unknown[]): KvEventBatch =>
  ({ sequence, events }) as unknown as KvEventBatch;

describe('streams', () => {
  it('CA-92, CA-93: a gap changes nothing, and a replay from the expected number heals it', () => {
    const { feed, index, overlaps } = started(10);
    expect(feed.applyBatch('w1', batch(12, block(2)), 0)).toEqual({ result: 'gap', expected: 11, received: 12 });
    expect(overlaps(2)).toEqual({});
    expect(index.memberships).toBe(1);
    expect(feed.applyBatch('w1', batch(11, block(3)), 0)).toEqual({ result: 'applied' });
    expect(feed.applyBatch('w1', batch(12, block(2)), 0)).toEqual({ result: 'applied' });
    expect(index.memberships).toBe(3);
    expect(feed.counts).toMatchObject({ gaps: 1, appliedBatches: 3 });
  });

  it('CA-93: after a reset the next batch sets the base, and only what comes then counts', () => {
    const { feed, index, overlaps } = started(10);
    expect(feed.applyBatch('w1', batch(13, block(2)), 0).result).toBe('gap');
    feed.reset('w1');
    expect(feed.lastSequence('w1')).toBeUndefined();
    expect(index.memberships).toBe(0);
    expect(feed.applyBatch('w1', batch(13, block(2)), 0)).toEqual({ result: 'applied' });
    expect([overlaps(1), overlaps(2)]).toEqual([{}, { w1: 1 }]);
    feed.reset('unknown');
  });

  it('CA-92: number 0 means that the engine started again: its blocks go, the batch applies', () => {
    const { feed, index, overlaps } = started(500);
    expect(feed.applyBatch('w1', batch(0, block(2)), 0)).toEqual({ result: 'restarted' });
    expect(feed.applyBatch('w1', batch(1, block(3)), 0)).toEqual({ result: 'applied' });
    expect([overlaps(1), overlaps(2), overlaps(3)]).toEqual([{}, { w1: 1 }, { w1: 1 }]);
    expect(index.memberships).toBe(2);
    expect(feed.counts.restarts).toBe(1);
  });

  it('CA-92: a batch delivered twice changes no count', () => {
    const { feed, index } = started(7);
    expect(feed.applyBatch('w1', batch(7, { type: 'cleared' }), 0)).toEqual({ result: 'stale' });
    expect(feed.applyBatch('w1', batch(8, block(2)), 0)).toEqual({ result: 'applied' });
    expect(index.memberships).toBe(2);
    expect(feed.counts.staleBatches).toBe(1);
  });

  it('CA-92, B87: a batch that is none is rejected with a reason and counted; the stream goes on', () => {
    const { feed, index } = started(7);
    for (const sequence of [new Uint8Array(3), Number.NaN, '7', -1, 2n ** 64n, undefined]) {
      expect(feed.applyBatch('w1', batch(sequence, block(2)), 0)).toEqual({ result: 'rejected', reason: 'sequence' });
    }
    for (const events of [undefined, null, {}, 'x', 5]) {
      const malformed = { sequence: 8, events } as unknown as KvEventBatch;
      expect(feed.applyBatch('w1', malformed, 0)).toEqual({ result: 'rejected', reason: 'events' });
    }
    for (const nothing of [null, undefined, 3] as unknown as KvEventBatch[]) {
      expect(feed.applyBatch('w1', nothing, 0)).toEqual({ result: 'rejected', reason: 'sequence' });
    }
    expect(index.memberships).toBe(1);
    expect(feed.counts.rejectedBatches).toBe(14);
    expect(feed.applyBatch('w1', batch(8, block(2)), 0)).toEqual({ result: 'applied' });
  });

  it('CA-90, B87: a malformed event is counted, the rest of its batch is applied', () => {
    const { feed, overlaps } = started(0);
    const malformed: readonly unknown[] = [
      null,
      7,
      'stored',
      {},
      { hashes: [1] },
      { type: 'BlockStored', hashes: [1], tokens: [1, 2], blockSize: 2 },
      { type: 'removed' },
      { type: 'removed', hashes: [1, 'x'] },
      { type: 'removed', hashes: [2 ** 53] },
      { type: 'stored', hashes: [9], tokens: [9, 9, 9], blockSize: 2 },
      { type: 'stored', hashes: [9, 8], tokens: [9, 9], blockSize: 2 },
      { type: 'stored', hashes: [], tokens: [9, 9], blockSize: 2 },
      { type: 'stored', hashes: [9], tokens: [9, 9], blockSize: 0 },
      { type: 'stored', hashes: [9], tokens: [9, 9], blockSize: -2 },
      { type: 'stored', hashes: [9], tokens: [9, 9], blockSize: '2' },
      { type: 'stored', hashes: [9], tokens: [9, 9] },
      { type: 'stored', hashes: [9], tokens: [9, 9.5], blockSize: 2 },
      { type: 'stored', hashes: [9], tokens: [9, '9'], blockSize: 2 },
      { type: 'stored', hashes: [9], tokens: [9, 9n], blockSize: 2 },
      { type: 'stored', hashes: [9], tokens: [9, Symbol('9')], blockSize: 2 },
      { type: 'stored', hashes: [9], tokens: '99', blockSize: 2 },
      { type: 'stored', hashes: [9], tokens: new Float64Array(2), blockSize: 2 },
      { type: 'stored', hashes: 9, tokens: [9, 9], blockSize: 2 },
      { type: 'stored', hashes: [Number.NaN], tokens: [9, 9], blockSize: 2 },
      { type: 'stored', parent: 1.5, hashes: [9], tokens: [9, 9], blockSize: 2 },
      { type: 'stored', parent: '', hashes: [9], tokens: [9, 9], blockSize: 2 },
      { type: 'stored', blocks: 5 },
      { type: 'stored', blocks: [null] },
      { type: 'stored', blocks: [{ hash: 9 }] },
      { type: 'stored', blocks: [{ hash: 9, tokens: [] }] },
      {
        type: 'stored',
        blocks: [
          { hash: 9, tokens: [9, 9] },
          { hash: 8, tokens: [8] },
        ],
      },
      { type: 'stored', blocks: [{ hash: 9, tokens: [9, 9] }, null] },
      { type: 'stored', blocks: [{ hash: 9, tokens: [9, 9] }, { tokens: [8, 8] }] },
      {
        type: 'stored',
        blocks: [
          { hash: 9, tokens: [9, 9] },
          { hash: 8, tokens: [8, -8] },
        ],
      },
      { type: 'stored', blocks: [{ hash: 9, tokens: [9, 9] }], blockSize: 4 },
    ];
    const events = [block(2), ...malformed, block(3)];
    expect(feed.applyBatch('w1', batch(1, ...events), 0)).toEqual({ result: 'applied' });
    expect(feed.counts.rejectedEvents).toBe(malformed.length);
    expect([overlaps(2), overlaps(3), overlaps(9)]).toEqual([{ w1: 1 }, { w1: 1 }, {}]);
  });

  it('CA-90: other media are counted and ignored; absent and GPU in any case count', () => {
    const fleet = new Fleet(['w1']);
    for (const [i, medium] of [undefined, null, 'GPU', 'gpu'].entries()) {
      fleet.apply('w1', { ...block(i), medium } as KvEvent);
      expect(fleet.overlaps([i, i])).toEqual({ w1: 1 });
    }
    for (const medium of ['CPU', 'DISK', '', 'cpu_tier', 7]) {
      fleet.apply('w1', { ...block(9), medium } as KvEvent, { type: 'removed', hashes: [1], medium } as KvEvent);
    }
    expect([fleet.overlaps([9, 9]), fleet.overlaps([1, 1])]).toEqual([{}, { w1: 1 }]);
    expect(fleet.feed.counts.otherMediumEvents).toBe(10);
    expect(fleet.index.memberships).toBe(4);
  });
});

describe('workers and models', () => {
  it('CA-80, B83: events of workers that are not registered are counted and dropped', () => {
    const fleet = new Fleet(['w1', 'w2']);
    fleet.apply('w2', block(7));
    fleet.apply('w1', block(1));
    fleet.feed.removeWorker('w1');
    expect(fleet.apply('w1', block(2))).toEqual({ result: 'rejected', reason: 'unknown_worker' });
    expect([fleet.overlaps([1, 1]), fleet.overlaps([2, 2])]).toEqual([{}, {}]);
    expect(fleet.feed.counts.unknownWorkerBatches).toBe(1);
    // Added again, its stream starts anew and only new events count.
    fleet.feed.addWorker('w1', ['m']);
    expect(fleet.feed.applyBatch('w1', batch(77, block(3)), 0)).toEqual({ result: 'applied' });
    expect([fleet.overlaps([1, 1]), fleet.overlaps([3, 3])]).toEqual([{}, { w1: 1 }]);
  });

  it('CA-80: the events of a worker serve every model it has, and no other', () => {
    const feed = new KvEventFeed();
    feed.addWorker('both', ['a', 'b']);
    feed.addWorker('one', ['b']);
    feed.applyBatch('both', batch(0, stored(99, [5, [5, 5]]), block(1)), 0);
    feed.applyBatch('one', batch(0, block(1)), 0);
    expect([feed.indexFor('a')?.memberships, feed.indexFor('b')?.memberships]).toEqual([1, 2]);
    expect(feed.indexFor('c')).toBeUndefined();
    expect(feed.counts.orphanedBlocks).toBe(1);
    feed.applyBatch('both', batch(1, { type: 'removed', hashes: [1] }), 0);
    expect([feed.indexFor('a')?.memberships, feed.indexFor('b')?.memberships]).toEqual([0, 1]);
  });

  it('CA-90, CA-92: before anything is stored a stream may be cleared, restarted, reset and left', () => {
    const feed = new KvEventFeed();
    feed.addWorker('w1', ['a', 'b']);
    const nothing = [{ type: 'cleared' }, { type: 'removed', hashes: [1] }];
    expect(feed.applyBatch('w1', batch(4, ...nothing), 0)).toEqual({ result: 'applied' });
    expect(feed.applyBatch('w1', batch(0), 0)).toEqual({ result: 'restarted' });
    feed.reset('w1');
    expect(feed.lastSequence('w1')).toBeUndefined();
    feed.addWorker('w1', ['b']);
    feed.removeWorker('w1');
    expect([feed.indexFor('a'), feed.indexFor('b'), feed.counts.rejectedEvents]).toEqual([undefined, undefined, 0]);
  });

  it('CA-95: the last worker of a model takes its index and block size along', () => {
    const fleet = new Fleet(['w1', 'w2']);
    fleet.apply('w1', block(1));
    fleet.apply('w2', block(1));
    fleet.feed.removeWorker('w1');
    expect(fleet.index.blockSize).toBe(2);
    fleet.feed.removeWorker('w2');
    expect(fleet.feed.indexFor('m')).toBeUndefined();
    fleet.feed.removeWorker('w2');
  });

  it('LM-25: a worker replaced with other models keeps what it holds for those it keeps', () => {
    const feed = new KvEventFeed();
    feed.addWorker('w1', ['a', 'b']);
    feed.addWorker('w2', ['b']);
    feed.applyBatch('w1', batch(3, block(1)), 0);
    feed.applyBatch('w2', batch(3, block(1)), 0);
    feed.addWorker('w1', ['a', 'c']);
    expect([feed.indexFor('a')?.memberships, feed.indexFor('b')?.memberships]).toEqual([1, 1]);
    expect(feed.applyBatch('w1', batch(4, block(2)), 0)).toEqual({ result: 'applied' });
    expect([feed.indexFor('a')?.memberships, feed.indexFor('c')?.memberships]).toEqual([2, 1]);
  });

  it('LB-31: ids and models may be any string', () => {
    const feed = new KvEventFeed();
    feed.addWorker('__proto__', ['constructor']);
    feed.applyBatch('__proto__', batch(0, block(1)), 0);
    const match = feed.indexFor('constructor')?.overlaps([1, 1], 0);
    expect([match?.count, match?.worker(0)]).toEqual([1, '__proto__']);
    expect(feed.indexFor('__proto__')).toBeUndefined();
  });
});

describe('block size', () => {
  const run = (blockSize: number, content = 1): KvEvent => ({
    type: 'stored',
    hashes: [content],
    tokens: new Array<number>(blockSize).fill(content),
    blockSize,
  });

  it('CA-91: the first stored block of each subscription teaches, the most recent learner wins', () => {
    const fleet = new Fleet(['w1', 'w2']);
    fleet.apply('w1', run(4));
    expect(fleet.index.blockSize).toBe(4);
    fleet.apply('w2', run(8));
    expect(fleet.index.blockSize).toBe(8);
    // Not a first block.
    fleet.apply('w1', run(4, 2));
    expect(fleet.index.blockSize).toBe(8);
    expect(fleet.overlaps(new Array<number>(8).fill(1))).toEqual({ w2: 1 });
    // A new subscription learns anew.
    fleet.feed.reset('w1');
    fleet.apply('w1', run(4));
    expect(fleet.index.blockSize).toBe(4);
    expect(fleet.overlaps(new Array<number>(8).fill(1))).toEqual({ w1: 1 });
    // The learner leaves: what the others learned counts.
    fleet.feed.removeWorker('w1');
    expect(fleet.index.blockSize).toBe(8);
    // Cleared is no new subscription.
    fleet.apply('w2', { type: 'cleared' }, run(16));
    expect(fleet.index.blockSize).toBe(8);
  });

  it('CA-91: when the learner leaves, the most recent of the others wins, however long it has been there', () => {
    const fleet = new Fleet(['w1', 'w2', 'w3']);
    fleet.apply('w1', run(4));
    fleet.apply('w2', run(8));
    fleet.apply('w3', run(16));
    for (const id of ['w1', 'w2']) {
      fleet.feed.reset(id);
      fleet.apply(id, run(32));
    }
    fleet.feed.reset('w2');
    expect(fleet.index.blockSize).toBe(32);
    fleet.feed.reset('w1');
    expect(fleet.index.blockSize).toBe(16);
    fleet.feed.reset('w3');
    expect(fleet.index.blockSize).toBeUndefined();
  });

  it('CA-91, B86: a block size that was not expected is told once for a worker', () => {
    const warnings: KvEventWarning[] = [];
    const fleet = new Fleet(['w1', 'w2'], { warning: (warning) => warnings.push(warning) });
    fleet.feed.configure('m', { blockSize: 16 });
    fleet.apply('w1', run(64), run(64, 2));
    expect(warnings).toEqual([
      {
        code: 'blockSizeMismatch',
        message: 'worker w1 stores KV blocks of 64 tokens where 16 were expected',
        fields: ['blockSize'],
        worker: 'w1',
        model: 'm',
      },
    ]);
    // The worker is handled at 64.
    expect(fleet.overlaps(new Array<number>(64).fill(1))).toEqual({ w1: 1 });
    fleet.apply('w2', run(64));
    expect(warnings.length).toBe(1);
    fleet.apply('w2', run(32));
    expect(warnings.length).toBe(2);
    fleet.apply('w2', run(32));
    fleet.apply('w1', run(32));
    expect(warnings.length).toBe(2);
  });

  it('LB-31, CA-95: what was said about the index of a model is forgotten with the model', () => {
    const warnings: KvEventWarning[] = [];
    const fleet = new Fleet(['w1'], { warning: (warning) => warnings.push(warning) });
    fleet.feed.configure('m', { blockSize: 16 });
    expect(() => fleet.feed.forgetModel(7 as never)).toThrow(/^model: /);
    fleet.feed.forgetModel('m');
    fleet.apply('w1', run(64));
    expect(warnings).toEqual([]);
  });

  it('CA-91: a worker spec that tells the block size is expected before the option; 0 is unset', () => {
    const warnings: KvEventWarning[] = [];
    const fleet = new Fleet([], { warning: (warning) => warnings.push(warning) });
    fleet.feed.configure('m', { blockSize: 16 });
    fleet.feed.addWorker('w1', ['m'], 0);
    fleet.feed.addWorker('w2', ['m'], 32);
    fleet.feed.addWorker('w3', ['m'], 64);
    fleet.feed.addWorker('other', ['n'], 128);
    fleet.apply('w1', run(32));
    expect(warnings).toEqual([]);
    fleet.feed.removeWorker('w1');
    fleet.feed.addWorker('w2', ['m'], 0);
    fleet.apply('w3', run(64));
    expect(warnings).toEqual([]);
    fleet.apply('w2', run(32));
    expect(warnings.map(({ worker }) => worker)).toEqual(['w2']);
  });

  it('CA-91: without any expectation nothing is told', () => {
    const warnings: KvEventWarning[] = [];
    const fleet = new Fleet(['w1'], { warning: (warning) => warnings.push(warning) });
    fleet.apply('w1', run(7));
    expect(warnings).toEqual([]);
  });
});

function started(sequence: number) {
  const fleet = new Fleet(['w1']);
  fleet.feed.applyBatch('w1', batch(sequence, block(1)), 0);
  const { feed, index } = fleet;
  return { feed, index, overlaps: (content: number) => fleet.overlaps([content, content]) };
}

it('CA-91: a chain of one block size never matches one of another', () => {
  const fleet = new Fleet(['w1', 'w2']);
  fleet.apply('w1', { type: 'stored', hashes: [1], tokens: range(0, 4), blockSize: 4 });
  fleet.apply('w2', { type: 'stored', hashes: [1, 2], tokens: range(0, 4), blockSize: 2 });
  expect(fleet.overlaps(range(0, 4))).toEqual({ w2: 2 });
});
