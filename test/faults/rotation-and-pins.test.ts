/** Reported faults of rotations, timers, sticky sessions and bounded maps: one test an id. */
import {
  consistentHashing,
  leastLoad,
  loadHash,
  manual,
  type RouteRequest,
  roundRobin,
  type StandalonePolicy,
  StringTree,
  seededRandom,
  stickySessions,
} from 'kvroute';
import { fakeCandidate, fakeFleet, manualClock } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { heapAfterCollection } from '../support/heap.js';
import { runScript } from './run-script.js';
import { fleet, isFull, keyed, names, pick, tally, times } from './support.js';

const hash = await loadHash();

function choice(policy: StandalonePolicy, request: RouteRequest, candidates = fakeFleet(4)): string {
  const selection = policy.selectWorker(request, candidates);
  return selection.ok ? selection.worker.id : selection.reason;
}

describe('rotations, timers and pins', () => {
  it('B70: every candidate set has a rotation of its own', () => {
    const policy = roundRobin();
    const prefill = times(4, (i) => fakeCandidate({ id: `p${i + 1}` }));
    const decode = times(4, (i) => fakeCandidate({ id: `d${i + 1}` }));
    const picks = times(80, (i) => choice(policy, {}, i % 2 === 0 ? prefill : decode));
    expect([...tally(picks).values()]).toEqual(times(8, () => 10));
    const spread = (ids: readonly string[]): number => {
      const counts = prefill.map(({ id }) => tally(ids).get(id) ?? 0);
      return Math.max(...counts) - Math.min(...counts);
    };
    // p2 is out for three picks; the whole set goes on where it stood.
    const whole = times(6, () => choice(policy, {}, prefill));
    const without = times(3, () => choice(policy, {}, prefill.toSpliced(1, 1)));
    expect(tally(without)).toEqual(new Map([...new Set(without)].map((id) => [id, 1])));
    whole.push(...times(7, () => choice(policy, {}, prefill)));
    expect(spread(whole)).toBeLessThanOrEqual(1);
    expect(tally(whole).size).toBe(4);
  });

  it('B72: workers may be removed while they are being chosen', async () => {
    for (const policy of ['round_robin', 'random', 'least_load', 'cache_aware', 'consistent_hashing'] as const) {
      const router = await fleet(names(5), { policy });
      router.on('selected', ({ worker }) => router.removeWorker(worker.id));
      const picks = times(5, () => pick(router, { text: 'x' }));
      expect(new Set(picks), policy).toEqual(new Set(names(5)));
      expect(pick(router), policy).toBe('no_workers');
    }
    // Also while reports age out and drained workers go: two listeners that remove each other's worker, once each.
    const time = manualClock();
    const router = await fleet(names(6), {
      policy: 'round_robin',
      clock: time.clock,
      loadReportMaxAgeMs: 10,
      drainSettleMs: 10,
    });
    const removed: string[] = [];
    router.on('workerRemoved', ({ worker }) => removed.push(worker.id));
    router.reportLoads(names(6).map((id) => [id, { waitingRequests: 1 }]));
    for (const id of ['w2', 'w3']) router.setStatus(id, 'draining');
    router.on('reportLost', ({ worker }) => router.removeWorker(worker.id === 'w5' ? 'w1' : 'w5'));
    time.advance(60_000);
    while (router.maintain());
    expect(removed.toSorted()).toEqual(['w1', 'w2', 'w3', 'w5']);
    expect(router.workers().map(({ id, report }) => [id, report])).toEqual([
      ['w4', undefined],
      ['w6', undefined],
    ]);
    expect(new Set(times(4, () => pick(router)))).toEqual(new Set(['w4', 'w6']));
  });

  it('B74: nothing runs in the background, so a process that forgets its routers ends by itself', async () => {
    const { code, stdout, stderr } = await runScript(`
      import { bucket, cacheAware, createRouter, leastLoad, manual } from 'kvroute';
      const kept = [];
      for (let i = 0; i < 1000; i++) {
        const router = await createRouter({ policy: { name: 'bucket', legs: 'any' }, maxLeaseAgeMs: 1000 });
        router.addWorker({ id: 'w' });
        router.acquire({ text: 'x' });
        kept.push(router, bucket(), cacheAware({ cacheIndex: 'hash', cacheBoundaries: [4] }), leastLoad(), manual());
      }
      console.log(kept.length, process.getActiveResourcesInfo().filter((name) => /Timeout|Immediate/.test(name)).length);
    `);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '5000 0\n', stderr: '' });
  });

  it('B75: the cap of a pin looks at its own key, and moving must be an improvement', () => {
    const policy = stickySessions(leastLoad({ seed: 1, clock: () => 0 }));
    const k = keyed('k');
    const workers = (own: readonly [number, number], foreign: readonly [number, number]) =>
      fakeFleet(2, (i) => ({
        inFlight: (own[i] ?? 0) + (foreign[i] ?? 0),
        keysInFlight: { k: own[i] ?? 0, other: foreign[i] ?? 0 },
      }));
    const pins = () => policy.explain(k, workers([0, 0], [0, 0])).policy.pinned;
    expect(choice(policy, k, workers([0, 0], [0, 1]))).toBe('w1');
    expect(choice(policy, k, workers([0, 0], [50, 0]))).toBe('w1');
    expect(choice(policy, k, workers([1, 0], [50, 0]))).toBe('w1');
    expect(pins()?.[0]).toBe('w1');
    // Two of the key itself are open: the third goes elsewhere and the pin with it.
    expect(choice(policy, k, workers([2, 0], [0, 0]))).toBe('w2');
    expect(pins()?.[0]).toBe('w2');
    expect(choice(policy, k, workers([2, 1], [0, 9]))).toBe('w2');
    // Both are full of it: it goes where the load says, and the pin stays.
    expect(choice(policy, k, workers([2, 2], [0, 9]))).toBe('w1');
    expect(pins()?.[0]).toBe('w2');
  });

  it('B77: pins go by idleness counted from their last use, all of them, and no other way', async () => {
    const time = manualClock();
    const policy = { name: 'manual', maxIdleMs: 10_000, evictionIntervalMs: 1000 } as const;
    const router = await fleet(names(4), { policy, clock: time.clock });
    for (let i = 0; i < 6000; i++) {
      pick(router, keyed(`key-${i}`));
      if (i % 2 === 1) time.advance(1);
    }
    expect([time.now, router.pinCount]).toEqual([3000, 6000]);
    time.set(14_000);
    while (router.maintain());
    expect(router.pinCount).toBe(0);

    const home = pick(router, keyed('touched'));
    const before = times(200, (i) => pick(router, keyed(`stays-${i}`)));
    for (let id = 5; id <= 9; id++) router.addWorker({ id: `w${id}` });
    expect(times(200, (i) => pick(router, keyed(`stays-${i}`)))).toEqual(before);
    for (let i = 0; i < 20; i++) {
      time.advance(9000);
      while (router.maintain());
      expect(pick(router, keyed('touched'))).toBe(home);
    }
    expect(router.pinCount).toBe(1);
    // Refreshed twenty times it is still not immortal.
    time.advance(10_000);
    expect(router.selectWorker(keyed('touched')).record.branch).toBe('vacant');
  });

  it('B78: sizes equal a recount after any mix of operations, and no bound is not a bound of 0', async () => {
    const draw = seededRandom('B78');
    const below = (n: number): number => Math.floor(draw() * n);
    const wrong: string[] = [];

    const tree = new StringTree({ maxTreeSize: 60 });
    const ids = names(4);
    for (let op = 0; op < (isFull ? 10_000 : 2000); op++) {
      const id = ids[below(4)] as string;
      const kind = draw();
      if (kind < 0.85) tree.insert(times(1 + below(8), () => 'ab😀'.at(below(3))).join(''), id);
      else if (kind < 0.9) tree.removeTenant(id);
      else if (kind < 0.95) tree.evictTo(below(60));
      else tree.maintain({ spent: () => draw() < 0.5 });
      const held = new Map<string, Set<string>>(ids.map((worker) => [worker, new Set()]));
      for (const { units, worker } of tree.placements()) {
        const points = [...units];
        for (const [i] of points.entries()) held.get(worker)?.add(points.slice(0, i + 1).join(''));
      }
      let sum = 0;
      for (const [worker, prefixes] of held) {
        sum += prefixes.size;
        if (tree.sizeOf(worker) !== prefixes.size) wrong.push(`op ${op}: ${worker} has ${tree.sizeOf(worker)}`);
      }
      if (tree.size !== sum || tree.size < 0 || tree.size > 60 + 8) wrong.push(`op ${op}: ${tree.size} for ${sum}`);
    }
    expect(wrong).toEqual([]);

    const time = manualClock();
    const policy = { name: 'manual', maxPins: 50, maxIdleMs: 1000, evictionIntervalMs: 100 } as const;
    const router = await fleet(names(4), { policy, clock: time.clock });
    let evicted = 0;
    router.on('pinEvicted', ({ remaining }) => {
      evicted += 1;
      if (remaining < 0) wrong.push(`${remaining} remain`);
    });
    const pins = new Map<string, number>();
    for (let op = 0; op < 10_000; op++) {
      const key = `key-${below(100)}`;
      time.advance(below(30));
      while (router.maintain());
      pick(router, keyed(key));
      for (const [old, usedAt] of pins) if (time.now - usedAt >= 1000) pins.delete(old);
      pins.delete(key);
      pins.set(key, time.now);
      for (const oldest of pins.keys()) if (pins.size > 50) pins.delete(oldest);
      // A sweep comes every 100 ms: what it has not met yet may still be counted, what is alive always is.
      const idle = router.pinCount - pins.size;
      if (idle < 0 || idle > 12 || router.pinCount > 50) wrong.push(`op ${op}: ${router.pinCount} for ${pins.size}`);
    }
    time.advance(2000);
    while (router.maintain());
    expect([wrong, router.pinCount]).toEqual([[], 0]);
    expect(evicted).toBeGreaterThan(1000);

    const unbounded = await fleet(names(4), { policy: 'manual' });
    for (let i = 0; i < 20_000; i++) pick(unbounded, keyed(`key-${i}`));
    expect(unbounded.pinCount).toBe(20_000);
  });

  it('B79: a routing key arrives in headers of any shape and case, and one that is too long is none', () => {
    const policy = consistentHashing({ hash, seed: 79, clock: () => 0 });
    const home = choice(policy, { routingKey: 'k' });
    const others = times(20, (i) => `k${i}`).filter((key) => choice(policy, { routingKey: key }) !== home);
    expect(others.length).toBeGreaterThan(0);
    const shapes: readonly RouteRequest['headers'][] = [
      { 'X-SMG-Routing-Key': 'k' },
      { 'x-smg-routing-key': ['k'] },
      { 'x-smg-routing-key': ['', 'x'.repeat(129), 'k', 'other'] },
      { 'X-Smg-ROUTING-key': ' k\t' },
      new Headers({ 'X-SMG-Routing-Key': 'k' }),
      new Map([['X-SMG-Routing-Key', 'k']]),
      new Map([['x-smg-routing-key', ['k']]]),
      (name: string) => (name === 'x-smg-routing-key' ? 'k' : undefined),
    ];
    for (const headers of shapes) {
      const selection = policy.selectWorker({ headers }, fakeFleet(4));
      expect(selection).toMatchObject({
        worker: { id: home },
        record: { branch: 'routing_key_hit', source: 'header' },
      });
    }
    for (const key of ['x'.repeat(129), `${'é'.repeat(64)}x`]) {
      const { record } = policy.selectWorker(keyed(key), fakeFleet(4));
      expect([record.branch, record.keyHash]).toEqual(['random_fallback', undefined]);
    }
    expect(policy.selectWorker(keyed('é'.repeat(64)), fakeFleet(4)).record.branch).toBe('routing_key_hit');
    // `manual` keeps long keys, by their hash, and does not confuse them.
    const pinned = manual({ seed: 1, clock: () => 0 });
    expect(choice(pinned, keyed('x'.repeat(500)))).toBe(choice(pinned, keyed('x'.repeat(500))));
  });

  it('B80: what is kept for a set or a key is bounded, and goes with its last use', async () => {
    const policy = roundRobin();
    const all = fakeFleet(17);
    const subset = (mask: number) => all.filter((_, i) => mask & (1 << i));
    const select = (mask: number) => policy.selectWorker({}, subset(mask));
    const sets = isFull ? 100_000 : 15_000;
    for (let mask = 1; mask <= 5000; mask++) select(mask);
    const before = heapAfterCollection();
    for (let mask = 5001; mask <= 5000 + sets; mask++) select(mask);
    // A rotation takes more than 50 bytes: the same 4 096 before and after.
    expect(heapAfterCollection() - before).toBeLessThan(50 * sets);
    // The last 4 096 sets resume, the one before them starts anew.
    const fresh = roundRobin();
    const first = () => choice(fresh, {}, all);
    const turns = [first(), first()];
    for (let mask = 1; mask < 4096; mask++) fresh.selectWorker({}, subset(mask));
    turns.push(first());
    expect(turns).toEqual(['w1', 'w2', 'w3']);
    for (let mask = 1; mask <= 4096; mask++) fresh.selectWorker({}, subset(mask));
    expect(first()).not.toBe('w4');

    const router = await fleet(names(2), { policy: 'least_load' });
    const begin = (i: number): void => {
      const acquired = router.acquire(keyed(`key-${i}`));
      if (acquired.ok) acquired.lease.end({ status: 200 });
    };
    for (let i = 0; i < 2000; i++) begin(i);
    const settled = heapAfterCollection();
    const keys = isFull ? 100_000 : 10_000;
    for (let i = 0; i < keys; i++) begin(2000 + i);
    expect(router.workers().map(({ activeKeys }) => activeKeys)).toEqual([0, 0]);
    expect(heapAfterCollection() - settled).toBeLessThan(50 * keys);
  });
});
