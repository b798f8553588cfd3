import { createRouter, type LoadReport, type Router } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { type ManualTime, manualTime } from '../support/manual-time.js';

async function fleet(options = {}): Promise<{ router: Router; time: ManualTime }> {
  const time = manualTime();
  const router = await createRouter({ policy: 'least_load', seed: 1, clock: time.clock, ...options });
  for (const id of ['a', 'b']) router.addWorker({ id, models: ['m'] });
  return { router, time };
}

const busy: LoadReport = { waitingTokens: 2000, kvCacheUsage: 0.2, tokensPerSecond: 100 };
const idle: LoadReport = { waitingTokens: 0, kvCacheUsage: 0.2, tokensPerSecond: 100 };

function pick(router: Router): string | undefined {
  const selection = router.selectWorker({ model: 'm' });
  return selection.ok ? selection.worker.id : selection.reason;
}

describe('ticks', () => {
  it('LR-27: applied, lost, invalid and ignored are counted; unknown and not-ready workers are ignored', async () => {
    const { router } = await fleet();
    router.addWorker({ id: 'c', status: 'pending' });
    expect(
      router.reportLoads([
        ['a', idle],
        ['b', null],
        ['c', idle],
        ['nobody', idle],
      ]),
    ).toEqual({ applied: 1, lost: 1, invalid: 0, ignored: 2 });
    expect(router.worker('a')?.report).toBe(idle);
    expect(router.worker('c')?.report).toBeUndefined();
  });

  it('LR-27, LB-42: a batch of the wrong shape is refused before anything is applied', async () => {
    const { router } = await fleet();
    expect(() => router.reportLoads([['a', idle], 'b'] as never)).toThrow(/^reports: /);
    expect(() => router.reportLoads(null as never)).toThrow(/^reports: /);
    expect(router.worker('a')?.report).toBeUndefined();
  });

  it('LR-5, LR-11a, B48: no ranks, or a number that is not finite, is no report; one warning a worker', async () => {
    const { router } = await fleet();
    router.reportLoad('a', idle);
    for (const report of [
      { ranks: [] },
      { kvCacheUsage: Number.NaN },
      { waitingRequests: Infinity },
      'x',
      7,
      {}.valueOf,
    ]) {
      router.reportLoad('a', idle);
      expect(router.reportLoad('a', report as never)).toEqual({ applied: 0, lost: 1, invalid: 1, ignored: 0 });
      expect(router.worker('a')?.report).toBeUndefined();
    }
    expect(router.warnings.filter(({ code }) => code === 'invalidReport')).toHaveLength(1);
  });

  it('EW-14, LR-22: a report and the reset of credit are one step; a failed poll resets nothing (EW-15)', async () => {
    const { router } = await fleet();
    router.reportLoads([
      ['a', idle],
      ['b', busy],
    ]);
    expect([pick(router), pick(router), pick(router)]).toEqual(['a', 'a', 'b']);
    expect(router.worker('a')?.creditRequests).toBe(2);
    router.on('reportApplied', ({ worker }) => expect(worker.creditTokens).toBe(0));
    router.reportLoads([
      ['a', idle],
      ['b', null],
    ]);
    expect(router.worker('a')).toMatchObject({ creditTokens: 0, creditRequests: 0 });
    expect(router.worker('b')).toMatchObject({ creditTokens: 1024, creditRequests: 1, report: undefined });
  });

  it('EW-8a: missing KV usage is a warning once a worker', async () => {
    const { router } = await fleet();
    for (let i = 0; i < 3; i++) router.reportLoad('a', { waitingRequests: 1 });
    expect(router.warnings.map(({ code, worker }) => [code, worker])).toEqual([['kvUsageMissing', 'a']]);
  });

  it('LB-41: a waiting cap at or above the reported running window is a warning', async () => {
    const { router } = await fleet({ policy: { name: 'least_load', maxWaitingRequests: 64 } });
    router.reportLoad('a', { ...idle, maxRunningRequests: 65 });
    expect(router.warnings).toEqual([]);
    router.reportLoad('a', { ...idle, maxRunningRequests: 64 });
    expect(router.warnings[0]).toMatchObject({
      code: 'waitingCapAboveWindow',
      fields: ['maxWaitingRequests'],
      worker: 'a',
    });
  });
});

describe('poll groups', () => {
  it('LR-20, LR-21: by model, kind and connection mode, with the shortest interval, ready workers only', async () => {
    const router = await createRouter({ policy: 'least_load', loadMonitorIntervalMs: 4000 });
    router.addWorker({ url: 'http://a', models: ['m', 'n'], loadMonitorIntervalMs: 10 });
    router.addWorker({ url: 'http://b', models: ['m'], loadMonitorIntervalMs: 6000 });
    router.addWorker({ url: 'grpc://c', models: ['m'] });
    router.setStatus('http://b', 'not_ready');
    const common = { kind: 'regular', connectionMode: 'http' };
    expect(router.pollGroups()).toEqual([
      { ...common, model: 'm', intervalMs: 1000, workers: ['http://a'] },
      { ...common, model: 'n', intervalMs: 1000, workers: ['http://a'] },
      { ...common, connectionMode: 'grpc', model: 'm', intervalMs: 4000, workers: ['grpc://c'] },
    ]);
  });

  it('LR-25, LR-26: with monitoring disabled only where somebody needs the reports', async () => {
    const polled = async (policy: 'random' | 'power_of_two', options = {}): Promise<string[]> => {
      const router = await createRouter({ policy });
      router.addWorker({ id: 'a', models: ['m'] });
      router.addWorker({ id: 'b', models: ['n'], overload: { waitingRequests: 8 } });
      return router.pollGroups({ disableLoadMonitoring: true, ...options }).map(({ model }) => model);
    };
    expect(await polled('random')).toEqual(['n']);
    expect(await polled('random', { engineMetrics: true })).toEqual(['m', 'n']);
    expect(await polled('random', { disableLoadMonitoring: false })).toEqual(['m', 'n']);
    expect(await polled('power_of_two')).toEqual(['m', 'n']);
  });
});

describe('freshness', () => {
  it('LR-30: a report ages out after three poll intervals unless told otherwise', async () => {
    for (const [options, age] of [
      [{}, 30_000],
      [{ loadMonitorIntervalMs: 500 }, 1500],
      [{ loadReportMaxAgeMs: 7000 }, 7000],
    ] as const) {
      const { router, time } = await fleet(options);
      router.reportLoads([
        ['a', busy],
        ['b', idle],
      ]);
      time.advance(age - 1);
      expect(router.worker('a')?.report).toBe(busy);
      time.advance(1);
      expect(router.worker('a')?.report).toBeUndefined();
    }
    const { router, time } = await fleet({ loadReportMaxAgeMs: Infinity });
    router.reportLoad('a', busy);
    time.advance(1e12);
    expect(router.worker('a')?.report).toBe(busy);
  });

  it('B36: a worker whose polls fail is unreported, whatever its last good numbers were', async () => {
    const { router } = await fleet();
    router.reportLoads([
      ['a', idle],
      ['b', { ...busy, waitingTokens: 10_000 }],
    ]);
    expect(pick(router)).toBe('a');
    for (let i = 0; i < 5; i++) router.reportLoad('a', null);
    for (let i = 0; i < 3; i++) router.begin('a');
    // Its old score was 0 s; unreported it scores the reporter's 100 s and its own 3 requests on top (EW-23).
    expect([pick(router), pick(router)]).toEqual(['b', 'b']);
  });

  it('LR-31, B55: the age counts from observedAt; one in the future, or a clock stepping back, is age 0', async () => {
    const { router, time } = await fleet();
    router.reportLoad('a', { ...idle, observedAt: time.now - 29_999 });
    router.reportLoad('b', { ...idle, observedAt: time.now + 1e9 });
    time.advance(1);
    expect(router.worker('a')?.report).toBeUndefined();
    time.now -= 1e6;
    router.workers();
    time.advance(29_998);
    expect(router.worker('b')?.report).toBeDefined();
    time.advance(1);
    expect(router.worker('b')?.report).toBeUndefined();
  });

  it('LR-24, LR-30: leaving ready, removal and replacement lose the report; events tell why; credit stays', async () => {
    const { router, time } = await fleet();
    const lost: string[] = [];
    router.on('reportLost', ({ worker, reason }) => lost.push(`${worker.id}:${reason}`));
    const report = (): unknown => router.reportLoad('a', idle);
    report();
    pick(router);
    pick(router);
    const credit = router.worker('a')?.creditTokens;
    router.setStatus('a', 'not_ready');
    expect(router.worker('a')?.creditTokens).toBe(credit);
    router.setStatus('a', 'ready');
    report();
    router.reportLoad('a', null);
    report();
    router.replaceWorker({ id: 'a', models: ['m'] });
    report();
    time.advance(30_000);
    while (router.maintain());
    report();
    router.removeWorker('a');
    expect(lost).toEqual(['a:not_ready', 'a:failed_poll', 'a:replaced', 'a:aged_out', 'a:removed']);
  });
});

describe('overload protection', () => {
  const full: LoadReport = { kvCacheUsage: 0.95, waitingRequests: 0 };

  it('OV-1 to OV-9: a report at the threshold vetoes, the first under it clears; failing polls fail open', async () => {
    const { router, time } = await fleet({ workerOverloadTokenUsage: 0.8 });
    const changes: unknown[] = [];
    router.on('overloadChanged', ({ worker, overload }) => changes.push([worker.id, overload?.signal]));
    router.reportLoad('a', { kvCacheUsage: 0.8 });
    expect(router.worker('a')?.overload).toEqual({ signal: 'kv_cache_usage', value: 0.8, threshold: 0.8 });
    expect([pick(router), pick(router)]).toEqual(['b', 'b']);
    router.reportLoad('a', { kvCacheUsage: 0.79 });
    expect(router.worker('a')?.available).toBe(true);
    router.reportLoad('a', full);
    router.reportLoad('a', null);
    expect(router.worker('a')?.available).toBe(true);
    router.reportLoad('a', full);
    time.advance(30_000);
    expect(router.worker('a')?.available).toBe(true);
    expect([pick(router), pick(router)].sort()).toEqual(['a', 'b']);
    while (router.maintain());
    expect(changes).toEqual([
      ['a', 'kv_cache_usage'],
      ['a', undefined],
      ['a', 'kv_cache_usage'],
      ['a', undefined],
      ['a', 'kv_cache_usage'],
      ['a', undefined],
    ]);
  });

  it('OV-3, OV-4: protection alone means 0.9 KV usage; a block of the worker wins; external workers get none', async () => {
    const { router } = await fleet({ workerOverloadProtection: true });
    router.addWorker({ id: 'own', overload: { tokenUsage: 0.99, waitingRequests: 3 } });
    router.addWorker({ id: 'external', runtime: 'external' });
    const vetoed = (id: string, report: LoadReport): string | undefined => {
      router.reportLoad(id, report);
      return router.worker(id)?.overload?.signal;
    };
    expect(vetoed('a', { kvCacheUsage: 0.9, waitingRequests: 1e6 })).toBe('kv_cache_usage');
    expect(vetoed('own', { kvCacheUsage: 0.98, waitingRequests: 2 })).toBeUndefined();
    expect(vetoed('own', { kvCacheUsage: 0.5, waitingRequests: 3 })).toBe('waiting_requests');
    expect(vetoed('external', { kvCacheUsage: 1 })).toBeUndefined();
  });

  it('OV-20, OV-21, B57: all vetoed is a shed with retry-after, anything else is no_available_workers', async () => {
    const { router } = await fleet({ workerOverloadProtection: true, loadMonitorIntervalMs: 4000 });
    router.addWorker({ id: 'c', models: ['m'], loadMonitorIntervalMs: 2500 });
    for (const id of ['a', 'b', 'c']) router.reportLoad(id, full);
    const shed = {
      ok: false,
      reason: 'overloaded',
      code: 'worker_overload_protection_shed',
      retryable: false,
      retryAfterMs: 2500,
      stage: 'selection',
    };
    expect(router.selectWorker({ model: 'm' })).toMatchObject(shed);
    // The pool is looked at before any exclusion by the caller.
    expect(router.selectWorker({ model: 'm', exclude: ['a', 'b', 'c'] })).toMatchObject(shed);
    expect(router.selectWorker({ model: 'm' }, ['c'])).toMatchObject(shed);
    router.setStatus('b', 'not_ready');
    const ordinary = { ok: false, reason: 'no_available_workers', code: 'no_available_workers', retryable: true };
    expect(router.selectWorker({ model: 'm' })).toMatchObject(ordinary);
    expect(router.selectWorker({ model: 'other' })).toMatchObject({
      reason: 'no_workers',
      code: 'no_available_workers',
    });
  });

  it('OV-22: a veto between selection and dispatch refuses when asked to, naming the stage', async () => {
    const { router } = await fleet({ workerOverloadProtection: true });
    const told: unknown[] = [];
    router.on('notSelected', ({ reason, stage }) => told.push([reason, stage]));
    const selection = router.selectWorker({ model: 'm' });
    if (!selection.ok) throw new Error('nothing selected');
    router.reportLoad(selection.worker.id, full);
    expect(selection.begin({ ifOverloaded: 'refuse' })).toMatchObject({
      ok: false,
      reason: 'overloaded',
      stage: 'dispatch',
    });
    expect(selection.worker.inFlight).toBe(0);
    expect(told).toEqual([['overloaded', 'dispatch']]);
    const served = selection.begin();
    expect(selection.worker.inFlight).toBe(1);
    served.end();
  });

  it('B49: one worker without a report never closes the pool', async () => {
    const { router } = await fleet({ workerOverloadProtection: true });
    router.reportLoad('a', full);
    expect([pick(router), pick(router)]).toEqual(['b', 'b']);
    router.reportLoad('a', null);
    expect(router.workers().every((worker) => worker.available)).toBe(true);
  });
});

describe('whom a report concerns', () => {
  it('WK-17, LR-3: one worker may stand for all ranks: its report is summed and averaged over them', async () => {
    const { router } = await fleet({ policy: { name: 'least_load', kvPressureWeight: 0 } });
    const rank = { waitingTokens: 600, tokensPerSecond: 100, kvCacheUsage: 0.2 };
    router.reportLoads([
      ['a', { ranks: [rank, { ...rank, waitingTokens: 1000 }] }],
      ['b', { ...rank, waitingTokens: 900 }],
    ]);
    // 1600 tokens at 200 per second, and 900 at 100 per second.
    const { policy } = router.explain({ model: 'm', tokens: [] });
    expect(policy.scores?.map(({ worker, score }) => [worker, score])).toEqual([
      ['a', 8],
      ['b', 9],
    ]);
    expect(pick(router)).toBe('a');
  });

  it('LR-13: gRPC and ZMQ workers report in the same shape; a failed call and an empty list are no report', async () => {
    const { router } = await fleet();
    router.addWorker({ id: 'g', url: 'grpc://g:1', models: ['m'] });
    router.addWorker({ id: 'z', url: 'ipc:///tmp/z', models: ['m'] });
    expect(router.pollGroups().map(({ connectionMode, workers }) => [connectionMode, workers])).toEqual([
      ['http', ['a', 'b']],
      ['grpc', ['g']],
      ['zmq', ['z']],
    ]);
    const ranked: LoadReport = { ranks: [{ ...idle, dpRank: 0 }] };
    router.reportLoads([
      ['g', ranked],
      ['z', ranked],
    ]);
    expect(['g', 'z'].map((id) => router.worker(id)?.report)).toEqual([ranked, ranked]);
    router.reportLoads([
      ['g', null],
      ['z', { ranks: [] }],
    ]);
    expect(['g', 'z'].map((id) => router.worker(id)?.report)).toEqual([undefined, undefined]);
  });

  it('LR-23: a partial failure concerns only the workers that failed', async () => {
    const { router } = await fleet();
    router.reportLoads([
      ['a', busy],
      ['b', busy],
    ]);
    const tick = router.reportLoads([
      ['a', null],
      ['b', idle],
    ]);
    expect(tick).toEqual({ applied: 1, lost: 1, invalid: 0, ignored: 0 });
    expect(['a', 'b'].map((id) => router.worker(id)?.report)).toEqual([undefined, idle]);
  });
});

describe('what overload protection reads', () => {
  it('OV-10: workers without a threshold are never vetoed, whatever they report', async () => {
    const { router } = await fleet();
    router.addWorker({ id: 'c', models: ['m'], overload: { waitingRequests: 5 } });
    const changed: string[] = [];
    router.on('overloadChanged', ({ worker }) => changed.push(worker.id));
    const full = { waitingRequests: 1000, kvCacheUsage: 1 };
    router.reportLoads([
      ['a', full],
      ['b', full],
      ['c', full],
    ]);
    expect(['a', 'b', 'c'].map((id) => router.worker(id)?.overload?.signal)).toEqual([
      undefined,
      undefined,
      'waiting_requests',
    ]);
    expect(changed).toEqual(['c']);
  });

  it('OV-11: requests in flight do not enter the verdict', async () => {
    const { router } = await fleet({ workerOverloadWaitingRequests: 5 });
    for (let i = 0; i < 50; i++) router.begin('a');
    router.reportLoad('a', { waitingRequests: 4 });
    expect(router.worker('a')).toMatchObject({ inFlight: 50, available: true, overload: undefined });
    router.reportLoad('a', { waitingRequests: 5 });
    expect(router.worker('a')).toMatchObject({ available: false, overload: { value: 5, threshold: 5 } });
  });

  it('OV-27, LB-11: a shed says overloaded, its stage, and when to come back', async () => {
    const { router } = await fleet({ workerOverloadWaitingRequests: 5, loadMonitorIntervalMs: 7000 });
    router.reportLoads([
      ['a', { waitingRequests: 5 }],
      ['b', { waitingRequests: 9 }],
    ]);
    expect(router.selectWorker({ model: 'm' })).toMatchObject({
      ok: false,
      reason: 'overloaded',
      code: 'worker_overload_protection_shed',
      retryable: false,
      stage: 'selection',
      retryAfterMs: 7000,
    });
  });
});
