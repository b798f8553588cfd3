/** Edges of the router that ordinary requests do not reach: bounds, empty fleets, workers and data out of place. */
import { createRouter, RoutingConfigError } from 'kvroute';
import { describe, expect, it } from 'vitest';

describe('bounds', () => {
  it('LB-31, LB-41: the last 256 warnings are kept', async () => {
    const router = await createRouter({ policy: 'random', seed: 1 });
    for (let i = 0; i < 300; i++) router.addWorker({ id: `w${i}`, models: [`m${i}`], labels: { policy: 'nonsense' } });
    const named = router.warnings.map(({ worker }) => worker);
    expect(named).toHaveLength(256);
    expect(named[0]).toBe('w44');
    expect(named[255]).toBe('w299');
  });
});

describe('nobody to select', () => {
  it('LB-20: acquire returns the same outcome as selectWorker and holds nothing', async () => {
    const router = await createRouter({ policy: 'random', seed: 1 });
    const acquired = router.acquire({});
    expect(acquired).toEqual(router.selectWorker({}));
    expect(acquired).toMatchObject({ ok: false, reason: 'no_workers', code: 'no_available_workers' });
    expect(router.leases()).toEqual({ open: 0, oldestAgeMs: 0, byWorker: new Map() });
  });

  it('LM-1, LM-5: a worker of a leg the router does not have is registered and never selected', async () => {
    const router = await createRouter({ policy: 'random', seed: 1 });
    router.addWorker({ id: 'p', kind: 'prefill', models: ['m'] });
    expect(router.selectWorker({ model: 'm' })).toMatchObject({ ok: false, reason: 'no_workers' });
    expect(router.pools().map(({ model, workers }) => [model, workers])).toEqual([['unknown', []]]);
    expect(router.worker('p')?.kind).toBe('prefill');
    expect(router.removeWorker('p')).toBe(true);
    expect(router.workers()).toEqual([]);
  });

  it('OV-22, LB-50: a shed at dispatch is told as an event', async () => {
    const router = await createRouter({ policy: 'random', seed: 1, workerOverloadWaitingRequests: 5 });
    router.addWorker({ id: 'a' });
    const told: unknown[] = [];
    router.on('notSelected', ({ reason, stage, record }) => told.push([reason, stage, record.policy]));
    const selection = router.selectWorker({});
    router.reportLoad('a', { waitingRequests: 5 });
    expect(selection.ok && selection.begin({ ifOverloaded: 'refuse' }).ok).toBe(false);
    expect(told).toEqual([['overloaded', 'dispatch', 'random']]);
  });
});

describe('data of the wrong kind', () => {
  const refused: readonly (readonly [string, unknown])[] = [
    ['options', 5],
    ['policy', { policy: 5 }],
    ['policy', { policy: 'bukket' }],
    ['policy.name', { policy: {} }],
    ['policyOptions', { policyOptions: [] }],
    ['modelAliases', { modelAliases: 'a=b' }],
    ['modelAliases', { modelAliases: new Map([[5, 'm']]) }],
    ['circuitBreaker', { circuitBreaker: 3 }],
  ];
  it.each(refused)('LB-40: the error names %s', async (field, options) => {
    const failure = await createRouter(options as never).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RoutingConfigError);
    expect((failure as RoutingConfigError).field).toMatch(new RegExp(`^${field.replace('.', '\\.')}\\b`));
  });

  it('LB-40: a near miss of a policy name is answered with the name', async () => {
    await expect(createRouter({ policy: 'bukket' as never })).rejects.toThrow('(probably bucket)');
  });

  it('WK-7: labels that are no strings by name are refused, and nothing is registered', async () => {
    const router = await createRouter({ seed: 1 });
    for (const labels of ['a', ['a'], { a: 5 }]) {
      expect(() => router.addWorker({ id: 'a', labels: labels as never })).toThrow(RoutingConfigError);
    }
    expect(router.workers()).toEqual([]);
  });

  it('LR-11a, LR-31: a report stamped with no number is no report', async () => {
    const router = await createRouter({ policy: 'least_load', seed: 1 });
    router.addWorker({ id: 'a' });
    for (const observedAt of [Number.NaN, Infinity, '5']) {
      router.reportLoad('a', { waitingRequests: 1 });
      expect(router.reportLoad('a', { waitingRequests: 2, observedAt: observedAt as never })).toMatchObject({
        applied: 0,
        invalid: 1,
      });
      expect(router.worker('a')?.report).toBeUndefined();
    }
  });

  it('LM-34, LB-42: media that are no list of names are refused before anything is selected', async () => {
    const router = await createRouter({ mode: 'epd', policy: 'round_robin', seed: 1 });
    for (const kind of ['encode', 'prefill', 'decode'] as const) {
      router.addWorker({ id: kind, kind, runtime: 'sglang', models: ['m'] });
    }
    for (const media of ['image', [5], ['']]) {
      expect(() => router.selectLegs({ model: 'm' }, { media: media as never })).toThrow(/^media: /);
    }
    expect(router.workers().map(({ selections }) => selections)).toEqual([0, 0, 0]);
  });

  it('LB-34, LB-42: a placement whose units do not fit its kind is refused', async () => {
    const router = await createRouter({ policy: 'cache_aware', seed: 1 });
    router.addWorker({ id: 'a', models: ['m'] });
    const placement = { model: 'm', leg: 'single', namespace: undefined, worker: 'a', use: 1 } as const;
    for (const wrong of [
      { ...placement, kind: 'tokens', units: 'text' },
      { ...placement, kind: 'text', units: [1] },
    ]) {
      expect(() => router.applyPlacement(wrong as never)).toThrow(/^units: /);
    }
    expect(router.applyPlacement({ ...placement, kind: 'text', units: 'some text' })).toBe(true);
  });
});
