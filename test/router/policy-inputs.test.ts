/** What a policy is given and what becomes of what it gives back; warnings instead of log lines. */
import {
  bucket,
  cacheAware,
  consistentHashing,
  createRouter,
  Decision,
  type DecisionContext,
  leastLoad,
  loadHash,
  manual,
  type Policy,
  passthrough,
  powerOfTwo,
  prefixHash,
  type RequestView,
  RoutingConfigError,
  random,
  roundRobin,
  type StandalonePolicy,
  type WorkerSignals,
} from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';

interface Seen {
  readonly request: RequestView;
  readonly workers: readonly WorkerSignals[];
  readonly ctx: DecisionContext;
}

/** A policy that writes down what it is given and takes the candidate at a position. */
function watching(seen: Seen[], position: number): Policy {
  return {
    name: 'watching',
    needs: { ring: true },
    decide: (request, candidates, ctx) => {
      seen.push({ request, workers: candidates.workers, ctx });
      return new Decision(candidates.workers[position]);
    },
  };
}

describe('a policy', () => {
  it('PO-1: is given the available candidates in order, the request, the leg and the ring', async () => {
    const seen: Seen[] = [];
    const router = await createRouter({ policy: () => watching(seen, 0), modelAliases: { alias: 'm' } });
    for (const id of ['c', 'a', 'b', 'd']) router.addWorker({ id, models: ['m'] });
    router.setStatus('a', 'failed');
    const headers = { 'X-SMG-Routing-Key': 'k' };
    const tokens = [1, 2, 3];
    router.selectWorker({ model: 'alias', text: 'a prompt', tokens, headers, rid: 'r_t1', namespace: { lora: 'l' } });
    const [{ request, workers, ctx }] = seen as [Seen];
    expect(workers.map(({ id }) => id)).toEqual(['c', 'b', 'd']);
    expect(request).toMatchObject({ text: 'a prompt', tokens, rid: 'r_t1', namespace: { lora: 'l' } });
    expect(request.header('x-smg-routing-key')).toBe('k');
    expect([ctx.model, ctx.leg]).toEqual(['m', 'single']);
    // The ring holds every registered worker, available or not.
    const owners = new Set<string | undefined>();
    for (let i = 0n; i < 64n; i++) owners.add(ctx.ring?.lookup(i << 58n, () => true));
    expect([...owners].sort()).toEqual(['a', 'b', 'c', 'd']);
  });

  it('PO-2: gives one candidate or none, which is answered as no available workers', async () => {
    const router = await createRouter({ policy: () => watching([], 1) });
    router.addWorker({ id: 'a' });
    expect(router.selectWorker({})).toMatchObject({
      ok: false,
      reason: 'no_available_workers',
      code: 'no_available_workers',
      retryable: true,
    });
    router.addWorker({ id: 'b' });
    expect(router.selectWorker({})).toMatchObject({ ok: true, worker: { id: 'b' } });
  });

  it('PO-5: asks for the text of a request only when it is cache_aware or bucket', async () => {
    const hash = await loadHash();
    const policies: readonly StandalonePolicy[] = [
      ...[cacheAware(), bucket(), leastLoad(), powerOfTwo(), passthrough(), manual(), roundRobin(), random()],
      ...[consistentHashing({ hash }), prefixHash({ hash })],
    ];
    const asking: string[] = [];
    for (const policy of policies) {
      policy.wrap((inner) => {
        if (inner.needs.text) asking.push(inner.name);
        return inner;
      });
    }
    expect(asking).toEqual(['cache_aware', 'bucket']);
    // A hint is enough: both decide by it, without a body.
    const seen: Seen[] = [];
    const router = await createRouter({ policy: () => watching(seen, 0) });
    router.addWorker({ id: 'a' });
    router.selectWorker({ headers: { 'x-smg-routing-tokens': '1,2,3' } });
    expect(seen[0]?.request).toMatchObject({ text: undefined, tokens: Uint32Array.of(1, 2, 3) });
  });
});

describe('what others log', () => {
  it('OB-91: is told as a typed warning, once each', async () => {
    const router = await createRouter({ policy: 'passthrough' });
    for (const id of ['a', 'b', 'c']) router.addWorker({ id });
    for (let i = 0; i < 3; i++) router.selectWorker({});
    router.addWorker({ id: 'd', models: ['m'], labels: { policy: 'lest_load' } });
    expect(router.warnings.map(({ code }) => code)).toEqual(['passthroughManyWorkers', 'unknownPolicyLabel']);
    await expect(createRouter({ routingKeyHeaders: ['not a name'] })).rejects.toThrow(RoutingConfigError);
  });

  it('OB-90, OB-93: is in the record of a decision, with the hash of a key in place of the key', async () => {
    const router = await createRouter({ policy: 'cache_aware', seed: 1, routingKeyOverride: true });
    router.addWorker({ id: 'a', models: ['m'] });
    const text = 'a prompt that is long enough';
    router.selectWorker({ model: 'm', text });
    expect(router.selectWorker({ model: 'm', text }).record).toMatchObject({
      policy: 'cache_aware',
      branch: 'tree_match',
      matchedRatio: 1,
      threshold: 0.3,
      model: 'm',
    });
    const { record } = router.selectWorker({ model: 'm', text, routingKey: 'secret' });
    expect(record).toMatchObject({ branch: 'vacant', source: 'header', model: 'm' });
    expect(record.keyHash).toMatch(/^[0-9a-f]{16}$/);
    expect(JSON.stringify(record)).not.toContain('secret');
  });

  it('OB-92: is told as an event: pins that went, and the turns of a breaker', async () => {
    const time = manualTime();
    const router = await createRouter({
      policy: 'manual',
      maxIdleMs: 1000,
      evictionIntervalMs: 1000,
      circuitBreaker: { failureThreshold: 1 },
      clock: time.clock,
    });
    const told: unknown[] = [];
    router.on('pinEvicted', ({ cause, remaining }) => told.push([cause, remaining]));
    router.on('breakerTransition', ({ worker, from, to }) => told.push([worker.id, from, to]));
    router.addWorker({ id: 'a' });
    router.selectWorker({ headers: { 'x-smg-routing-key': 'k' } });
    time.advance(5000);
    while (router.maintain());
    router.recordOutcome('a', { status: 500 });
    expect(told).toEqual([
      ['idle', 0],
      ['a', 'closed', 'open'],
    ]);
  });

  it('P2-8: fewer than two workers are no reason to refuse power_of_two', async () => {
    const router = await createRouter({ policy: 'power_of_two' });
    router.addWorker({ id: 'a' });
    expect(router.selectWorker({})).toMatchObject({ ok: true, worker: { id: 'a' } });
  });

  it('WK-6: the runtime of a worker decides nothing', async () => {
    const runtimes = ['sglang', 'vllm', 'trtllm', 'mlx', 'tokenspeed', 'generic', 'external', undefined] as const;
    const router = await createRouter({ policy: 'round_robin' });
    for (const runtime of runtimes) router.addWorker({ id: String(runtime), runtime });
    const selected = new Set<string>();
    for (let i = 0; i < runtimes.length; i++) {
      const selection = router.selectWorker({});
      if (selection.ok) selected.add(selection.worker.id);
    }
    expect(selected.size).toBe(runtimes.length);
    expect(() => router.addWorker({ id: 'x', runtime: 'SGLang' as never })).toThrow(/runtime/);
  });
});
