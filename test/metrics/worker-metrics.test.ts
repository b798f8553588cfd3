import { createRouter, type Router } from 'kvroute';
import { bindMetrics } from 'kvroute/metrics';
import { describe, expect, it } from 'vitest';
import { boundRouter, RecordingAdapter } from './recording-adapter.js';

describe('counts', () => {
  it('OB-11, OB-12: in-flight requests and distinct routing keys follow the leases', async () => {
    const { router, metrics } = await boundRouter({ policy: 'random', routingKeyOverride: true });
    router.addWorker({ id: 'a' });
    expect(metrics.of('smg_worker_requests_active')).toEqual({ 'worker=a': 0 });
    const begin = (routingKey: string) => router.begin('a', { routingKey });
    const leases = [begin('k'), begin('k'), begin('l')];
    expect(metrics.of('smg_worker_requests_active')).toEqual({ 'worker=a': 3 });
    expect(metrics.of('smg_worker_routing_keys_active')).toEqual({ 'worker=a': 2 });
    leases[2]?.end({ status: 200 });
    leases[0]?.end({ status: 200 });
    expect(metrics.of('smg_worker_requests_active')).toEqual({ 'worker=a': 1 });
    expect(metrics.of('smg_worker_routing_keys_active')).toEqual({ 'worker=a': 1 });
    leases[1]?.end({ aborted: true });
    expect(metrics.of('smg_worker_requests_active')).toEqual({ 'worker=a': 0 });
    expect(metrics.of('smg_worker_routing_keys_active')).toEqual({ 'worker=a': 0 });
  });

  it('OB-13: health is 1 when ready, 0 in any other state, -1 when removed', async () => {
    const { router, metrics } = await boundRouter({});
    router.addWorker({ id: 'a' });
    router.addWorker({ id: 'b', status: 'pending' });
    const health = () => metrics.of('smg_worker_health');
    expect(health()).toEqual({ 'worker=a': 1, 'worker=b': 0 });
    router.setStatus('b', 'ready');
    expect(health()).toEqual({ 'worker=a': 1, 'worker=b': 1 });
    for (const status of ['not_ready', 'failed', 'draining'] as const) {
      router.setStatus('a', 'ready');
      expect(health()).toMatchObject({ 'worker=a': 1 });
      router.setStatus('a', status);
      expect(health()).toMatchObject({ 'worker=a': 0 });
    }
    router.removeWorker('a');
    expect(health()).toEqual({ 'worker=a': -1, 'worker=b': 1 });
  });

  it('OB-14, OV-24: the pool size counts registered workers, once for each model they serve', async () => {
    const { router, metrics } = await boundRouter({});
    router.addWorker({ id: 'a', models: ['m', 'n'] });
    router.addWorker({ id: 'b', models: ['m'], status: 'failed' });
    router.addWorker({ id: 'c' });
    router.addWorker({ url: 'grpc://d:1', models: ['m'] });
    const size = () => metrics.of('smg_worker_pool_size');
    expect(size()).toEqual({
      'worker_type=regular,connection_mode=http,model=m': 2,
      'worker_type=regular,connection_mode=http,model=n': 1,
      'worker_type=regular,connection_mode=http,model=unknown': 1,
      'worker_type=regular,connection_mode=grpc,model=m': 1,
    });
    router.replaceWorker({ id: 'a', models: ['n'] });
    router.removeWorker('c');
    expect(size()).toEqual({
      'worker_type=regular,connection_mode=http,model=m': 1,
      'worker_type=regular,connection_mode=http,model=n': 1,
      'worker_type=regular,connection_mode=http,model=unknown': 0,
      'worker_type=regular,connection_mode=grpc,model=m': 1,
    });
  });

  it('OB-40, OV-24: vetoed workers by model, changed by transitions only', async () => {
    let now = 0;
    const { router, metrics } = await boundRouter({ clock: () => now, workerOverloadTokenUsage: 0.8 });
    router.addWorker({ id: 'a', models: ['m', 'n'] });
    router.addWorker({ id: 'b', models: ['m'] });
    const vetoed = () => metrics.of('smg_workers_overloaded');
    expect(vetoed()).toEqual({});
    router.reportLoads([
      ['a', { kvCacheUsage: 0.9 }],
      ['b', { kvCacheUsage: 0.8 }],
    ]);
    expect(vetoed()).toEqual({ 'model=m': 2, 'model=n': 1 });
    router.reportLoad('b', { kvCacheUsage: 0.79 });
    expect(vetoed()).toEqual({ 'model=m': 1, 'model=n': 1 });
    metrics.clear();
    router.reportLoad('a', { kvCacheUsage: 0.95 });
    expect(vetoed()).toEqual({});
    // The report ages out, and with it the veto (OV-9).
    now = 30_000;
    router.maintain();
    expect(vetoed()).toEqual({ 'model=m': 0, 'model=n': 0 });
    router.reportLoad('a', { kvCacheUsage: 0.9 });
    router.removeWorker('a');
    expect(vetoed()).toEqual({ 'model=m': 0, 'model=n': 0 });
  });
});

describe('circuit breakers', () => {
  it('OB-50 to OB-53: state, transitions, outcomes and streaks', async () => {
    let now = 0;
    const { router, metrics } = await boundRouter({
      clock: () => now,
      circuitBreaker: { failureThreshold: 2, successThreshold: 2, timeoutDurationMs: 1000 },
    });
    router.addWorker({ id: 'a' });
    const gauges = () => [
      metrics.of('smg_worker_cb_state')['worker=a'],
      metrics.of('smg_worker_cb_consecutive_failures')['worker=a'],
      metrics.of('smg_worker_cb_consecutive_successes')['worker=a'],
    ];
    expect(gauges()).toEqual([0, 0, 0]);
    router.recordOutcome('a', { status: 200 });
    expect(gauges()).toEqual([0, 0, 1]);
    router.recordOutcome('a', { status: 500 });
    expect(gauges()).toEqual([0, 1, 0]);
    router.recordOutcome('a', { status: 429 });
    expect(gauges()).toEqual([0, 1, 0]);
    router.recordOutcome('a', { error: 'timeout' });
    expect(gauges()).toEqual([1, 2, 0]);
    now = 1000;
    router.maintain();
    expect(gauges()).toEqual([2, 0, 0]);
    router.recordOutcome('a', { status: 200 });
    expect(gauges()).toEqual([2, 0, 1]);
    router.recordOutcome('a', { status: 404 });
    expect(gauges()).toEqual([0, 0, 0]);
    expect(metrics.of('smg_worker_cb_transitions_total')).toEqual({
      'worker=a,from=closed,to=open': 1,
      'worker=a,from=open,to=half_open': 1,
      'worker=a,from=half_open,to=closed': 1,
    });
    expect(metrics.of('smg_worker_cb_outcomes_total')).toEqual({
      'worker=a,outcome=success': 3,
      'worker=a,outcome=failure': 2,
    });
  });
});

describe('removal', () => {
  it('OB-81: health and breaker -1, counts and streaks 0, engine gauges -1; late ends change nothing', async () => {
    const { router, metrics } = await boundRouter({});
    router.addWorker({ id: 'a', models: ['m'] });
    router.reportLoad('a', { runningRequests: 2, kvCacheUsage: 0.5 });
    const lease = router.begin('a', { routingKey: 'k' });
    router.recordOutcome('a', { status: 500 });
    router.removeWorker('a');
    lease.end({ status: 500 });
    const gauges = Object.fromEntries([...metrics.series].filter(([name]) => !name.includes('_total{')));
    expect(gauges).toEqual({
      'smg_worker_health{worker=a}': -1,
      'smg_worker_cb_state{worker=a}': -1,
      'smg_worker_requests_active{worker=a}': 0,
      'smg_worker_routing_keys_active{worker=a}': 0,
      'smg_worker_cb_consecutive_failures{worker=a}': 0,
      'smg_worker_cb_consecutive_successes{worker=a}': 0,
      'smg_worker_pool_size{worker_type=regular,connection_mode=http,model=m}': 0,
      'smg_engine_running_requests{worker=a,model=m,dp_rank=0}': -1,
      'smg_engine_token_usage{worker=a,model=m,dp_rank=0}': -1,
      'smg_manual_policy_cache_entries{}': 0,
    });
  });

  it('OB-81, B58: a worker that drained, one that reconciling dropped and one that came back', async () => {
    let now = 0;
    const { router, metrics } = await boundRouter({ clock: () => now, drainSettleMs: 5000 });
    router.addWorker({ id: 'a' });
    router.addWorker({ id: 'b' });
    router.setStatus('a', 'draining');
    now = 5000;
    router.maintain();
    router.reconcile([]);
    expect(metrics.of('smg_worker_health')).toEqual({ 'worker=a': -1, 'worker=b': -1 });
    router.addWorker({ id: 'a' });
    expect(metrics.of('smg_worker_health')).toEqual({ 'worker=a': 1, 'worker=b': -1 });
    expect(metrics.of('smg_worker_cb_state')).toEqual({ 'worker=a': 0, 'worker=b': -1 });
  });

  it('B92: a listener that removes the worker of an event leaves no gauge of it behind', async () => {
    const router = await createRouter({ circuitBreaker: { failureThreshold: 1 } });
    const metrics = new RecordingAdapter();
    router.on('leaseBegan', ({ worker }) => router.removeWorker(worker.id));
    router.on('breakerTransition', ({ worker }) => router.removeWorker(worker.id));
    router.on('reportApplied', ({ worker }) => router.removeWorker(worker.id));
    router.on('workerAdded', ({ worker }) => {
      if (worker.id === 'short') router.removeWorker(worker.id);
    });
    bindMetrics(router, metrics);
    router.addWorker({ id: 'a' });
    router.begin('a');
    expect(metrics.of('smg_worker_requests_active')).toEqual({ 'worker=a': 0 });
    router.addWorker({ id: 'b' });
    router.recordOutcome('b', { status: 500 });
    expect(metrics.of('smg_worker_cb_state')).toEqual({ 'worker=a': -1, 'worker=b': -1 });
    expect(metrics.of('smg_worker_cb_consecutive_failures')).toEqual({ 'worker=a': 0, 'worker=b': 0 });
    router.addWorker({ id: 'c' });
    router.reportLoad('c', { runningRequests: 7 });
    expect(metrics.of('smg_engine_running_requests')).toEqual({});
    router.addWorker({ id: 'short' });
    expect(Object.keys(metrics.of('smg_worker_health'))).toEqual(['worker=a', 'worker=b', 'worker=c']);
    expect(metrics.of('smg_worker_pool_size')).toEqual({
      'worker_type=regular,connection_mode=http,model=unknown': 0,
    });
    expect(metrics.objections).toEqual([]);
  });

  it('B92, LB-21: a worker that a listener puts in the place of a removed one keeps its own gauges', async () => {
    const router = await createRouter({});
    const metrics = new RecordingAdapter();
    router.once('workerRemoved', () => router.addWorker({ id: 'a', status: 'ready' }));
    bindMetrics(router, metrics);
    router.addWorker({ id: 'a', status: 'failed' });
    router.removeWorker('a');
    expect(metrics.of('smg_worker_health')).toEqual({ 'worker=a': 1 });
    expect(metrics.of('smg_worker_cb_state')).toEqual({ 'worker=a': 0 });
    expect(metrics.of('smg_worker_pool_size')).toEqual({
      'worker_type=regular,connection_mode=http,model=unknown': 1,
    });
  });
});

describe('a worker that an earlier listener removes', () => {
  it.each([
    ['workerStatus', (router: Router) => router.setStatus('a', 'failed')],
    ['leaseBegan', (router: Router) => router.begin('a', { routingKey: 'k' })],
    ['overloadChanged', (router: Router) => router.reportLoad('a', { waitingRequests: 9 })],
    ['breakerTransition', (router: Router) => router.recordOutcome('a', { status: 500 })],
  ] as const)('OB-81: keeps the gauges of a removed one after %s', async (event, cause) => {
    const router = await createRouter({
      policy: 'random',
      workerOverloadWaitingRequests: 5,
      circuitBreaker: { failureThreshold: 1 },
    });
    router.addWorker({ id: 'a', models: ['m'] });
    router.on(event, () => router.removeWorker('a'));
    const metrics = new RecordingAdapter();
    bindMetrics(router, metrics);
    cause(router);
    expect(metrics.of('smg_worker_health')).toEqual({ 'worker=a': -1 });
    expect(metrics.of('smg_worker_requests_active')).toEqual({ 'worker=a': 0 });
    expect(metrics.of('smg_worker_cb_state')).toEqual({ 'worker=a': -1 });
    expect(metrics.of('smg_worker_cb_transitions_total')).toEqual({});
    expect(Object.values(metrics.of('smg_worker_pool_size'))).toEqual([0]);
  });
});
