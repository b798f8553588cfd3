import { createRouter, KvEventFeed, type Router, type WorkerSpec } from 'kvroute';
import { describe, expect, it, vi } from 'vitest';

async function pd(options = {}, ...workers: WorkerSpec[]): Promise<Router> {
  const router = await createRouter({
    mode: 'pd',
    policy: 'round_robin',
    seed: 1,
    ...options,
  });
  for (const worker of workers) router.addWorker({ models: ['m'], ...worker });
  return router;
}

const prefill = (id: string, labels?: Record<string, string>): WorkerSpec => ({ id, kind: 'prefill', labels });
const decode = (id: string, labels?: Record<string, string>): WorkerSpec => ({ id, kind: 'decode', labels });

function pair(router: Router, request = {}): string {
  const legs = router.selectLegs({ model: 'm', ...request });
  return legs.ok ? `${legs.prefill.worker.id}+${legs.decode.worker.id}` : `${legs.leg}:${legs.reason}`;
}

describe('pairs', () => {
  it('LM-1, LM-30, WK-32: both legs are selected from their own kind and counted each on its own worker', async () => {
    const router = await pd({}, prefill('p1'), prefill('p2'), decode('d1'), decode('d2'), { id: 'r' });
    expect([pair(router), pair(router), pair(router)]).toEqual(['p1+d1', 'p2+d2', 'p1+d1']);
    const legs = router.selectLegs({ model: 'm' });
    if (!legs.ok) throw new Error('no legs');
    const leases = [legs.prefill.begin(), legs.decode.begin()];
    expect(router.workers().map((worker) => worker.inFlight)).toEqual([0, 1, 0, 1, 0]);
    for (const lease of leases) lease.end({ status: 200 });
    expect(router.workers().map((worker) => worker.inFlight)).toEqual([0, 0, 0, 0, 0]);
    expect(legs.decode.record).toMatchObject({ leg: 'decode', model: 'm', policy: 'round_robin' });
  });

  it('LM-3: each leg runs its own policy instance, also when it inherits', async () => {
    const router = await pd({}, prefill('p1'), decode('d1'), decode('d2'));
    router.selectWorker({ model: 'm', leg: 'decode' });
    expect(pair(router)).toBe('p1+d2');
    expect(router.pools().map(({ model, leg, policy }) => `${model}/${leg}/${policy}`)).toEqual([
      'unknown/prefill/round_robin',
      'm/prefill/round_robin',
      'unknown/decode/round_robin',
      'm/decode/round_robin',
    ]);
  });

  it('LM-5: labels of workers decide nothing where legs exist', async () => {
    const router = await pd({}, prefill('p1', { policy: 'random' }), decode('d1', { policy: 'random' }));
    expect(new Set(router.pools().map((pool) => pool.policy))).toEqual(new Set(['round_robin']));
    expect(router.warnings).toEqual([]);
  });

  it('LM-30, LM-31: only prefill workers with an available compatible partner are candidates', async () => {
    const [x, y] = [{ kv_transport: 'nixl' }, { kv_transport: 'mooncake' }];
    const router = await pd({}, prefill('p1', x), prefill('p2', y), decode('d1', x), decode('d2', y));
    expect([pair(router), pair(router), pair(router), pair(router)]).toEqual(['p1+d1', 'p2+d2', 'p1+d1', 'p2+d2']);
    router.setStatus('d1', 'not_ready');
    expect([pair(router), pair(router)]).toEqual(['p2+d2', 'p2+d2']);
    router.setStatus('d1', 'ready');
    router.removeWorker('d2');
    expect([pair(router), pair(router)]).toEqual(['p1+d1', 'p1+d1']);
    router.addWorker({ ...decode('d3', y), models: ['m'] });
    expect(new Set([pair(router), pair(router), pair(router)])).toEqual(new Set(['p1+d1', 'p2+d3']));
    router.replaceWorker({ ...decode('d3', x), models: ['m'] });
    expect(new Set([pair(router), pair(router)])).toEqual(new Set(['p1+d1', 'p1+d3']));
  });

  it('B70: one decode policy serves several partner sets evenly', async () => {
    const [x, y] = [{ kv_transport: 'nixl' }, { kv_transport: 'mooncake' }];
    const router = await pd(
      {},
      ...['p1', 'p2'].map((id, i) => prefill(id, i === 0 ? x : y)),
      ...['a1', 'a2', 'a3', 'a4'].map((id) => decode(id, x)),
      ...['b1', 'b2', 'b3', 'b4'].map((id) => decode(id, y)),
    );
    const counts = new Map<string, number>();
    for (let i = 0; i < 80; i++) {
      const chosen = pair(router).split('+')[1] as string;
      counts.set(chosen, (counts.get(chosen) ?? 0) + 1);
    }
    expect([...counts.values()]).toEqual(new Array(8).fill(10));
  });

  it('LM-31: strict refuses unknown facts, off pairs everything', async () => {
    const workers = [prefill('p', { kv_transport: 'nixl' }), decode('d')];
    expect(pair(await pd({ pdPairingMode: 'lenient' }, ...workers))).toBe('p+d');
    expect(pair(await pd({ pdPairingMode: 'strict' }, ...workers))).toBe('prefill:no_compatible_pair');
    const different = [prefill('p', { page_size: '16' }), decode('d', { page_size: '64' })];
    expect(pair(await pd({ pdPairingMode: 'off' }, ...different))).toBe('p+d');
    expect(pair(await pd({}, ...different))).toBe('prefill:no_compatible_pair');
  });
});

describe('what is missing', () => {
  it('LM-32, LM-32a: which leg, and why', async () => {
    expect(pair(await pd())).toBe('prefill:no_workers');
    expect(pair(await pd({}, prefill('p')))).toBe('decode:no_workers');
    expect(pair(await pd({}, decode('d')))).toBe('prefill:no_workers');
    const router = await pd({ workerOverloadProtection: true }, prefill('p'), decode('d'));
    router.setStatus('p', 'not_ready');
    expect(pair(router)).toBe('prefill:no_available_workers');
    router.setStatus('p', 'ready');
    router.setStatus('d', 'not_ready');
    expect(pair(router)).toBe('decode:no_available_workers');
    router.setStatus('d', 'ready');
    router.reportLoad('d', { kvCacheUsage: 0.95 });
    expect(router.selectLegs({ model: 'm' })).toMatchObject({
      ok: false,
      leg: 'decode',
      reason: 'overloaded',
      stage: 'selection',
    });
    router.reportLoads([
      ['p', { kvCacheUsage: 0.95 }],
      ['d', { kvCacheUsage: 0.1 }],
    ]);
    expect(router.selectLegs({ model: 'm' })).toMatchObject({ ok: false, leg: 'prefill', reason: 'overloaded' });
  });

  it('LM-32a: a compatible partner that is only unavailable is no_available_workers of its leg, not no_compatible_pair', async () => {
    const router = await pd(
      {},
      prefill('p', { runtime: 'vllm' }),
      decode('d1', { runtime: 'vllm' }),
      decode('d2', { runtime: 'sglang' }),
    );
    router.setStatus('d1', 'failed');
    expect(pair(router)).toBe('decode:no_available_workers');
    router.removeWorker('d1');
    expect(router.selectLegs({ model: 'm' })).toMatchObject({
      reason: 'no_compatible_pair',
      code: 'no_compatible_pd_pair',
      retryable: true,
    });
  });

  it('LB-12: nothing is recorded for a leg when the other one is missing', async () => {
    const router = await pd({}, prefill('p1'), prefill('p2'), decode('d1'));
    router.setStatus('d1', 'not_ready');
    const told: string[] = [];
    router.on('notSelected', ({ leg }) => told.push(leg));
    router.on('selected', ({ worker }) => told.push(worker.id));
    for (let i = 0; i < 3; i++) pair(router);
    router.setStatus('d1', 'ready');
    expect(pair(router)).toBe('p1+d1');
    expect(told).toEqual(['decode', 'decode', 'decode', 'p1', 'd1']);
    expect(router.worker('p2')?.creditRequests).toBe(0);
  });

  it('LB-14: exclusions concern both legs', async () => {
    const router = await pd({}, prefill('p1'), prefill('p2'), decode('d1'), decode('d2'));
    expect(pair(router, { exclude: ['p1', 'd1'] })).toBe('p2+d2');
    expect(router.selectLegs({ model: 'm', exclude: ['d1', 'd2'] })).toMatchObject({
      leg: 'decode',
      reason: 'no_available_workers',
      excluded: 2,
    });
  });

  it('LB-14, LM-30, LM-35: a retry finds another pair when every partner of a prefill worker is excluded', async () => {
    const [x, y] = [{ pairing_protocol: 'x' }, { pairing_protocol: 'y' }];
    const fleet = [prefill('p1', x), prefill('p2', y), decode('d1', x), decode('d2', y), decode('d3', y)];
    const router = await pd({ policy: 'cache_aware' }, ...fleet);
    const text = 'a prompt that p1 has had before';
    expect(pair(router, { text, exclude: ['p2'] })).toBe('p1+d1');
    expect(pair(router, { text, exclude: ['d1', 'd2'] })).toBe('p2+d3');
    router.setStatus('d2', 'not_ready');
    expect(router.selectLegs({ model: 'm', text, exclude: ['d1', 'd3'] })).toMatchObject({
      leg: 'decode',
      reason: 'no_available_workers',
      excluded: 2,
    });
    expect(pair(router, { text })).toBe('p1+d1');
  });

  it('LM-1, LB-42: a regular router has no legs, a router with legs wants one named', async () => {
    const regular = await createRouter();
    expect(() => regular.selectLegs({})).toThrow(TypeError);
    expect(() => regular.selectWorker({ leg: 'decode' })).toThrow(/^leg: expected one of single/);
    const router = await pd();
    expect(() => router.selectWorker({})).toThrow(/^leg: expected one of prefill, decode/);
    expect(() => router.selectLegs({}, { media: ['x'] })).toThrow(/^media: /);
  });
});

describe('models', () => {
  it('LB-31, LM-24: a model that no leg serves any more is forgotten: names that come and go take no memory', async () => {
    const forgotten = vi.spyOn(KvEventFeed.prototype, 'forgetModel');
    try {
      const router = await pd({ policy: 'cache_aware' }, prefill('p1'), decode('d1'), { id: 'r' });
      router.addWorker({ id: 'd0', kind: 'decode' });
      router.removeWorker('d1');
      router.removeWorker('d0');
      expect(forgotten.mock.calls).toEqual([]);
      router.replaceWorker({ id: 'p1', kind: 'prefill', models: ['n'] });
      expect(forgotten.mock.calls).toEqual([['m']]);
      router.reconcile([]);
      expect(forgotten.mock.calls).toEqual([['m'], ['n']]);
    } finally {
      forgotten.mockRestore();
    }
  });

  it('WK-13: without a model, all workers answer only when none was registered without one', async () => {
    const router = await pd({}, prefill('p1'), decode('d1'));
    expect(pair(router, { model: undefined })).toBe('p1+d1');
    router.addWorker({ id: 'p0', kind: 'prefill' });
    router.addWorker({ id: 'd0', kind: 'decode' });
    expect([pair(router, { model: undefined }), pair(router, { model: undefined })]).toEqual(['p0+d0', 'p0+d0']);
  });

  it('WK-42: a dispatch chosen elsewhere counts under the leg of its worker', async () => {
    const router = await pd({ routingKeyOverride: true }, prefill('p1'), decode('d1'), decode('d2'));
    expect(pair(router, { routingKey: 'k' })).toBe('p1+d1');
    for (let i = 0; i < 2; i++) router.begin('d1', { routingKey: 'k' });
    expect(router.explain({ model: 'm', leg: 'decode', routingKey: 'k' }).selection.record.branch).toBe('cap_respill');
    expect(router.explain({ model: 'm', leg: 'prefill', routingKey: 'k' }).selection.record.branch).toBe(
      'occupied_hit',
    );
  });

  it('ST-61, ST-63: both legs are pinned, each by itself, under the same key', async () => {
    const router = await pd({ routingKeyOverride: true }, prefill('p1'), prefill('p2'), decode('d1'), decode('d2'));
    expect([pair(router, { rid: 'k_t1' }), pair(router, { rid: 'other' }), pair(router, { rid: 'k_t2' })]).toEqual([
      'p1+d1',
      'p2+d2',
      'p1+d1',
    ]);
    expect(router.pinCount).toBe(4);
    router.setStatus('d1', 'not_ready');
    expect(pair(router, { rid: 'k_t3' })).toBe('p1+d2');
  });
});

describe('encode', () => {
  const encode = (id: string, labels?: Record<string, string>): WorkerSpec => ({ id, kind: 'encode', labels });

  it('LM-2, LM-34: each media item gets its own encode worker by consistent hashing; text-only requests none', async () => {
    const router = await pd({ mode: 'epd' }, prefill('p'), decode('d'), encode('e1'), encode('e2'), encode('e3'));
    const encoders = (media: string[]): string[] => {
      const legs = router.selectLegs({ model: 'm' }, { media });
      return legs.ok ? legs.encode.map((selected) => selected.worker.id) : [legs.reason];
    };
    expect(encoders([])).toEqual([]);
    const items = Array.from({ length: 40 }, (_, i) => `sha256:${i}`);
    const first = encoders(items);
    expect(encoders(items)).toEqual(first);
    expect(new Set(first)).toEqual(new Set(['e1', 'e2', 'e3']));
    expect(encoders([items[7] as string, items[7] as string])).toEqual([first[7], first[7]]);
    for (const id of ['e1', 'e2', 'e3']) router.removeWorker(id);
    expect(router.selectLegs({ model: 'm' }, { media: ['x'] })).toMatchObject({ leg: 'encode', reason: 'no_workers' });
  });

  it('LM-34: the pairing mode does not apply, one runtime serves all legs', async () => {
    const [v, s] = [{ runtime: 'vllm', page_size: '16' }, { runtime: 'sglang' }];
    const router = await pd(
      { mode: 'epd', pdPairingMode: 'strict' },
      prefill('p', v),
      decode('ds', s),
      decode('dv', { runtime: 'vllm', page_size: '64' }),
      encode('es', s),
      encode('ev', v),
    );
    for (let i = 0; i < 10; i++) {
      const legs = router.selectLegs({ model: 'm' }, { media: [`item ${i}`] });
      if (!legs.ok) throw new Error(legs.reason);
      expect([legs.decode.worker.id, legs.encode[0]?.worker.id]).toEqual(['dv', 'ev']);
    }
  });
});
