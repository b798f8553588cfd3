/** Reported faults of prefix trees and of routing by them: each is ruled out here by one test, under its id. */
import {
  cacheAware,
  createRouter,
  KvEventFeed,
  type KvEventIndex,
  leastLoad,
  loadHash,
  type MaintenanceBudget,
  manual,
  type PolicyName,
  powerOfTwo,
  prefixHash,
  prefixHeads,
  type RouteRequest,
  StringTree,
  seededRandom,
  TokenTree,
} from 'kvroute';
import { distribution, fakeCandidate, fakeFleet } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { heapAfterCollection } from '../support/heap.js';
import { fleet, names, pick, tally, times } from './support.js';

const hash = await loadHash();
const w1 = fakeCandidate();
const w2 = fakeCandidate({ id: 'w2' });
const noLimit: MaintenanceBudget = { spent: () => false };
const large = 1_000_000_000;
/** With KVROUTE_FULL_FAULTS=1 the tests that are scaled down run at their full size. */
const isFull = process.env.KVROUTE_FULL_FAULTS === '1';

const range = (from: number, to: number): number[] => times(to - from + 1, (i) => from + i);

/** A text of the given length that differs from that of any other seed within a few characters. */
function noise(length: number, draw: () => number): string {
  return String.fromCharCode(...times(length, () => 97 + Math.floor(draw() * 26)));
}

describe('prefix trees and cache_aware', () => {
  it('B02: the matched share is counted in code points on both sides of the division', () => {
    const held = 'hello你好';
    const asked = 'hello你好世界';
    const policy = cacheAware({ cacheThreshold: 0.75, seed: 1, clock: () => 0 });
    policy.selectWorker({ text: held }, [w1]);
    // Counted in bytes, 11 of 17 would be a miss, and the idle w2 would win.
    const candidates = [fakeCandidate({ inFlight: 5 }), w2];
    const { match } = policy.explain({ text: asked }, candidates).policy;
    expect(match).toMatchObject({ index: 'string_tree', matchedUnits: 7, requestUnits: 9, ratio: 7 / 9 });
    const selection = policy.selectWorker({ text: asked }, candidates);
    expect(selection).toMatchObject({ ok: true, worker: { id: 'w1' }, record: { branch: 'tree_match' } });
    expect(selection.record.matchedRatio).toBeCloseTo(0.78, 2);
    expect(policy.explain({ text: '' }, candidates).policy.match).toMatchObject({
      matchedUnits: 0,
      requestUnits: 0,
      ratio: 0,
    });
    const draw = seededRandom('B02');
    const alphabet = ['a', '你', '😀', 'e\u0301', '\ud83d'];
    for (const text of times(100, () => times(1 + Math.floor(draw() * 6), () => alphabet[Math.floor(draw() * 5)]))) {
      const request = { text: text.join('') };
      const ratio = policy.explain(request, candidates).policy.match?.ratio ?? -1;
      expect(ratio).toBeGreaterThanOrEqual(0);
      expect(ratio).toBeLessThanOrEqual(1);
      policy.selectWorker(request, candidates);
      // What was just recorded is held whole: both sides of the division agree to the last code point.
      expect(policy.explain(request, candidates).policy.match?.ratio).toBe(1);
    }
  });

  it('B03: reading never invents an owner', () => {
    const tree = new StringTree({ maxTreeSize: large });
    for (let i = 0; i < 1000; i++) expect(tree.match('x').tenants).toEqual([]);
    expect(tree.tenants()).toEqual([]);
    expect([tree.tenantCount, tree.nodeCount, tree.size]).toEqual([0, 0, 0]);
    tree.insert('', 'w1');
    expect(['w1']).toEqual(expect.arrayContaining(tree.tenants()));
    expect(tree.size).toBe(0);
    expect(tree.match('x').tenants).toEqual([]);
  });

  it('B04: a removed worker leaves the trees of all its models, text and tokens, with its counters and its nodes', async () => {
    const tree = new StringTree({ maxTreeSize: large });
    tree.insert('hello world', 'w1');
    tree.insert('hello there', 'w2');
    tree.removeTenant('w1');
    expect(new Map(tree.tenants().map((id) => [id, tree.sizeOf(id)]))).toEqual(new Map([['w2', 11]]));
    expect(tree.size).toBe(11);
    expect(tree.match('hello world')).toEqual({ matchedUnits: 6, requestUnits: 11, tenants: ['w2'] });
    while (tree.maintain(noLimit));
    expect(tree.printTree()).not.toContain('world');
    tree.addTenant('w1');
    expect(tree.sizeOf('w1')).toBe(0);

    const tokens = new TokenTree({ maxTreeSize: large, blockSize: 4 });
    tokens.insert(range(1, 8), 'w1');
    tokens.removeTenant('w1');
    expect([tokens.tenants(), tokens.size, tokens.match(range(1, 8)).tenants]).toEqual([[], 0, []]);

    const models = ['m1', 'm2'];
    const router = await fleet([
      { id: 'w1', models },
      { id: 'w2', models },
    ]);
    router.setStatus('w2', 'not_ready');
    for (const model of models) {
      router.selectWorker({ model, text: 'hello world' });
      router.selectWorker({ model, tokens: range(1, 32) });
    }
    expect(JSON.stringify(router.snapshot())).toContain('"w1"');
    router.removeWorker('w1');
    expect(JSON.stringify(router.snapshot())).not.toContain('"w1"');
    router.addWorker({ id: 'w1', models });
    router.setStatus('w2', 'ready');
    for (const request of [{ text: 'hello world' }, { tokens: range(1, 32) }]) {
      expect(router.explain({ model: 'm1', ...request }).policy.match?.holders ?? []).toEqual([]);
    }
  });

  it('B05: walking over an owned path again adds nothing to its owner', () => {
    const tree = new TokenTree({ maxTreeSize: large, blockSize: 16 });
    for (let i = 0; i < 3; i++) tree.insert(range(0, 47), 'w1');
    expect(tree.sizeOf('w1')).toBe(48);
    tree.insert([...range(0, 15), ...range(100, 115)], 'w2');
    expect([tree.sizeOf('w2'), tree.sizeOf('w1'), tree.size]).toEqual([32, 48, 80]);
  });

  it('B07: inner nodes go with the leaves below them', () => {
    const tree = new StringTree({ maxTreeSize: large });
    const draw = seededRandom('B07');
    for (let i = 0; i < 10_000; i++) tree.insert(`sys:${i}${noise(200, draw)}`, 'w1');
    expect(tree.nodeCount).toBeGreaterThan(10_000);
    tree.evictTo(1000);
    expect(tree.size).toBeLessThanOrEqual(1000);
    const [piece] = tree.pieces(Number.MAX_SAFE_INTEGER);
    const parents = new Set(piece?.parents.filter((parent) => parent >= 0));
    const leaves = (piece?.labels.length ?? 0) - parents.size;
    expect(leaves).toBeGreaterThan(0);
    expect(tree.nodeCount).toBe(piece?.labels.length);
    expect(tree.nodeCount).toBeLessThanOrEqual(2 * leaves + 1);
    tree.evictTo(0);
    expect([tree.nodeCount, tree.size]).toEqual([0, 0]);
  });

  it('B08: memory follows the budget, however many different prompts come', () => {
    const maxTreeSize = 1_000_000;
    const prompts = isFull ? 200_000 : 4000;
    const tree = new StringTree({ maxTreeSize });
    const draw = seededRandom('B08');
    const body = noise(2000, draw);
    const tick = (): void => {
      while (tree.maintain(noLimit));
      expect(tree.size).toBeLessThanOrEqual(maxTreeSize);
    };
    let atQuarter = 0;
    for (let i = 1; i <= prompts; i++) {
      const cut = Math.floor(draw() * 1900);
      tree.insert(`${i}:${body.slice(cut)}${body.slice(0, cut)}`.slice(0, 2000), 'w1');
      if (tree.size > maxTreeSize + 2000) throw new Error(`${tree.size} after prompt ${i}`);
      if (i % 1000 === 0) tick();
      if (i === prompts / 4) atQuarter = heapAfterCollection();
    }
    const atEnd = heapAfterCollection();
    expect(Math.abs(atEnd - atQuarter) / atQuarter).toBeLessThan(0.2);
    // The test runner's own heap is most of that, so the difference itself is looked at too: three trees' worth of text.
    expect(atEnd - atQuarter).toBeLessThan(3 * maxTreeSize);
    expect(tree.nodeCount).toBeLessThan(3000);
  });

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

  it('B10: storing a block again changes no count, nor does removing it again', () => {
    const { index, store, remove } = oneStream();
    store('w1', ['1', '2', '3'], range(1, 12));
    store('w1', ['1', '2', '3'], range(1, 12));
    expect(index().blocksOf('w1')).toBe(3);
    for (const name of ['1', '2', '3']) remove('w1', [name]);
    expect(index().blocksOf('w1')).toBe(0);
    for (const name of ['1', '2', '3']) remove('w1', [name]);
    expect([index().blocksOf('w1'), index().memberships]).toEqual([0, 0]);
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

  it('B13: a block is what precedes it too: the middle of one prompt is not the start of another', () => {
    const { index, store } = oneStream();
    store('w1', ['1', '2', '3'], range(1, 12));
    expect(index().overlaps(range(5, 16), 0).count).toBe(0);
    const match = index().overlaps([...range(1, 8), 99, 99, 99, 99], 0);
    expect([match.count, match.worker(0), match.overlap(0) * match.blockSize]).toEqual([1, 'w1', 8]);
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

  it('B21: only an unbroken run from the start counts as a prefix', () => {
    const { index, store, remove } = oneStream();
    const tokens = range(1, 16);
    store('w1', ['1', '2', '3', '4'], tokens);
    remove('w1', ['2']);
    store('w2', ['1', '2', '3', '4'], tokens);
    remove('w2', ['1']);
    expect([index().blocksOf('w1'), index().blocksOf('w2')]).toEqual([3, 3]);
    const match = index().overlaps(tokens, 0);
    expect([match.count, match.worker(0), match.overlap(0)]).toEqual([1, 'w1', 1]);
  });

  it('B22: self-similar prompts neither shift depths nor counts', () => {
    const tree = new StringTree({ maxTreeSize: large });
    const draw = seededRandom('B22');
    const prompts = times(8, (i) => 'a'.repeat(8 * (i + 1)) + 'bcdefghi'[i]?.repeat(5));
    const inserted = new Set<string>();
    const wrong: string[] = [];
    for (let round = 0; round < 3000; round++) {
      const j = Math.floor(draw() * 8);
      tree.insert(prompts[j] as string, `t${j + 1}`);
      inserted.add(prompts[j] as string);
      let total = 0;
      for (const prompt of inserted) {
        const tenant = `t${prompts.indexOf(prompt) + 1}`;
        const { matchedUnits, tenants } = tree.match(prompt);
        const isWhole = matchedUnits === prompt.length && tenants.join() === tenant;
        if (!isWhole || tree.sizeOf(tenant) !== prompt.length) wrong.push(`${tenant} in round ${round}`);
        total += prompt.length;
      }
      if (tree.size !== total) wrong.push(`the sum in round ${round}`);
    }
    expect(wrong).toEqual([]);
    expect(inserted.size).toBe(8);
  });

  it('B23: there is no silent limit on workers, and places of removed ones are given again', () => {
    const ids = names(5000);
    const { feed, index, store } = oneStream(ids);
    for (const id of ids) store(id, ['1'], range(1, 4));
    const match = index().overlaps(range(1, 4), 0);
    expect(match.count).toBe(5000);
    expect(new Set(times(5000, (i) => match.worker(i))).size).toBe(5000);
    expect([index().memberships, index().workerCount]).toEqual([5000, 5000]);

    const churn = (count: number): number => {
      for (let i = 0; i < count; i++) {
        feed.addWorker(`c${i}`, ['m']);
        store(`c${i}`, ['1', String(i + 2)], [...range(1, 4), ...range(i, i + 3)]);
        feed.removeWorker(`c${i}`);
        feed.maintain(0, noLimit);
      }
      return index().byteLength;
    };
    const settled = churn(1000);
    expect(churn(10_000)).toBeLessThanOrEqual(settled * 1.5);
    expect([index().memberships, index().workerCount, index().blockCount]).toEqual([5000, 5000, 1]);

    const policy = cacheAware({ seed: 1, clock: () => 0 });
    for (const id of ids) policy.selectWorker({ text: `only ${id} was given this` }, [fakeCandidate({ id })]);
    const everybody = ids.map((id) => fakeCandidate({ id }));
    for (const id of ['w1', 'w2048', 'w2049', 'w5000']) {
      expect(policy.selectWorker({ text: `only ${id} was given this` }, everybody)).toMatchObject({ worker: { id } });
    }
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

/** A feed of model `m` with blocks of 4 tokens, and its streams of events. */
function oneStream(ids: readonly string[] = names(2)) {
  const feed = new KvEventFeed();
  const next = new Map<string, number>();
  for (const id of ids) feed.addWorker(id, ['m']);
  const apply = (id: string, event: object): void => {
    const sequence = next.get(id) ?? 0;
    next.set(id, sequence + 1);
    const { result } = feed.applyBatch(id, { sequence, events: [event as never] }, 0);
    if (result !== 'applied') throw new Error(`${id}: ${result}`);
  };
  return {
    feed,
    index: (): KvEventIndex => feed.indexFor('m') as KvEventIndex,
    store: (id: string, hashes: readonly string[], tokens: readonly number[]): void =>
      apply(id, { type: 'stored', hashes, tokens, blockSize: 4 }),
    remove: (id: string, hashes: readonly string[]): void => apply(id, { type: 'removed', hashes }),
  };
}
