import type { LoadReport } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { boundRouter } from './recording-adapter.js';

const full = {
  runningRequests: 3,
  waitingRequests: 2,
  kvCacheUsage: 0.25,
  tokensPerSecond: 1500,
  cacheHitRate: 0.75,
};

describe('engine gauges', () => {
  it('OB-60: every report, one series a rank, under the primary model', async () => {
    const { router, metrics } = await boundRouter({});
    router.addWorker({ id: 'a', models: ['m', 'n'] });
    router.reportLoad('a', { ranks: [full, { ...full, dpRank: 1, runningRequests: 4 }] });
    expect(metrics.of('smg_engine_running_requests')).toEqual({
      'worker=a,model=m,dp_rank=0': 3,
      'worker=a,model=m,dp_rank=1': 4,
    });
    const rank0 = 'worker=a,model=m,dp_rank=0';
    expect(metrics.of('smg_engine_waiting_requests')[rank0]).toBe(2);
    expect(metrics.of('smg_engine_token_usage')[rank0]).toBe(0.25);
    expect(metrics.of('smg_engine_gen_throughput')[rank0]).toBe(1500);
    expect(metrics.of('smg_engine_cache_hit_rate')[rank0]).toBe(0.75);
    router.reportLoad('a', full);
    expect(metrics.of('smg_engine_running_requests')).toEqual({
      'worker=a,model=m,dp_rank=0': 3,
      'worker=a,model=m,dp_rank=1': -1,
    });
  });

  it('LR-32: what the engine does not say has no series, and 0 is a value', async () => {
    const { router, metrics } = await boundRouter({});
    router.addWorker({ id: 'a' });
    router.reportLoad('a', { runningRequests: 0 });
    const engine = () => Object.fromEntries([...metrics.series].filter(([name]) => name.startsWith('smg_engine')));
    expect(engine()).toEqual({ 'smg_engine_running_requests{worker=a,model=unknown,dp_rank=0}': 0 });
    router.reportLoad('a', { waitingRequests: 1 });
    expect(engine()).toEqual({
      'smg_engine_running_requests{worker=a,model=unknown,dp_rank=0}': -1,
      'smg_engine_waiting_requests{worker=a,model=unknown,dp_rank=0}': 1,
    });
  });

  it('OB-60: -1 when not ready; a failed poll and an aged report keep the last value', async () => {
    let now = 0;
    const { router, metrics } = await boundRouter({ clock: () => now });
    router.addWorker({ id: 'a' });
    router.reportLoad('a', { runningRequests: 3 });
    router.reportLoad('a', null);
    const running = () => metrics.of('smg_engine_running_requests');
    expect(running()).toEqual({ 'worker=a,model=unknown,dp_rank=0': 3 });
    router.reportLoad('a', { runningRequests: 5 });
    now = 60_000;
    router.maintain();
    expect(running()).toEqual({ 'worker=a,model=unknown,dp_rank=0': 5 });
    router.setStatus('a', 'not_ready');
    expect(running()).toEqual({ 'worker=a,model=unknown,dp_rank=0': -1 });
    router.setStatus('a', 'ready');
    router.reportLoad('a', { runningRequests: 1 });
    expect(running()).toEqual({ 'worker=a,model=unknown,dp_rank=0': 1 });
  });

  it('OB-60: after a replacement with another model the series of the old one is -1', async () => {
    const { router, metrics } = await boundRouter({});
    router.addWorker({ id: 'a', models: ['m'] });
    router.reportLoad('a', { runningRequests: 3 });
    router.replaceWorker({ id: 'a', models: ['n'] });
    router.reportLoad('a', { runningRequests: 4 });
    expect(metrics.of('smg_engine_running_requests')).toEqual({
      'worker=a,model=m,dp_rank=0': -1,
      'worker=a,model=n,dp_rank=0': 4,
    });
  });

  it('OB-61: ranks with a PD section, by role; a role the table does not name is null', async () => {
    const { router, metrics } = await boundRouter({});
    router.addWorker({ id: 'a' });
    router.reportLoad('a', {
      ranks: [
        {
          disaggregation: {
            mode: 'prefill',
            kvTransferLatencyMs: 1.5,
            kvTransferGigabytesPerSecond: 20,
            prefillQueueRequests: 4,
            decodeQueueRequests: 0,
          },
        },
        { dpRank: 1, disaggregation: { mode: 'sideways' as 'prefill', prefillQueueRequests: 1 } },
        { dpRank: 2, disaggregation: { mode: null, decodeQueueRequests: 6 } },
        { dpRank: 3 },
      ],
    } as LoadReport);
    expect(metrics.of('smg_engine_pd_kv_transfer_latency_ms')).toEqual({ 'worker=a,role=prefill,dp_rank=0': 1.5 });
    expect(metrics.of('smg_engine_pd_kv_transfer_speed_gb_s')).toEqual({ 'worker=a,role=prefill,dp_rank=0': 20 });
    expect(metrics.of('smg_engine_pd_prefill_queue_reqs')).toEqual({
      'worker=a,role=prefill,dp_rank=0': 4,
      'worker=a,role=null,dp_rank=1': 1,
    });
    expect(metrics.of('smg_engine_pd_decode_queue_reqs')).toEqual({
      'worker=a,role=prefill,dp_rank=0': 0,
      'worker=a,role=null,dp_rank=2': 6,
    });
    router.removeWorker('a');
    expect(Object.values(metrics.of('smg_engine_pd_decode_queue_reqs'))).toEqual([-1, -1]);
  });
});
