/** Reported faults of the engines' KV-cache events and of the index made from them: one test an id. */
import { createRouter, type KvEventBatch, type RouteRequest, type Router, type RouterOptions } from 'kvroute';
import { dataParallelWorkers, decodeKvEventBatch, splitRank } from 'kvroute/engines';
import { describe, expect, it } from 'vitest';
import { payloads } from './recorded.js';
import { fleet, names, pick, range, times } from './support.js';

const blockSize = 4;

/** The tokens of blocks 1 to `count`, of four tokens each. */
const blocks = (count: number): number[] => range(1, count * blockSize);

const stored = (count: number) => ({
  type: 'stored' as const,
  hashes: times(count, (i) => i + 1),
  tokens: blocks(count),
  blockSize,
});

/** A router of `cache_aware`, with the next sequence number of each worker kept. */
async function listening(ids: readonly string[] = names(2), options: RouterOptions = {}) {
  const router = await fleet(ids, { policy: 'cache_aware', ...options });
  const next = new Map<string, number>();
  return {
    router,
    send: (id: string, ...events: KvEventBatch['events']) => {
      const sequence = next.get(id) ?? 0;
      next.set(id, sequence + 1);
      return router.kvEvents.applyBatch(id, { sequence, events }).result;
    },
  };
}

/** Who holds the head of the request by the engines' word, and how many of its blocks. */
function held(router: Router, request: RouteRequest): { readonly holders: readonly string[]; readonly blocks: number } {
  const match = router.explain(request).policy.match;
  if (match?.index !== 'kv_events') return { holders: [], blocks: 0 };
  return { holders: match.holders, blocks: match.matchedUnits };
}

describe('KV-cache events', () => {
  it('B81: a cleared cache is empty, that worker’s alone', async () => {
    const { router, send } = await listening();
    send('w1', stored(2));
    send('w2', stored(1));
    expect(held(router, { tokens: blocks(2) })).toEqual({ holders: ['w1', 'w2'], blocks: 2 });
    expect(send('w1', { type: 'cleared' })).toBe('applied');
    expect(held(router, { tokens: blocks(1) })).toEqual({ holders: ['w2'], blocks: 1 });
    expect(new Set(times(20, () => pick(router, { tokens: blocks(1) })))).toEqual(new Set(['w2']));
    send('w1', stored(1));
    expect(held(router, { tokens: blocks(1) }).holders.toSorted()).toEqual(['w1', 'w2']);
  });

  it('B83: a removed worker’s blocks go with it, and its late events find nobody', async () => {
    const { router, send } = await listening();
    send('w1', stored(1));
    router.removeWorker('w1');
    expect(send('w1', stored(2))).toBe('rejected');
    expect(router.kvEvents.counts.unknownWorkerBatches).toBe(1);
    expect(held(router, { tokens: blocks(2) })).toEqual({ holders: [], blocks: 0 });
    router.addWorker({ id: 'w1' });
    expect(held(router, { tokens: blocks(2) })).toEqual({ holders: [], blocks: 0 });
    // Its engine is a new one: only what that tells counts.
    expect(send('w1', stored(1))).toBe('applied');
    expect(held(router, { tokens: blocks(2) })).toEqual({ holders: ['w1'], blocks: 1 });
  });

  it('B84: events are read as lists and as maps, with fields missing at the end or added there', async () => {
    const whole = ['BlockStored', ['123', '567', '999'], null, [55, 11, 22, ...range(7, 15)], 4];
    const cases = [
      {
        name: 'positional_full',
        batch: [1.5, [[...whole, null, 'GPU', 'adapter', null, 0]], 0],
        expect: { stored: 3 },
      },
      {
        name: 'positional_trailing_omitted',
        batch: [1.5, [['BlockStored', ['123'], null, range(1, 4), 4]]],
        expect: { stored: 1 },
      },
      {
        name: 'positional_future_extra_field',
        batch: [1.5, [['BlockStored', ['124'], '123', range(5, 8), 4, null, 'GPU', null, null, 0, { later: 1 }]]],
        expect: { stored: 1 },
      },
      {
        name: 'map_encoded',
        batch: [
          1.5,
          [
            {
              type: 'BlockStored',
              block_hashes: ['18388723977999946127'],
              parent_block_hash: null,
              token_ids: range(1, 4),
              block_size: 4,
              medium: 'GPU',
            },
            { type: 'BlockRemoved', block_hashes: ['123'], medium: 'GPU' },
          ],
        ],
        expect: { stored: 1, removed: 1 },
      },
      {
        name: 'removed_cpu_tier_only',
        batch: [1.5, [['BlockRemoved', ['18388723977999946127'], 'CPU']]],
        expect: { gpu_still_present: true },
      },
      { name: 'all_cleared', batch: [1.5, [['AllBlocksCleared']]], expect: { worker_empty: true } },
      {
        name: 'missing_type_tag',
        batch: [1.5, [{ block_hashes: ['1'] }]],
        expect: { rejected: 1, other_events_kept: true },
      },
      {
        name: 'token_count_not_multiple_of_block',
        batch: [1.5, [['BlockStored', ['1', '2'], null, range(1, 5), 4]]],
        expect: { rejected: 1 },
      },
    ];
    for (const text of payloads('kvevents/kv_event_shapes.json', { decoded_batches: cases })) {
      const read = (JSON.parse(text) as { decoded_batches: typeof cases }).decoded_batches;
      expect(read.map(({ name }) => name)).toEqual(cases.map(({ name }) => name));
      const { router } = await listening(['w1']);
      let sequence = 0;
      const apply = (events: KvEventBatch['events']): void => {
        expect(router.kvEvents.applyBatch('w1', { sequence: sequence++, events })).toEqual({ result: 'applied' });
      };
      for (const { name, batch, expect: expected } of read) {
        const { events, rejected } = decodeKvEventBatch(batch);
        const told = { stored: 0, removed: 0 };
        for (const event of events)
          if (event.type !== 'cleared' && 'hashes' in event) told[event.type] += event.hashes.length;
        const { stored: storedBlocks = 0, removed = 0, rejected: refused = 0 } = expected as Record<string, number>;
        expect(rejected, name).toBe(refused);
        if (storedBlocks > 0) expect(told, name).toEqual({ stored: storedBlocks, removed });
        apply(events);
        const here = held(router, { tokens: range(1, 4) });
        if (name === 'removed_cpu_tier_only') expect(here, name).toEqual({ holders: ['w1'], blocks: 1 });
        if (name === 'all_cleared') expect(here, name).toEqual({ holders: [], blocks: 0 });
      }
      expect(router.kvEvents.counts).toMatchObject({ otherMediumEvents: 1, rejectedEvents: 0, orphanedBlocks: 0 });
      // One bad event does not drop its batch.
      const mixed = decodeKvEventBatch([0, [['BlockMoved'], ['BlockStored', ['1'], null, range(1, 4), 4]]]);
      expect([mixed.rejected, mixed.events.length]).toEqual([1, 1]);
    }
  });

  it('B85: data-parallel ranks are workers of their own', async () => {
    const ranks = dataParallelWorkers({ url: 'http://w1:8000' }, 2);
    const router = await createRouter({ policy: 'cache_aware', seed: 1 });
    for (const spec of ranks) router.addWorker(spec);
    const [zero, one] = ranks.map(({ url }) => url as string) as [string, string];
    expect([zero, one]).toEqual(['http://w1:8000@0', 'http://w1:8000@1']);
    router.kvEvents.applyBatch(zero, { sequence: 7, events: [stored(1)] });
    expect(held(router, { tokens: blocks(1) }).holders).toEqual([zero]);
    // The idle rank that holds nothing would win otherwise.
    router.begin(zero);
    expect(new Set(times(20, () => pick(router, { tokens: blocks(1) })))).toEqual(new Set([zero]));
    expect(splitRank(zero)).toEqual({ url: 'http://w1:8000', rank: 0 });
    // Each stream has its own sequence.
    expect(router.kvEvents.applyBatch(one, { sequence: 0, events: [] })).toEqual({ result: 'applied' });
  });

  it('B86: an engine whose blocks have another size is told of once, and matched at its own size', async () => {
    const policy = { name: 'cache_aware', blockSize: 16 } as const;
    const router = await fleet(names(2), { policy });
    const warned: string[] = [];
    router.on('warning', ({ code, worker, fields }) => warned.push(`${code} ${worker} ${fields.join()}`));
    const batch = (sequence: number, hash: number, parent?: number) => {
      const tokens = range(64 * sequence, 64 * sequence + 63);
      router.kvEvents.applyBatch('w1', {
        sequence,
        events: [{ type: 'stored', hashes: [hash], parent, tokens, blockSize: 64 }],
      });
    };
    batch(0, 1);
    batch(1, 2, 1);
    expect(warned).toEqual(['blockSizeMismatch w1 blockSize']);
    expect(router.warnings.map(({ code }) => code)).toEqual(['blockSizeMismatch']);
    expect(held(router, { tokens: range(0, 127) })).toEqual({ holders: ['w1'], blocks: 2 });
    expect(new Set(times(20, () => pick(router, { tokens: range(0, 127) })))).toEqual(new Set(['w1']));
  });

  it('B87: a frame that is no sequence number is counted and changes nothing', async () => {
    const { router, send } = await listening();
    send('w1', stored(1));
    const before = held(router, { tokens: blocks(3) });
    const bad: readonly unknown[] = [
      new Uint8Array(3),
      new Uint8Array(9),
      Number.NaN,
      '7',
      -1,
      -1n,
      2 ** 64,
      2n ** 64n,
      1.5,
      Infinity,
      null,
      undefined,
      {},
      [1],
    ];
    for (const sequence of bad) {
      const result = router.kvEvents.applyBatch('w1', { sequence: sequence as never, events: [stored(3)] });
      expect(result).toEqual({ result: 'rejected', reason: 'sequence' });
    }
    for (const events of [undefined, null, 'x', {}, 7]) {
      const result = router.kvEvents.applyBatch('w1', { sequence: 1, events: events as never });
      expect(result).toEqual({ result: 'rejected', reason: 'events' });
    }
    for (const batch of [undefined, null, 7, 'x', new Uint8Array(2)]) {
      expect(router.kvEvents.applyBatch('w1', batch as never).result).toBe('rejected');
    }
    expect(router.kvEvents.counts.rejectedBatches).toBe(bad.length + 10);
    expect(held(router, { tokens: blocks(3) })).toEqual(before);
    // The stream goes on where it was.
    expect(send('w1', stored(3))).toBe('applied');
    expect(held(router, { tokens: blocks(3) })).toEqual({ holders: ['w1'], blocks: 3 });
  });
});
