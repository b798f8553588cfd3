/** LB-35, LB-40: a policy of the host's own that cannot be made leaves the router exactly as it was. */
import { createRouter, Decision, type Policy, type Router, type RouterOptions, RoutingConfigError } from 'kvroute';
import { describe, expect, it } from 'vitest';

const lastOne: Policy = {
  name: 'last',
  needs: {},
  decide: (_request, { workers }) => new Decision(workers.at(-1)),
};

/** Makes `good` policies, then fails once. */
function failing(good: number, failure: () => Policy = () => expect.unreachable() as never) {
  let made = 0;
  return (): Policy => {
    made += 1;
    return made === good + 1 ? failure() : { ...lastOne };
  };
}

const throws = (): never => {
  throw new Error('no policy today');
};

/** What a host can see of a router. */
function picture(router: Router, requests: readonly object[]): unknown {
  return structuredClone({
    workers: router.workers().map(({ id, models, kind, revision, report, available, inFlight }) => {
      return { id, models, kind, revision, report, available, inFlight };
    }),
    pools: router.pools(),
    warnings: router.warnings,
    explained: requests.map((request) => router.explain(request)),
    leases: router.leases(),
    poll: router.pollGroups(),
  });
}

async function routerOf(options: RouterOptions): Promise<{ router: Router; told: string[] }> {
  const router = await createRouter({ seed: 1, clock: () => 0, ...options });
  const told: string[] = [];
  for (const event of ['workerAdded', 'workerRemoved', 'workerReplaced', 'reportLost', 'warning'] as const) {
    router.on(event, () => told.push(event));
  }
  return { router, told };
}

describe('a factory that throws', () => {
  it('LB-35: in reconfigure, for the last of four pools', async () => {
    const { router, told } = await routerOf({ policy: { name: 'cache_aware', blockSize: 32 }, maxPins: 7 });
    for (const id of ['a', 'b']) router.addWorker({ id, models: [id, 'both'] });
    router.reportLoad('a', { waitingRequests: 3 });
    const requests = [{ model: 'both', text: 'once upon a time' }, { model: 'a' }, {}];
    for (const request of requests) router.selectWorker(request);
    told.length = 0;
    const before = picture(router, requests);
    const policy = failing(3, throws);
    const changed: RouterOptions = { policy, maxPins: 9, workerOverloadWaitingRequests: 1, loadReportMaxAgeMs: 1 };
    expect(() => router.reconfigure(changed)).toThrow('no policy today');
    expect(picture(router, requests)).toEqual(before);
    expect(told).toEqual([]);
    router.reconfigure(changed);
    expect(router.pools().map((pool) => pool.policy)).toEqual(['last', 'last', 'last', 'last']);
    expect(router.worker('a')?.available).toBe(false);
  });

  it('LB-35: in reconfigure, for the second leg', async () => {
    const { router } = await routerOf({ mode: 'pd', policy: 'round_robin' });
    router.addWorker({ id: 'p', kind: 'prefill' });
    router.addWorker({ id: 'd', kind: 'decode' });
    const requests = [{ leg: 'prefill' }, { leg: 'decode' }];
    const before = picture(router, requests);
    expect(() =>
      router.reconfigure({ mode: 'pd', prefillPolicy: failing(9), decodePolicy: failing(0, throws) }),
    ).toThrow('no policy today');
    expect(picture(router, requests)).toEqual(before);
  });

  it('LB-40: what is no policy is refused in the same way, by addWorker as by reconfigure', async () => {
    const { router, told } = await routerOf({ policy: failing(1, () => ({ name: 'half' }) as never) });
    const before = picture(router, [{}]);
    expect(() => router.addWorker({ id: 'a', models: ['m'] })).toThrow(RoutingConfigError);
    expect(picture(router, [{}])).toEqual(before);
    expect(() => router.reconfigure({ policy: () => ({}) as never })).toThrow(/^policy: must be a policy/);
    expect(picture(router, [{}])).toEqual(before);
    expect(told).toEqual([]);
    router.addWorker({ id: 'a', models: ['m'] });
    expect(router.selectWorker({ model: 'm' })).toMatchObject({ ok: true, worker: { id: 'a' } });
  });

  it('WK-65: in addWorker, for the second of its models; a label that was ignored is not told either', async () => {
    const { router, told } = await routerOf({ policy: failing(2, throws) });
    const before = picture(router, [{}, { model: 'm' }]);
    const spec = { id: 'a', models: ['m', 'n'], labels: { policy: 'fastest' } };
    expect(() => router.addWorker(spec)).toThrow('no policy today');
    expect(picture(router, [{}, { model: 'm' }])).toEqual(before);
    expect(router.worker('a')).toBeUndefined();
    expect(told).toEqual([]);
    router.addWorker(spec);
    expect(router.pools().map(({ model, workers }) => [model, workers])).toEqual([
      ['unknown', ['a']],
      ['m', ['a']],
      ['n', ['a']],
    ]);
  });

  it('WK-3: in replaceWorker, for a new model: report, models and revision stay', async () => {
    const { router, told } = await routerOf({ policy: failing(2, throws) });
    router.addWorker({ id: 'a', models: ['m'] });
    router.reportLoad('a', { waitingRequests: 3, kvCacheUsage: 0.1 });
    told.length = 0;
    const before = picture(router, [{ model: 'm' }]);
    expect(() => router.replaceWorker({ id: 'a', models: ['n'] })).toThrow('no policy today');
    expect(picture(router, [{ model: 'm' }])).toEqual(before);
    expect(told).toEqual([]);
    router.replaceWorker({ id: 'a', models: ['n'] });
    expect(router.worker('a')).toMatchObject({ models: ['n'], revision: 1 });
  });

  it('LM-25, LB-30: not in removeWorker, which nothing refuses: the policy of the label goes on until a worker decides', async () => {
    const { router, told } = await routerOf({ policy: failing(1, throws) });
    router.addWorker({ id: 'a', labels: { policy: 'round_robin' } });
    told.length = 0;
    expect(router.removeWorker('a')).toBe(true);
    expect(told).toEqual(['warning', 'workerRemoved']);
    expect(router.warnings).toMatchObject([{ code: 'policyFailed', model: 'unknown' }]);
    expect(router.pools().map(({ policy, workers }) => [policy, workers])).toEqual([['round_robin', []]]);
    router.addWorker({ id: 'b' });
    expect(router.pools().map(({ policy, workers }) => [policy, workers])).toEqual([['last', ['b']]]);
  });
});

describe('custom policies through reconfigure', () => {
  it('LB-35: each pool has its policy made once; while the function is the same it stays, untouched', async () => {
    let made = 0;
    let configured = 0;
    const policy = (): Policy => {
      made += 1;
      return { ...lastOne, configure: () => (configured += 1) };
    };
    const { router } = await routerOf({ policy: 'random' });
    router.addWorker({ id: 'a', models: ['m'] });
    router.reconfigure({ policy });
    expect(made).toBe(2);
    router.reconfigure({ policy, maxPins: 3 });
    expect([made, configured]).toEqual([2, 0]);
  });
});

describe('options that only a label would use', () => {
  it('LB-40, CF-30: are refused by createRouter, not when the worker comes', async () => {
    const policyOptions = { cache_aware: { cacheIndex: 'hash' } } as const;
    await expect(createRouter({ policy: 'random', policyOptions })).rejects.toMatchObject({
      field: 'policyOptions.cache_aware.cacheBoundaries',
    });
  });
});
