/** Reported faults of breakers, overload protection, options and the removal of workers: one test an id. */
import {
  createRouter,
  leastLoad,
  type PolicyConfig,
  type RouteRequest,
  type Router,
  type RouterOptions,
  RoutingConfigError,
} from 'kvroute';
import { bindMetrics } from 'kvroute/metrics';
import { fakeCandidate, fakeReport, manualClock } from 'kvroute/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { aliveStrings } from '../support/alive-strings.js';
import { fleet, keyed, names, pick, times } from './support.js';

afterEach(() => {
  vi.useRealTimers();
});

const breaker = { failureThreshold: 2, successThreshold: 2, timeoutDurationMs: 1000 };

/** Fails a worker often enough to open its breaker. */
function trip(router: Router, id: string, failures = breaker.failureThreshold): void {
  for (let i = 0; i < failures; i++) router.recordOutcome(id, { status: 500 });
}

describe('breakers, overload and options', () => {
  it('B51: every branch of the hashing policies asks the same question: is the worker available', async () => {
    const requests: Record<'consistent_hashing' | 'prefix_hash', (i: number) => RouteRequest> = {
      consistent_hashing: (i) => keyed(`key-${i}`),
      prefix_hash: (i) => ({ text: `prompt number ${i}` }),
    };
    for (const policy of ['consistent_hashing', 'prefix_hash'] as const) {
      const time = manualClock();
      const router = await fleet(names(4), { policy, clock: time.clock, circuitBreaker: breaker });
      const request = times(100, requests[policy]).find(
        (candidate) => pick(router, candidate) === 'w2',
      ) as RouteRequest;
      trip(router, 'w2');
      expect(router.worker('w2')?.breakerState).toBe('open');
      const next = pick(router, request);
      expect(names(4)).toContain(next);
      expect(next).not.toBe('w2');
      expect(new Set(times(20, () => pick(router, request)))).toEqual(new Set([next]));
      // The random and the least-load fallback leave it out as well.
      expect(times(200, () => pick(router))).not.toContain('w2');
      if (policy === 'consistent_hashing') {
        const target = (index: number): string => pick(router, { headers: { 'X-SMG-Target-Worker': String(index) } });
        expect([target(0), target(1), target(2), target(3)]).toEqual(['w1', 'w3', 'w4', 'target_worker_invalid']);
      }
      time.advance(breaker.timeoutDurationMs);
      for (let i = 0; i < breaker.successThreshold; i++) router.recordOutcome('w2', { status: 200 });
      expect(router.worker('w2')?.breakerState).toBe('closed');
      expect(pick(router, request)).toBe('w2');
      router.setStatus('w2', 'not_ready');
      expect(pick(router, request)).toBe(next);
    }
  });

  it('B52: half-open admits everybody, records no abort, and late results move no state', async () => {
    const time = manualClock();
    const router = await fleet(['w1'], { clock: time.clock, circuitBreaker: breaker });
    const state = () => router.worker('w1')?.breakerState;
    const early = router.begin('w1');
    trip(router, 'w1');
    expect(router.selectWorker({})).toMatchObject({ ok: false, reason: 'no_available_workers' });
    time.advance(breaker.timeoutDurationMs);
    expect(state()).toBe('half_open');
    const leases = times(10, () => {
      const acquired = router.acquire({});
      if (!acquired.ok) throw new Error(acquired.reason);
      return acquired.lease;
    });
    expect(router.worker('w1')?.inFlight).toBe(11);
    leases[0]?.end({ aborted: true });
    expect(router.worker('w1')).toMatchObject({ consecutiveSuccesses: 0, consecutiveFailures: 0 });
    // From before it opened: neither closes it nor opens it anew.
    early.end({ status: 500 });
    expect(state()).toBe('half_open');
    leases[1]?.end({ status: 503 });
    expect(state()).toBe('open');
    for (const lease of leases.slice(2)) lease.end({ status: 200 });
    expect(state()).toBe('open');
    time.advance(breaker.timeoutDurationMs - 1);
    expect(state()).toBe('open');
    time.advance(1);
    router.maintain();
    expect(state()).toBe('half_open');
  });

  it('B54: the state is settled before anybody is told of it, so a listener may call back', async () => {
    const time = manualClock();
    const router = await fleet(['w1'], { clock: time.clock, circuitBreaker: breaker });
    const told: string[] = [];
    router.on('breakerTransition', ({ worker, from, to }) => {
      told.push(`${from} ${to}, state ${worker.breakerState}, ${worker.available ? pick(router) : 'unavailable'}`);
      if (to === 'half_open') for (let i = 0; i < 2; i++) router.recordOutcome('w1', { status: 200 });
    });
    for (let round = 0; round < 2; round++) {
      trip(router, 'w1');
      time.advance(breaker.timeoutDurationMs);
      router.maintain();
      expect(router.worker('w1')).toMatchObject({ breakerState: 'closed', available: true });
      expect(told.splice(0)).toEqual([
        'closed open, state open, unavailable',
        'open half_open, state half_open, w1',
        'half_open closed, state closed, w1',
      ]);
    }
  });

  it('B55: a clock that steps back stops nothing and undoes nothing', async () => {
    const time = manualClock(10_000);
    const router = await fleet(names(2), {
      policy: { name: 'manual', maxIdleMs: 5000, evictionIntervalMs: 1000 },
      clock: time.clock,
      circuitBreaker: breaker,
    });
    trip(router, 'w1');
    time.set(4000);
    router.maintain();
    expect(router.worker('w1')?.breakerState).toBe('open');
    time.set(4000 + breaker.timeoutDurationMs);
    expect(router.worker('w1')?.breakerState).toBe('half_open');

    // A report stamped in the future is 0 old, and ages from now on.
    const policy = leastLoad({ clock: time.clock, loadReportMaxAgeMs: 1000 });
    const ahead = fakeCandidate({ report: fakeReport({ observedAt: time.now + 1_000_000 }) });
    const basis = () => policy.explain({}, [ahead]).policy.scores?.[0];
    policy.selectWorker({}, [ahead]);
    expect(basis()).toMatchObject({ basis: 'report', reportAgeMs: 0 });
    time.advance(999);
    expect(basis()).toMatchObject({ basis: 'report', reportAgeMs: 999 });
    time.advance(1);
    expect(basis()?.basis).toBe('in_flight');
    router.reportLoad('w2', fakeReport({ observedAt: time.now + 1_000_000 }));
    expect(router.worker('w2')?.report).toBeDefined();
    time.advance(30_000);
    expect(router.worker('w2')?.report).toBeUndefined();

    // The wall clock is nobody's business.
    vi.useFakeTimers({ toFake: ['Date'] });
    const pinned = times(50, (i) => pick(router, keyed(`key-${i}`)));
    vi.setSystemTime(Date.now() + 3_600_000);
    time.advance(1000);
    while (router.maintain());
    expect(router.pinCount).toBe(50);
    expect(times(50, (i) => pick(router, keyed(`key-${i}`)))).toEqual(pinned);
    time.advance(5000);
    while (router.maintain());
    expect(router.pinCount).toBe(0);
  });

  it('B56: 0 is honoured where it means something, and what cannot be is refused by its name', async () => {
    const report = fakeReport({ kvCacheUsage: 0.9, waitingTokens: 2000 });
    const terms = (options: object) =>
      leastLoad({ ...options, clock: () => 0 }).explain({}, [fakeCandidate({ report })]).policy.scores?.[0];
    expect(terms({ kvPressureWeight: 0 })).toMatchObject({ kvSeconds: 0, score: 1 });
    expect(terms({})?.kvSeconds).toBeCloseTo(0.15 * 9, 12);

    const gated = async (balanceAbsThreshold?: number) => {
      const policy: PolicyConfig = {
        name: 'cache_aware',
        ...(balanceAbsThreshold !== undefined && { balanceAbsThreshold }),
      };
      const router = await fleet(names(2), { policy });
      for (let i = 0; i < 4; i++) router.begin('w1');
      return router.explain({ text: 'x' }).policy.gate?.[0];
    };
    // 4 of 4 on one of two workers: above 1.5 times the mean of 2, but only 2 above it.
    expect(await gated(0)).toMatchObject({ relativeMargin: 1, absoluteMargin: 2, hot: true });
    expect(await gated()).toMatchObject({ relativeMargin: 1, absoluteMargin: -62, hot: false });

    const waiting = async (maxWaitingRequests: number): Promise<string> => {
      const router = await fleet(['w1'], { policy: { name: 'least_load', maxWaitingRequests } });
      router.reportLoad('w1', fakeReport({ waitingRequests: 1_000_000 }));
      return pick(router);
    };
    expect([await waiting(0), await waiting(1)]).toEqual(['w1', 'waiting_cap']);

    const refused = async (options: object): Promise<unknown> => {
      const error: unknown = await createRouter(options as RouterOptions).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RoutingConfigError);
      return (error as RoutingConfigError).field;
    };
    for (const meanPrefillTokens of [-1, 0, 1.5, Number.NaN, Infinity, '1024', null, 7n]) {
      expect(await refused({ policy: { name: 'least_load', meanPrefillTokens } })).toBe('policy.meanPrefillTokens');
    }
    for (const [field, value] of [
      ['loadMonitorIntervalMs', 0],
      ['loadMonitorIntervalMs', Number.NaN],
      ['maxPins', 0],
      ['maxIdleMs', -1],
      ['drainSettleMs', '5'],
      ['maxLeaseAgeMs', 0],
      ['workerOverloadTokenUsage', 0],
    ] as const) {
      expect(await refused({ [field]: value })).toBe(field);
    }
    expect(await refused({ circuitBreaker: { failureThreshold: 0 } })).toBe('circuitBreaker.failureThreshold');
  });

  it('B57: an empty selection says why, and a shed says when to come back', async () => {
    const router = await fleet([], { workerOverloadWaitingRequests: 8 });
    expect(router.selectWorker({})).toMatchObject({ ok: false, reason: 'no_workers', retryable: true });
    for (const id of names(2)) router.addWorker({ id });
    router.reportLoads(names(2).map((id) => [id, fakeReport({ waitingRequests: 9 })]));
    const shed = router.selectWorker({});
    expect(shed).toMatchObject({ ok: false, reason: 'overloaded', stage: 'selection', retryable: false });
    expect('worker' in shed).toBe(false);
    expect(shed.ok ? 0 : shed.retryAfterMs).toBe(10_000);
    router.reportLoads(names(2).map((id) => [id, fakeReport()]));
    for (const id of names(2)) router.setStatus(id, 'not_ready');
    const unready = router.selectWorker({});
    expect(unready).toMatchObject({ ok: false, reason: 'no_available_workers', retryable: true });
    expect(unready.ok ? 0 : unready.retryAfterMs).toBeUndefined();
  });

  it('B58: after a removal nothing reachable holds the id: no policy, metric label, event index or list', async () => {
    const policies: readonly PolicyConfig[] = [
      'random',
      'round_robin',
      'passthrough',
      'least_load',
      'power_of_two',
      'cache_aware',
      { name: 'cache_aware', cacheIndex: 'hash', cacheBoundaries: [2, 4] },
      { name: 'bucket', legs: 'any' },
      'consistent_hashing',
      'prefix_hash',
      'manual',
    ];
    // Put together at run time, so that this file's own text does not hold them.
    const idOf = (kind: string, i: number): string => ['fault', kind, String(i), 'of', 'B58'].join('/');
    const use = async (policy: PolicyConfig, i: number): Promise<Router> => {
      const router = await createRouter({
        policy,
        seed: i,
        routingKeyOverride: i % 2 === 0,
        workerOverloadTokenUsage: 0.9,
      });
      bindMetrics(router, { counter: () => {}, gauge: () => {}, histogram: () => {} });
      const ids = ['gone', 'kept'].map((kind) => idOf(kind, i));
      for (const id of ids) router.addWorker({ id, models: ['m', 'n'], labels: { id } });
      for (const [sequence, id] of ids.entries()) {
        const tokens = [1, 2, 3, 4];
        const events = [{ type: 'stored', hashes: [sequence + 1], tokens, blockSize: 4 } as const];
        router.kvEvents.applyBatch(id, { sequence: 0, events });
        router.reportLoad(id, fakeReport({ kvCacheUsage: 0.95 }));
        router.reportLoad(id, fakeReport({ waitingRequests: sequence }));
      }
      for (let round = 0; round < 30; round++) {
        for (const model of ['m', 'n', undefined]) {
          router.selectWorker({ model, text: `prompt ${round}` });
          router.selectWorker({ model, tokens: [round, 2, 3, 4, 5] });
          router.selectWorker({ model, tokens: [1, 2, 3, 4], ...keyed(`key-${round}`) });
          const acquired = router.acquire({ model, ...keyed(`key-${round}`) });
          if (acquired.ok) acquired.lease.end({ status: round % 3 === 0 ? 500 : 200 });
        }
        router.explain({ model: 'm', text: 'prompt' });
        router.rank({ text: `prompt ${round}` });
      }
      for (const id of ids) router.begin(id, { routingKey: 'k' });
      return router;
    };
    const routers = await Promise.all(policies.map(use));
    for (const [i, router] of routers.entries()) {
      expect(router.removeWorker(idOf('gone', i))).toBe(true);
      while (router.maintain());
      // Pins may name it until their key comes by again.
      for (let round = 0; round < 30; round++) {
        for (const model of ['m', 'n', undefined]) router.selectWorker({ model, ...keyed(`key-${round}`) });
      }
    }
    const alive = await aliveStrings(['fault', ''].join('/'));
    // That all others are found shows that the search would have found it.
    expect(routers.map((_, i) => alive.has(idOf('kept', i)))).toEqual(routers.map(() => true));
    expect(routers.map((_, i) => idOf('gone', i)).filter((id) => alive.has(id))).toEqual([]);
    expect(routers.map((router) => router.workers().length)).toEqual(routers.map(() => 1));
  });
});
