import { createRouter, type Router, type RouterEventName, type RouterOptions } from 'kvroute';
import { bindMetrics, hostMetrics, type MetricsAdapter, type MetricsSource, metricTable } from 'kvroute/metrics';
import { describe, expect, it } from 'vitest';
import { boundRouter, RecordingAdapter } from './recording-adapter.js';

const throwing: MetricsAdapter = {
  counter: () => {
    throw new Error('counter');
  },
  gauge: () => {
    throw new Error('gauge');
  },
  histogram: () => {
    throw new Error('histogram');
  },
};

/** Some of everything a router does, written down. */
async function story(router: Router): Promise<string[]> {
  const lines: string[] = [];
  router.addWorker({ id: 'a', models: ['m'] });
  router.addWorker({ id: 'b', models: ['m'] });
  for (let i = 0; i < 40; i++) {
    const result = router.acquire({ model: 'm', text: `prompt ${i % 7} and more`, rid: `c${i % 5}_t${i}` });
    lines.push(result.ok ? `${result.worker.id} ${result.record.branch} ${result.worker.inFlight}` : result.reason);
    if (result.ok && i % 3 === 0) result.lease.end({ status: i % 2 === 0 ? 200 : 500 });
    if (i % 10 === 9) router.reportLoad('a', { waitingRequests: i, kvCacheUsage: 0.95 });
  }
  router.removeWorker('b');
  lines.push(String(router.leases().open), String(router.worker('a')?.inFlight));
  return lines;
}

const options: RouterOptions = {
  clock: () => 0,
  seed: 'story',
  policy: 'cache_aware',
  routingKeyOverride: true,
  workerOverloadProtection: true,
  circuitBreaker: { failureThreshold: 2 },
};

describe('the table', () => {
  it('OB-1: lists every metric of spec 09 once, with help, labels and who sets it', () => {
    const names = metricTable.map((row) => row.name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBe(39);
    for (const { name, type, help, labels, values = {}, buckets } of metricTable) {
      expect(name).toMatch(/^smg_[a-z_]+$/);
      expect(name.endsWith('_total')).toBe(type === 'counter');
      expect(help).toMatch(/^[A-Z0-9].*\.$/);
      expect(Object.keys(values).every((label) => labels.includes(label))).toBe(true);
      expect(buckets === undefined).toBe(type !== 'histogram');
    }
    expect(metricTable.filter((row) => row.setBy === 'host').map((row) => row.id)).toEqual([
      'OB-15',
      'OB-25',
      'OB-42',
      'OB-42',
      'OB-70',
      'OB-70',
      'OB-71',
    ]);
  });

  it('OB-21: the ratio has eleven buckets from 0 to 1', () => {
    const row = metricTable.find((metric) => metric.id === 'OB-21');
    expect(row?.buckets).toEqual([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]);
  });
});

describe('binding', () => {
  it('LB-51: gauges are set at once for the workers, reports, vetoes and pins that are there', async () => {
    const router = await createRouter({
      clock: () => 0,
      policy: 'manual',
      workerOverloadProtection: true,
      circuitBreaker: { failureThreshold: 1 },
    });
    router.addWorker({ id: 'a', models: ['m'] });
    router.addWorker({ id: 'b', models: ['m'], status: 'not_ready' });
    const acquired = router.acquire({ model: 'm', routingKey: 'k' });
    expect(acquired.ok).toBe(true);
    router.reportLoad('a', { runningRequests: 1, kvCacheUsage: 0.9 });
    router.recordOutcome('b', { status: 500 });
    const metrics = new RecordingAdapter();
    bindMetrics(router, metrics);
    expect(Object.fromEntries(metrics.series)).toEqual({
      'smg_worker_health{worker=a}': 1,
      'smg_worker_health{worker=b}': 0,
      'smg_worker_requests_active{worker=a}': 1,
      'smg_worker_requests_active{worker=b}': 0,
      'smg_worker_routing_keys_active{worker=a}': 1,
      'smg_worker_routing_keys_active{worker=b}': 0,
      'smg_worker_cb_state{worker=a}': 0,
      'smg_worker_cb_state{worker=b}': 1,
      'smg_worker_cb_consecutive_failures{worker=a}': 0,
      'smg_worker_cb_consecutive_failures{worker=b}': 1,
      'smg_worker_cb_consecutive_successes{worker=a}': 0,
      'smg_worker_cb_consecutive_successes{worker=b}': 0,
      'smg_worker_pool_size{worker_type=regular,connection_mode=http,model=m}': 2,
      'smg_workers_overloaded{model=m}': 1,
      'smg_engine_running_requests{worker=a,model=m,dp_rank=0}': 1,
      'smg_engine_token_usage{worker=a,model=m,dp_rank=0}': 0.9,
      'smg_manual_policy_cache_entries{}': 1,
    });
    expect(metrics.objections).toEqual([]);
  });

  it('LB-3: a router with metrics decides exactly like one without', async () => {
    const [plain, observed, failing] = await Promise.all([
      createRouter(options),
      createRouter(options),
      createRouter(options),
    ]);
    bindMetrics(observed, new RecordingAdapter());
    bindMetrics(failing, throwing);
    const told = await story(plain);
    expect(told.length).toBe(42);
    expect(await story(observed)).toEqual(told);
    expect(await story(failing)).toEqual(told);
  });

  it('LB-15: an adapter that throws costs no other sample, and its error comes as a warning', async () => {
    const router = await createRouter({ policy: 'random', clock: () => 0 });
    router.addWorker({ id: 'a' });
    const metrics = new RecordingAdapter();
    bindMetrics(router, {
      counter: (name, labels, value) => metrics.counter(name, labels, value),
      gauge: (name, labels, value) => {
        if (name === 'smg_worker_health') throw new Error(`no gauge ${name}`);
        metrics.gauge(name, labels, value);
      },
      histogram: throwing.histogram,
    });
    const warnings: unknown[] = [];
    router.on('warning', ({ code, error }) => warnings.push([code, (error as Error).message]));
    expect(metrics.of('smg_worker_cb_state')).toEqual({ 'worker=a': 0 });
    router.addWorker({ id: 'b' });
    expect(metrics.of('smg_worker_cb_state')).toEqual({ 'worker=a': 0, 'worker=b': 0 });
    expect(router.selectWorker({}).ok).toBe(true);
    expect(warnings).toEqual([['listenerFailed', 'no gauge smg_worker_health']]);
  });

  it('LB-51: unbinding leaves no listener and ends all samples; a second call does nothing', async () => {
    const router = await createRouter({ policy: 'random', clock: () => 0 });
    const open = new Set<RouterEventName>();
    const source: MetricsSource = {
      get pinCount() {
        return router.pinCount;
      },
      workers: (filter) => router.workers(filter),
      pools: () => router.pools(),
      on: (event, listener) => {
        const off = router.on(event, listener);
        open.add(event);
        return () => {
          off();
          open.delete(event);
        };
      },
    };
    const metrics = new RecordingAdapter();
    const unbind = bindMetrics(source, metrics);
    expect([...open].sort()).toEqual([
      'breakerOutcome',
      'breakerTransition',
      'leaseBegan',
      'leaseEnded',
      'notSelected',
      'overloadChanged',
      'policyReplaced',
      'reportApplied',
      'selected',
      'treeEvicted',
      'workerAdded',
      'workerRemoved',
      'workerReplaced',
      'workerStatus',
    ]);
    router.addWorker({ id: 'a' });
    expect(metrics.samples).toBeGreaterThan(0);
    unbind();
    unbind();
    expect([...open]).toEqual([]);
    metrics.clear();
    router.addWorker({ id: 'b' });
    router.acquire({});
    router.removeWorker('a');
    expect(metrics.samples).toBe(0);
  });

  it('LB-51: two adapters on one router are independent', async () => {
    const router = await createRouter({ policy: 'random', clock: () => 0 });
    const [first, second] = [new RecordingAdapter(), new RecordingAdapter()];
    const unbind = bindMetrics(router, first);
    bindMetrics(router, second);
    router.addWorker({ id: 'a' });
    router.selectWorker({});
    unbind();
    router.selectWorker({});
    const series = 'worker_type=regular,connection_mode=http,model=unknown,policy=random';
    expect(first.of('smg_worker_selection_total')).toEqual({ [series]: 1 });
    expect(second.of('smg_worker_selection_total')).toEqual({ [series]: 2 });
  });

  it('refuses an adapter without one of its methods, before anything is bound', async () => {
    const router = await createRouter({});
    const { histogram: _, ...partial } = throwing;
    expect(() => bindMetrics(router, partial as MetricsAdapter)).toThrow('adapter.histogram: expected a function');
    expect(() => bindMetrics(router, undefined as unknown as MetricsAdapter)).toThrow(TypeError);
  });
});

describe('label bounds', () => {
  it('OB-80: the first 1 024 models keep their name, later ones are other', async () => {
    const { router, metrics } = await boundRouter({ policy: 'random' });
    for (let i = 0; i < 1100; i++) {
      router.addWorker({ id: `w${i}`, models: [`m${i}`] });
      router.selectWorker({ model: `m${i}` });
    }
    const counted = metrics.of('smg_worker_selection_total');
    const series = (model: string): string => `worker_type=regular,connection_mode=http,model=${model},policy=random`;
    expect(Object.keys(counted).length).toBe(1025);
    expect(counted[series('m1023')]).toBe(1);
    expect(counted[series('m1024')]).toBeUndefined();
    expect(counted[series('other')]).toBe(76);
    router.selectWorker({ model: 'm5' });
    expect(metrics.of('smg_worker_selection_total')[series('m5')]).toBe(2);
  });

  it('OB-80: gauges of models that share other add up', async () => {
    const { router, metrics } = await boundRouter({ policy: 'random', workerOverloadProtection: true });
    for (let i = 0; i < 1024; i++) router.addWorker({ id: `w${i}`, models: [`m${i}`] });
    router.addWorker({ id: 'x', models: ['late'] });
    router.addWorker({ id: 'y', models: ['later', 'latest'] });
    const size = () => metrics.of('smg_worker_pool_size')['worker_type=regular,connection_mode=http,model=other'];
    expect(size()).toBe(2);
    router.reportLoads([
      ['x', { kvCacheUsage: 1 }],
      ['y', { kvCacheUsage: 1 }],
    ]);
    expect(metrics.of('smg_workers_overloaded')).toEqual({ 'model=other': 2 });
    router.removeWorker('y');
    expect(size()).toBe(1);
    expect(metrics.of('smg_workers_overloaded')).toEqual({ 'model=other': 1 });
  });

  it('LB-31: a model id of a megabyte is no label', async () => {
    const { router, metrics } = await boundRouter({ policy: 'random' });
    const model = 'm'.repeat(1_000_000);
    router.addWorker({ id: 'a', models: [model] });
    router.selectWorker({ model });
    expect(metrics.of('smg_worker_selection_total')).toEqual({
      'worker_type=regular,connection_mode=http,model=other,policy=random': 1,
    });
  });

  it('LB-42: ids and models that look like object internals are ordinary labels', async () => {
    const { router, metrics } = await boundRouter({ policy: 'random' });
    router.addWorker({ id: '__proto__', models: ['constructor'] });
    router.selectWorker({ model: 'constructor' });
    expect(metrics.of('smg_worker_pool_size')).toEqual({
      'worker_type=regular,connection_mode=http,model=constructor': 1,
    });
    router.removeWorker('__proto__');
    expect([...metrics.series].filter(([name]) => name.startsWith('smg_worker_health'))).toEqual([
      ['smg_worker_health{worker=__proto__}', -1],
    ]);
  });
});

describe('the host’s own', () => {
  it('OB-15, OB-25, OB-41, OB-42, OB-70, OB-71: one method each', () => {
    const metrics = new RecordingAdapter();
    const host = hostMetrics(metrics);
    host.healthCheck('prefill', true);
    host.healthCheck('regular', false);
    host.kvSubscriptionFailed('a', 'join_error');
    host.admissionWait();
    host.admissionWait();
    host.admissionShed();
    host.retry('regular', '/v1/chat/completions');
    host.retriesExhausted('decode', '/generate');
    host.bodyPath('buffered', 'policy_needs_text');
    expect(Object.fromEntries(metrics.series)).toEqual({
      'smg_worker_health_checks_total{worker_type=prefill,result=success}': 1,
      'smg_worker_health_checks_total{worker_type=regular,result=failure}': 1,
      'smg_kv_event_subscription_failures_total{worker=a,reason=join_error}': 1,
      'smg_pd_admission_waits_total{}': 2,
      'smg_worker_overload_shed_total{stage=pd_admission}': 1,
      'smg_pd_admission_sheds_total{}': 1,
      'smg_worker_retries_total{worker_type=regular,endpoint=/v1/chat/completions}': 1,
      'smg_worker_retries_exhausted_total{worker_type=decode,endpoint=/generate}': 1,
      'smg_router_request_body_path_total{path=buffered,reason=policy_needs_text}': 1,
    });
    expect(metrics.objections).toEqual([]);
  });
});
