/** Options replaced at run time: what changes and what stays (LB-35). */
import { createRouter, RoutingConfigError } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';
import { fleet, pick } from './cached-fleet.js';

describe('reconfigure', () => {
  it('LB-35: options change, learned state is kept', async () => {
    const router = await fleet(['a', 'b', 'c']);
    const holder = pick(router, { text: 'abcdefghij' });
    expect(pick(router, { text: 'abcdexxxxx' })).toBe(holder);
    router.reconfigure({ policy: { name: 'cache_aware', cacheThreshold: 0.9 } });
    expect(router.pools()[1]?.options).toMatchObject({ cacheThreshold: 0.9 });
    const { selection, policy } = router.explain({ model: 'm', text: 'abcdefghij' });
    expect(selection.record).toMatchObject({ branch: 'tree_match', matchedRatio: 1 });
    expect(policy.match?.holders).toContain(holder);
    expect(router.explain({ model: 'm', text: 'abcdeyyyyy' }).selection.record.branch).toBe('expected_wait_fallback');
  });

  it('LB-35: an invalid set changes nothing', async () => {
    const router = await fleet(['a', 'b'], { policy: { name: 'cache_aware', cacheThreshold: 0.4 } });
    const before = JSON.stringify(router.pools());
    const wrong: [object, string][] = [
      [{ policy: { name: 'cache_aware', cacheThreshold: 2 } }, 'policy.cacheThreshold'],
      [{ policy: 'fastest' }, 'policy'],
      [{ maxIdleMs: -1 }, 'maxIdleMs'],
      [{ mode: 'pd' }, 'mode'],
      [{ seed: 2 }, 'seed'],
      [{ clock: () => 0 }, 'clock'],
    ];
    for (const [options, field] of wrong) {
      try {
        router.reconfigure(options);
        expect.unreachable(field);
      } catch (error) {
        expect(error).toBeInstanceOf(RoutingConfigError);
        expect((error as RoutingConfigError).field).toBe(field);
      }
    }
    expect(JSON.stringify(router.pools())).toBe(before);
  });

  it('LB-35: another policy takes over, stickiness goes on and off and keeps its pins', async () => {
    const router = await fleet(['a', 'b', 'c'], { policy: 'round_robin' });
    expect([pick(router, { rid: 'k' }), pick(router, { rid: 'k' })]).toEqual(['a', 'b']);
    router.reconfigure({ policy: 'round_robin', routingKeyOverride: true });
    expect([pick(router, { rid: 'k' }), pick(router, { rid: 'k' }), pick(router)]).toEqual(['c', 'c', 'a']);
    router.reconfigure({ policy: 'round_robin' });
    expect(pick(router, { rid: 'k' })).toBe('b');
    router.reconfigure({ policy: 'passthrough', routingKeyOverride: true });
    expect([pick(router, { rid: 'k' }), pick(router)]).toEqual(['c', 'a']);
  });

  it('LB-35: thresholds of breakers and overload apply to registered workers, their state stays', async () => {
    const router = await fleet(['a', 'b'], { policy: 'random', circuitBreaker: { failureThreshold: 5 } });
    for (let i = 0; i < 2; i++) router.recordOutcome('a', { status: 500 });
    router.reconfigure({ policy: 'random', circuitBreaker: { failureThreshold: 3 }, workerOverloadProtection: true });
    expect(router.worker('a')?.consecutiveFailures).toBe(2);
    router.recordOutcome('a', { status: 500 });
    expect(router.worker('a')?.breakerState).toBe('open');
    router.reportLoad('b', { kvCacheUsage: 0.95 });
    expect(router.worker('b')?.available).toBe(false);
  });

  it('LR-30, OV-7, LB-35: reports that are kept are judged by the options as they are now', async () => {
    const time = manualTime();
    const router = await fleet(['a', 'b'], {
      clock: time.clock,
      loadReportMaxAgeMs: Infinity,
      workerOverloadProtection: true,
    });
    router.reportLoad('a', { kvCacheUsage: 0.95 });
    expect(router.worker('a')?.available).toBe(false);
    const changes: unknown[] = [];
    router.on('overloadChanged', ({ overload }) => changes.push(overload?.signal));
    router.reconfigure({ loadReportMaxAgeMs: Infinity });
    expect(router.worker('a')?.available).toBe(true);
    router.reconfigure({ workerOverloadTokenUsage: 0.5 });
    expect(router.worker('a')?.available).toBe(false);
    expect(changes).toEqual([undefined, 'kv_cache_usage']);
    time.advance(30_000);
    expect(router.worker('a')).toMatchObject({ available: true, report: undefined });
  });

  it('LM-24: a policy that a label decided stays through a reconfiguration', async () => {
    const router = await createRouter({ policy: 'random' });
    router.addWorker({ id: 'a', models: ['m'], labels: { policy: 'least_load' } });
    router.addWorker({ id: 'b', models: ['m'] });
    router.removeWorker('a');
    router.reconfigure({ policy: 'round_robin', policyOptions: { least_load: { maxWaitingRequests: 4 } } });
    expect(router.pools().map(({ policy, options }) => [policy, options.maxWaitingRequests])).toEqual([
      ['round_robin', undefined],
      ['least_load', 4],
    ]);
  });
});
