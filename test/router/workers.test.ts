import { createRouter, type Router, RoutingConfigError, type WorkerSpec } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';

async function routerWith(...workers: WorkerSpec[]): Promise<Router> {
  const router = await createRouter({ policy: 'round_robin', seed: 1 });
  for (const worker of workers) router.addWorker(worker);
  return router;
}

function fieldOf(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(RoutingConfigError);
    return (error as RoutingConfigError).field;
  }
  return undefined;
}

function picks(router: Router, model: string | undefined, n: number): (string | undefined)[] {
  return Array.from({ length: n }, () => {
    const selection = router.selectWorker({ model });
    return selection.ok ? selection.worker.id : undefined;
  });
}

describe('identity', () => {
  it('WK-1: the id is the url unless one is given; without both the worker is refused', async () => {
    const router = await routerWith({ url: 'http://a:1' }, { id: 'b', url: 'http://b:1' }, { id: 'anything at all' });
    expect(router.workers().map((worker) => worker.id)).toEqual(['http://a:1', 'b', 'anything at all']);
    expect(router.worker('anything at all')?.connectionMode).toBe('http');
    expect(fieldOf(() => router.addWorker({}))).toBe('worker.id');
    expect(fieldOf(() => router.addWorker({ id: '' }))).toBe('worker.id');
  });

  it('WK-2: only the five lower-case schemes with a host, or a path for ipc', async () => {
    const router = await routerWith();
    for (const url of [
      'http://h',
      'https://h:1/x',
      'grpc://h:1',
      'grpcs://h',
      'ipc:///tmp/s',
      'http://[::1]:80',
      'http://h:1@0',
    ]) {
      expect(fieldOf(() => router.addWorker({ url }))).toBeUndefined();
    }
    for (const url of ['HTTP://h', 'ftp://h', 'http://', 'http://:80', 'ipc://', 'h:80', 'http:/h', '']) {
      expect(fieldOf(() => router.addWorker({ url, id: `x${url}` }))).toBe('worker.url');
    }
  });

  it('WK-3: a taken id is refused; replacing keeps counts, credit and status, and bumps the revision', async () => {
    const router = await routerWith({ id: 'a', models: ['m'] });
    expect(fieldOf(() => router.addWorker({ id: 'a' }))).toBe('worker.id');
    const selection = router.selectWorker({ model: 'm' });
    if (!selection.ok) throw new Error('nothing selected');
    const lease = selection.begin();
    router.reportLoad('a', { waitingRequests: 1, kvCacheUsage: 0.5 });
    router.selectWorker({ model: 'm' });
    const worker = router.replaceWorker({ id: 'a', models: ['m'], labels: { zone: 'x' } });
    expect(worker).toBe(selection.worker);
    expect(worker).toMatchObject({ inFlight: 1, creditRequests: 1, revision: 1, status: 'ready', report: undefined });
    lease.end({ status: 200 });
    expect(worker.inFlight).toBe(0);
    expect(router.replaceWorker({ id: 'new' }).revision).toBe(0);
  });

  it('WK-4, WK-5: kind and connection mode have defaults, the mode follows the scheme', async () => {
    const router = await routerWith({ url: 'http://a' }, { url: 'grpcs://a' }, { url: 'ipc:///s' });
    expect(router.workers().map((worker) => [worker.kind, worker.connectionMode])).toEqual([
      ['regular', 'http'],
      ['regular', 'grpc'],
      ['regular', 'zmq'],
    ]);
    expect(fieldOf(() => router.addWorker({ id: 'x', kind: 'main' as never }))).toBe('worker.kind');
  });

  it('LM-15, OV-4, CB-40, LB-40: a wrong field refuses that worker only and names itself', async () => {
    const router = await routerWith({ id: 'a' });
    const wrong: [WorkerSpec, string][] = [
      [{ id: 'b', bootstrapPort: 0 }, 'worker.bootstrapPort'],
      [{ id: 'b', overload: { tokenUsage: 1.5 } }, 'worker.overload.tokenUsage'],
      [{ id: 'b', overload: { waitingRequests: 0 } }, 'worker.overload.waitingRequests'],
      [{ id: 'b', resilience: { cbFailureThreshold: 0 } }, 'worker.resilience.cbFailureThreshold'],
      [{ id: 'b', labels: { a: 1 as never } }, 'worker.labels.a'],
      [{ id: 'b', models: 'm' as never }, 'worker.models'],
      [{ id: 'b', kvBlockSize: -1 }, 'worker.kvBlockSize'],
      [{ id: 'b', loadMonitorIntervalMs: 0 }, 'worker.loadMonitorIntervalMs'],
      [{ id: 'b', modles: ['m'] } as never, 'worker.modles'],
    ];
    for (const [spec, field] of wrong) expect(fieldOf(() => router.addWorker(spec))).toBe(field);
    expect(router.workers()).toHaveLength(1);
  });

  it('LM-15: the bootstrap port can be read, as whoever dispatches a pair must write it into both bodies', async () => {
    const router = await routerWith({ id: 'a', bootstrapPort: 8998 }, { id: 'b' });
    expect(router.workers().map(({ bootstrapPort }) => bootstrapPort)).toEqual([8998, undefined]);
  });
});

describe('models', () => {
  it('WK-10, WK-11, WK-12: primary model, else the label, else unknown; one index entry a distinct model', async () => {
    const router = await routerWith(
      { id: 'a', models: ['m1', 'm2', 'm1'] },
      { id: 'b', labels: { model_id: 'm3' } },
      { id: 'c' },
      { id: 'd', models: [''] },
    );
    expect(router.workers().map((worker) => worker.models)).toEqual([['m1', 'm2'], ['m3'], ['unknown'], ['unknown']]);
    expect(router.workers({ model: 'm2' }).map((worker) => worker.id)).toEqual(['a']);
    expect(router.workers({ model: 'nobody' })).toEqual([]);
  });

  it('WK-13: a request without a model draws from all workers', async () => {
    const router = await routerWith({ id: 'a', models: ['m1'] }, { id: 'b', models: ['m2'] }, { id: 'c' });
    expect(new Set(picks(router, undefined, 6))).toEqual(new Set(['a', 'b', 'c']));
    expect(new Set(picks(router, '', 6))).toEqual(new Set(['a', 'b', 'c']));
  });

  it('WK-13a: an unregistered model goes to the workers without one, else no_workers; no pool is created', async () => {
    const router = await routerWith({ id: 'a', models: ['m1'] }, { id: 'c' });
    expect(new Set(picks(router, 'never-heard-of', 4))).toEqual(new Set(['c']));
    router.removeWorker('c');
    expect(router.selectWorker({ model: 'never-heard-of' })).toMatchObject({ ok: false, reason: 'no_workers' });
    expect(router.pools().map((pool) => pool.model)).toEqual(['unknown', 'm1']);
  });

  it('WK-14: an alias leads to its model and never shadows a registered one', async () => {
    const router = await createRouter({ policy: 'random', modelAliases: { short: 'm1', m2: 'm1' } });
    router.addWorker({ id: 'a', models: ['m1'] });
    router.addWorker({ id: 'b', models: ['m2'] });
    expect(picks(router, 'short', 3)).toEqual(['a', 'a', 'a']);
    expect(picks(router, 'm2', 3)).toEqual(['b', 'b', 'b']);
  });
});

describe('status and availability', () => {
  it('WK-18, WK-20, WK-21: only ready workers are candidates', async () => {
    const router = await routerWith({ id: 'a' }, { id: 'b' });
    for (const status of ['pending', 'not_ready', 'failed'] as const) {
      expect(router.setStatus('a', status)).toBe(true);
      expect(new Set(picks(router, undefined, 3))).toEqual(new Set(['b']));
    }
    router.setStatus('b', 'failed');
    expect(router.selectWorker({})).toMatchObject({ ok: false, reason: 'no_available_workers', retryable: true });
    router.setStatus('a', 'ready');
    expect(picks(router, undefined, 1)).toEqual(['a']);
    expect(router.setStatus('nobody', 'ready')).toBe(false);
    expect(() => router.setStatus('a', 'up' as never)).toThrow(/^status: /);
  });

  it('WK-19, WK-19a: probes move the status by the table, events tell', async () => {
    const router = await routerWith({ id: 'a' }, { id: 'p', status: 'pending' });
    const moves: string[] = [];
    router.on('workerStatus', ({ worker, from, to }) => moves.push(`${worker.id}:${from}>${to}`));
    for (let i = 0; i < 3; i++) router.recordProbe('a', false);
    for (let i = 0; i < 2; i++) router.recordProbe('p', true);
    for (let i = 0; i < 2; i++) router.recordProbe('a', true);
    expect(moves).toEqual(['a:ready>not_ready', 'p:pending>ready', 'a:not_ready>ready']);
  });

  it('WK-19: a draining worker gets nothing new, finishes what runs, and leaves after drainSettleMs', async () => {
    const time = manualTime();
    const router = await createRouter({ policy: 'random', clock: time.clock, drainSettleMs: 5000 });
    router.addWorker({ id: 'a' });
    router.addWorker({ id: 'b' });
    const lease = router.begin('a');
    router.setStatus('a', 'draining');
    expect(new Set(picks(router, undefined, 20))).toEqual(new Set(['b']));
    time.advance(4999);
    expect(router.worker('a')?.inFlight).toBe(1);
    time.advance(1);
    expect(router.worker('a')).toBeUndefined();
    lease.end({ status: 200 });
    const settleAtOnce = await createRouter({ drainSettleMs: 0 });
    settleAtOnce.addWorker({ id: 'a' });
    settleAtOnce.setStatus('a', 'draining');
    expect(settleAtOnce.workers()).toEqual([]);
  });

  it('WK-22, WK-23: being busy changes nothing; the order is that of registration, replacements keep their place', async () => {
    const router = await createRouter({ policy: 'passthrough' });
    for (const id of ['c', 'a', 'b']) router.addWorker({ id });
    for (let i = 0; i < 50; i++) router.begin('c');
    expect(picks(router, undefined, 2)).toEqual(['c', 'c']);
    router.replaceWorker({ id: 'c', labels: { x: 'y' } });
    expect(picks(router, undefined, 1)).toEqual(['c']);
    router.removeWorker('c');
    router.addWorker({ id: 'c' });
    expect(picks(router, undefined, 1)).toEqual(['a']);
  });
});

describe('reconcile', () => {
  it('WK-66: additions, removals and replacements by id; unchanged specs are left alone', async () => {
    const router = await routerWith({ id: 'keep', labels: { a: '1', b: '2' } }, { id: 'change' }, { id: 'go' });
    const before = router.worker('keep');
    const result = router.reconcile([
      { id: 'keep', labels: { b: '2', a: '1' } },
      { id: 'change', models: ['m'] },
      { id: 'come' },
    ]);
    expect(result).toEqual({ added: ['come'], replaced: ['change'], removed: ['go'], unchanged: 1 });
    expect(router.worker('keep')).toBe(before);
    expect(before?.revision).toBe(0);
    expect(router.worker('change')).toMatchObject({ models: ['m'], revision: 1 });
  });

  it('CF-1: a list with one wrong spec, or an id twice, changes nothing', async () => {
    const router = await routerWith({ id: 'a' });
    expect(fieldOf(() => router.reconcile([{ id: 'b' }, { id: 'c', kind: 'x' as never }]))).toBe('worker.kind');
    expect(fieldOf(() => router.reconcile([{ id: 'b' }, { id: 'b' }]))).toBe('worker.id');
    expect(router.workers().map((worker) => worker.id)).toEqual(['a']);
  });
});

describe('pools', () => {
  it('LM-20, LM-21, LM-22, LM-24: the first worker of a model decides its policy until the last one leaves', async () => {
    const router = await createRouter({
      policy: { name: 'cache_aware', cacheThreshold: 0.9 },
      policyOptions: { least_load: { maxWaitingRequests: 7 } },
    });
    const policyOf = (model: string) => router.pools().find((pool) => pool.model === model);
    router.addWorker({ id: 'a', models: ['m'], labels: { policy: 'LeastLoad' } });
    router.addWorker({ id: 'b', models: ['m'], labels: { policy: 'random' } });
    expect(policyOf('m')).toMatchObject({ policy: 'least_load', options: { maxWaitingRequests: 7 } });
    router.removeWorker('a');
    expect(policyOf('m')?.policy).toBe('least_load');
    router.removeWorker('b');
    expect(policyOf('m')).toBeUndefined();
    router.addWorker({ id: 'b', models: ['m'], labels: { policy: 'random' } });
    expect(policyOf('m')?.policy).toBe('random');
    router.addWorker({ id: 'c', models: ['n'], labels: { policy: 'CacheAware' } });
    expect(policyOf('n')).toMatchObject({ policy: 'cache_aware', options: { cacheThreshold: 0.9 } });
    router.addWorker({ id: 'd', models: ['o'], labels: { policy: 'power_of_two' } });
    expect(policyOf('o')).toMatchObject({ policy: 'power_of_two', options: { loadMetric: 'expected_wait' } });
  });

  it('LM-22: an unknown label, or bucket where no ranges are, warns and leaves the configured policy', async () => {
    const router = await createRouter({ policy: 'random' });
    router.addWorker({ id: 'a', models: ['m'], labels: { policy: 'fastest' } });
    router.addWorker({ id: 'b', models: ['n'], labels: { policy: 'bucket' } });
    expect(router.pools().map((pool) => pool.policy)).toEqual(['random', 'random', 'random']);
    expect(router.warnings.map(({ code, worker }) => [code, worker])).toEqual([
      ['unknownPolicyLabel', 'a'],
      ['bucketWithoutRanges', 'b'],
    ]);
  });

  it('LM-25: the pool unknown follows the label of the first worker registered without a model', async () => {
    const router = await createRouter({ policy: 'random' });
    const unknown = () => router.pools().find((pool) => pool.model === 'unknown')?.policy;
    router.addWorker({ id: 'a', models: ['m'], labels: { policy: 'least_load' } });
    expect(unknown()).toBe('random');
    router.addWorker({ id: 'b', labels: { policy: 'passthrough' } });
    router.addWorker({ id: 'c', labels: { policy: 'least_load' } });
    expect(unknown()).toBe('passthrough');
    router.replaceWorker({ id: 'b', labels: { policy: 'least_load' } });
    router.removeWorker('b');
    expect(unknown()).toBe('passthrough');
    router.removeWorker('c');
    expect(unknown()).toBe('random');
  });

  it('LM-25: nor does its policy outlive the worker that decided it when that one is given a model', async () => {
    const router = await createRouter({ policy: 'random' });
    const policies = () => router.pools().map(({ model, policy }) => `${model} ${policy}`);
    router.addWorker({ id: 'a', labels: { policy: 'least_load' } });
    router.replaceWorker({ id: 'a', labels: { policy: 'round_robin' } });
    expect(policies()).toEqual(['unknown least_load']);
    router.replaceWorker({ id: 'a', models: ['m'], labels: { policy: 'round_robin' } });
    expect(policies()).toEqual(['unknown random', 'm round_robin']);
  });

  it('LM-27: a worker of several models counts for each, its credit and in-flight are one', async () => {
    const router = await createRouter({ policy: 'least_load' });
    router.addWorker({ id: 'a', models: ['m', 'n'] });
    router.addWorker({ id: 'b', models: ['n'] });
    router.selectWorker({ model: 'm' });
    router.begin('a');
    expect(router.worker('a')).toMatchObject({ creditRequests: 1, creditTokens: 1024, inFlight: 1 });
    expect(picks(router, 'n', 3)).toEqual(['b', 'b', 'b']);
  });

  it('LB-16: pools tell model, leg, policy, options and workers', async () => {
    const router = await createRouter({ policy: { name: 'power_of_two', loadMetric: 'requests' } });
    router.addWorker({ id: 'a', models: ['m'] });
    expect(router.pools()).toEqual([
      { model: 'unknown', leg: 'single', policy: 'power_of_two', options: { loadMetric: 'requests' }, workers: ['a'] },
      { model: 'm', leg: 'single', policy: 'power_of_two', options: { loadMetric: 'requests' }, workers: ['a'] },
    ]);
  });
});
