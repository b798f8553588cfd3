/** Options and workers that are probably not meant (LB-41). */
import { createRouter } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';
import { fleet, pick } from './cached-fleet.js';

describe('warnings', () => {
  it('LB-41: options without effect, by name, in warnings and as events', async () => {
    const codes = async (options: object, ids = ['a', 'b']): Promise<string[]> => {
      const router = await fleet(ids, options);
      pick(router);
      pick(router);
      return router.warnings.map(({ code, fields }) => `${code} ${fields.join()}`);
    };
    expect(await codes({})).toEqual([]);
    expect(await codes({ policy: { name: 'cache_aware', cacheThreshold: 1 } })).toEqual([
      'optionWithoutEffect cacheThreshold',
    ]);
    expect(await codes({ policy: { name: 'cache_aware', cacheBoundaries: [16] } })).toEqual([
      'optionWithoutEffect cacheBoundaries,cacheIndex',
    ]);
    expect(await codes({ loadReportMaxAgeMs: 5000 })).toEqual([
      'reportMaxAgeBelowInterval loadReportMaxAgeMs,loadMonitorIntervalMs',
    ]);
    expect(await codes({ policyOptions: { least_load: {} } })).toEqual([
      'unusedPolicyOptions policyOptions.least_load',
    ]);
    expect(await codes({ policy: 'least_load', policyOptions: { least_load: {} } })).toEqual([]);
    expect(await codes({ policy: { name: 'cache_aware', cacheIndex: 'hash', cacheBoundaries: [16] } })).toEqual([
      'boundariesWithoutTokens cacheBoundaries',
    ]);
    expect(await codes({ policy: 'power_of_two' }, ['a'])).toEqual(['tooFewWorkers policy']);
    expect(await codes({ policy: { name: 'cache_aware', balanceAbsThreshold: 8 } }, ['a'])).toEqual([
      'balanceThresholdUnreachable balanceAbsThreshold',
    ]);
  });

  it('LB-41: reconfiguring tells as an event', async () => {
    const router = await fleet(['a', 'b']);
    const heard: string[] = [];
    router.on('warning', ({ code }) => heard.push(code));
    router.reconfigure({ loadReportMaxAgeMs: 1 });
    expect(heard).toEqual(['reportMaxAgeBelowInterval']);
  });

  it('ST-60a, LB-41: all pins are in one map: manual sets its limits, and what says otherwise elsewhere is told', async () => {
    const time = manualTime();
    const policy = { name: 'manual', maxIdleMs: 1000, evictionIntervalMs: 100 } as const;
    const router = await fleet(['a', 'b'], { policy, clock: time.clock });
    pick(router, { routingKey: 'k' });
    time.advance(1000);
    while (router.maintain());
    expect([router.pinCount, router.warnings]).toEqual([0, []]);
    router.reconfigure({ policy: 'cache_aware', maxPins: 5, policyOptions: { manual: { maxPins: 9, maxIdleMs: 7 } } });
    expect(router.warnings.map(({ code, fields }) => `${code} ${fields.join()}`)).toEqual([
      'optionWithoutEffect maxPins',
      'optionWithoutEffect maxIdleMs',
    ]);
  });

  it('LB-41: a worker of a kind that the mode never serves, when it is registered or becomes one', async () => {
    const router = await createRouter({ policy: 'random' });
    const told: unknown[] = [];
    router.on('warning', ({ code, fields, worker }) => told.push([code, fields, worker]));
    router.addWorker({ id: 'a' });
    router.addWorker({ id: 'p', kind: 'prefill' });
    const warning = (worker: string): unknown[] => ['kindWithoutLeg', ['kind', 'mode'], worker];
    expect(told).toEqual([warning('p')]);
    router.replaceWorker({ id: 'p', kind: 'prefill', models: ['m'] });
    expect(told).toHaveLength(1);
    router.replaceWorker({ id: 'a', kind: 'encode' });
    expect(told).toEqual([warning('p'), warning('a')]);
    expect(router.selectWorker({})).toMatchObject({ ok: false, reason: 'no_workers' });
    router.removeWorker('p');
    expect(router.warnings.map(({ message }) => message)).toEqual([
      'worker a is of kind encode, which mode regular never selects',
    ]);
    const legs = await createRouter({ mode: 'pd', policy: 'random' });
    for (const kind of ['prefill', 'decode', 'regular', 'encode'] as const) legs.addWorker({ id: kind, kind });
    expect(legs.warnings.map(({ worker }) => worker)).toEqual(['regular', 'encode']);
  });

  it('LB-30: a warning about a worker goes with it', async () => {
    const router = await fleet(['a', 'b']);
    for (const id of ['a', 'b']) router.reportLoad(id, {});
    router.removeWorker('a');
    expect(router.warnings.map(({ worker }) => worker)).toEqual(['b']);
  });
});
