/**
 * Reported faults of routing by prefixes, and of what it shares with the other policies: each is ruled out here by one
 * test, under its id.
 */
import {
  cacheAware,
  createRouter,
  leastLoad,
  loadHash,
  manual,
  type PolicyName,
  powerOfTwo,
  prefixHash,
  prefixHeads,
  type RouteRequest,
  seededRandom,
} from 'kvroute';
import { distribution, fakeCandidate, fakeFleet } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { heapAfterCollection } from '../support/heap.js';
import { fleet, isFull, names, noise, pick, range, tally, times } from './support.js';

const hash = await loadHash();
const w1 = fakeCandidate();
const w2 = fakeCandidate({ id: 'w2' });

describe('routing by prefixes', () => {
  it('B09: what only an optional feature reads is not written while the feature is off', async () => {
    const router = await fleet(names(4), { policy: 'cache_aware' });
    const select = (i: number): void => {
      router.selectWorker({ text: 'the same prompt', rid: `rid-${i}`, ...keyedBy(i) });
    };
    const keyedBy = (i: number): RouteRequest => ({ headers: { 'x-smg-routing-key': `key-${i}`, cookie: `c-${i}` } });
    const selections = isFull ? 100_000 : 20_000;
    for (let i = 0; i < 2000; i++) select(i);
    const before = heapAfterCollection();
    for (let i = 0; i < selections; i++) select(2000 + i);
    // One entry for each of them would take 50 bytes at least.
    expect(heapAfterCollection() - before).toBeLessThan(50 * selections);
    expect(router.pinCount).toBe(0);
    expect(router.snapshot().pieces.map(({ piece }) => piece.kind)).toEqual(['text']);
    expect(Object.values(router.kvEvents.counts)).toEqual(Object.values(router.kvEvents.counts).map(() => 0));
    expect(router.pools()).toHaveLength(1);
    expect(router.leases().open).toBe(0);
    expect(router.warnings.length).toBeLessThanOrEqual(256);
    for (const worker of router.workers()) expect(worker.activeKeys).toBe(0);
  });

  it('B11: a common model is no common content', async () => {
    const router = await fleet([
      { id: 'w1', models: ['m'] },
      { id: 'w2', models: ['m'] },
    ]);
    router.setStatus('w2', 'not_ready');
    expect(pick(router, { model: 'm', text: 'a'.repeat(64) })).toBe('w1');
    router.setStatus('w2', 'ready');
    router.begin('w1');
    const request = { model: 'm', text: 'b'.repeat(64) };
    expect(router.explain(request).policy.match).toMatchObject({ matchedUnits: 0, ratio: 0, holders: [] });
    const selection = router.selectWorker(request);
    expect(selection).toMatchObject({ worker: { id: 'w2' }, record: { branch: 'expected_wait_fallback' } });
    const heads = ['a', 'b'].map((letter) => prefixHeads({ model: 'm', text: letter.repeat(64) }, {}, hash)[0]?.hash);
    expect(heads[0]).not.toBe(heads[1]);
  });

  it('B12: a head shorter than the budget is hashed whole', () => {
    const headOf = (text: string): bigint | undefined =>
      prefixHeads({ text }, { prefixTokenCount: 256 }, hash)[0]?.hash;
    expect(headOf('hi A')).not.toBe(headOf('hi B'));
    const policy = prefixHash({ prefixTokenCount: 256, hash, seed: 1, clock: () => 0 });
    const candidates = fakeFleet(4);
    const prompts = times(1000, (i) => `${String(i).padStart(4, '0')}??`);
    const chosen = prompts.map((text) => policy.selectWorker({ text }, candidates));
    const counts = tally(chosen.map((selection) => (selection.ok ? selection.worker.id : 'nobody')));
    expect(counts.size).toBe(4);
    expect(Math.max(...counts.values())).toBeLessThanOrEqual(320);
    // Longer prompts too, that differ in the last partial block only.
    const long = (tail: string): RouteRequest => ({ tokens: [...range(1, 40), ...tail].map(Number) });
    const [first, second] = ['1', '2'].map((tail) => prefixHeads(long(tail), { prefixTokenCount: 256 }, hash)[0]?.hash);
    expect(first).not.toBe(second);
  });

  it('B14: model, salt and adapter keep matches apart', async () => {
    const models = ['m1', 'm2'];
    const router = await fleet([
      { id: 'w1', models },
      { id: 'w2', models },
    ]);
    const matched = (request: RouteRequest): number => router.explain(request).policy.match?.matchedUnits ?? 0;
    const text = 'a prompt that several tenants send';
    const base = { model: 'm1', text };
    pick(router, { ...base, namespace: { cacheSalt: 's1' } });
    pick(router, { ...base, namespace: { lora: 'a1' } });
    expect(matched({ ...base, namespace: { cacheSalt: 's1' } })).toBe(text.length);
    expect(matched({ ...base, namespace: { cacheSalt: 's2' } })).toBe(0);
    expect(matched({ ...base, namespace: { lora: 's1' } })).toBe(0);
    expect(matched(base)).toBe(0);
    pick(router, base);
    expect(matched(base)).toBe(text.length);
    expect(matched({ model: 'm2', text })).toBe(0);
  });

  it('B15: a request is recorded for the worker that got it, whatever branch chose it', async () => {
    const policy = { name: 'cache_aware', cacheThreshold: 0.5 } as const;
    const prompt = noise(200, seededRandom('B15'));
    const sharing = prompt.slice(0, 160) + noise(40, seededRandom('other'));
    for (let seed = 0; seed < 20; seed++) {
      const router = await fleet(names(2), { policy, seed });
      const route = (text: string): string => {
        const acquired = router.acquire({ text });
        if (!acquired.ok) throw new Error('nothing acquired');
        acquired.lease.end({ status: 200 });
        return `${acquired.worker.id} ${acquired.record.branch}`;
      };
      const first = route(prompt);
      const [worker] = first.split(' ');
      expect(first).toBe(`${worker} expected_wait_fallback`);
      expect(route(prompt)).toBe(`${worker} tree_match`);
      expect(route(sharing)).toBe(`${worker} tree_match`);
    }
  });

  it('B17: a miss is decided by the wait, not by the size of a tree', () => {
    const policy = cacheAware({ seed: 1, clock: () => 0 });
    const draw = seededRandom('B17');
    policy.selectWorker({ text: noise(100, draw) }, [w1]);
    for (let i = 0; i < 100; i++) policy.selectWorker({ text: noise(10_000, draw) }, [w2]);
    for (let i = 0; i < 20; i++) {
      const candidates = [fakeCandidate({ inFlight: 50 }), w2];
      expect(policy.selectWorker({ text: `${noise(50, draw)} unseen` }, candidates)).toMatchObject({
        worker: { id: 'w2' },
        record: { branch: 'expected_wait_fallback' },
      });
    }
  });

  it('B18: requests in flight are counted under every policy, and every policy sees those begun under another', async () => {
    const policies: readonly PolicyName[] = [
      'random',
      'passthrough',
      'round_robin',
      'least_load',
      'power_of_two',
      'cache_aware',
      'consistent_hashing',
      'prefix_hash',
      'manual',
    ];
    for (const policy of [...policies, { name: 'bucket', legs: 'any' } as const]) {
      const router = await fleet(names(2), { policy });
      for (let i = 0; i < 3; i++) router.acquire({ text: 'x', ...(i === 2 && { tokens: [1, 2, 3] }) });
      const counts = router.workers().map((worker) => worker.inFlight);
      const [first = -1, second = -1] = counts;
      expect(first + second).toBe(3);
      router.reconfigure({ policy: 'least_load', seed: 1 });
      expect(router.workers().map((worker) => worker.inFlight)).toEqual(counts);
      const { scores } = router.explain({}).policy;
      expect(scores?.map((terms) => terms.inFlight)).toEqual(counts);
      expect(pick(router)).toBe(first < second ? 'w1' : 'w2');
    }
  });

  it('B19: the count rises inside the selection, so a burst before any answer spreads', async () => {
    const draw = seededRandom('B19');
    const prompts = times(8, () => noise(4000, draw));
    const burst = async (policy: PolicyName, reports: boolean): Promise<number[]> => {
      const router = await fleet(names(4), { policy });
      if (reports) router.reportLoads(names(4).map((id) => [id, { waitingRequests: 0, kvCacheUsage: 0 }]));
      // With reports the credit alone must do it: nothing is begun.
      const ids = prompts.map((text) => (reports ? pick(router, { text }) : acquire(router, { text })));
      return names(4).map((id) => tally(ids).get(id) ?? 0);
    };
    for (const reports of [false, true]) {
      expect(await burst('least_load', reports)).toEqual([2, 2, 2, 2]);
      expect(Math.max(...(await burst('cache_aware', reports)))).toBeLessThanOrEqual(3);
    }
  });

  it('B20: exact ties are broken uniformly', () => {
    const text = 'a prompt nobody has seen';
    const draws = {
      least_load: distribution(leastLoad, {}, fakeFleet(4), { seeds: 4000 }),
      power_of_two: distribution(powerOfTwo, {}, fakeFleet(4), { seeds: 4000 }),
      cache_aware: distribution(cacheAware, { text }, fakeFleet(4), { seeds: 4000 }),
      min_load: distribution(
        (runtime) => manual({ ...runtime, assignmentMode: 'min_load' }),
        { routingKey: 'a new key' },
        fakeFleet(4),
        { seeds: 4000 },
      ),
    };
    for (const [name, { counts, nobody }] of Object.entries(draws)) {
      expect(nobody, name).toBe(0);
      for (const [id, wins] of counts) expect(Math.abs(wins - 1000), `${name} ${id}`).toBeLessThanOrEqual(120);
    }
    // Two holders of as many blocks tie as well; the two that hold nothing are out.
    const stored = { type: 'stored', hashes: ['1'], tokens: range(1, 16), blockSize: 16 } as const;
    const holders = distribution(
      (runtime) => {
        const policy = cacheAware(runtime);
        for (const id of ['w1', 'w2']) policy.kvEvents.applyBatch(id, { sequence: 0, events: [stored] });
        return policy;
      },
      { tokens: range(1, 20) },
      fakeFleet(4),
    );
    expect(holders.reachable).toEqual(['w1', 'w2']);
  });

  it('B24: a label that names the configured policy gets its settings, another one the defaults', async () => {
    const router = await createRouter({ policy: { name: 'cache_aware', cacheThreshold: 0.9, maxTreeSize: 4096 } });
    router.addWorker({ id: 'w1', models: ['same'], labels: { policy: 'cache_aware' } });
    router.addWorker({ id: 'w2', models: ['other'], labels: { policy: 'least_load' } });
    const poolOf = (model: string) => router.pools().find((pool) => pool.model === model);
    expect(poolOf('same')).toMatchObject({
      policy: 'cache_aware',
      options: { cacheThreshold: 0.9, maxTreeSize: 4096, balanceAbsThreshold: 64 },
    });
    expect(poolOf('other')).toMatchObject({
      policy: 'least_load',
      options: { kvPressureWeight: 0.15, defaultThroughput: 2000, meanPrefillTokens: 1024, maxWaitingRequests: 0 },
    });
    // In effect, too: half of the prompt is no match at 0.9.
    router.selectWorker({ model: 'same', text: 'x'.repeat(100) });
    const half = router.selectWorker({ model: 'same', text: 'x'.repeat(100) + 'y'.repeat(100) });
    expect(half.record).toMatchObject({ threshold: 0.9, matchedRatio: 0.5, branch: 'expected_wait_fallback' });
  });
});

function acquire(router: Awaited<ReturnType<typeof fleet>>, request: RouteRequest): string {
  const acquired = router.acquire(request);
  return acquired.ok ? acquired.worker.id : acquired.reason;
}
