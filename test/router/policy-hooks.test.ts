/** A hook of the host's own policy that throws is a warning; what it was told of is done, and whole (LB-15, LB-30). */
import { createRouter, Decision, type Policy, type Router, type RouterOptions, type Warning } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';

const failure = new Error('the policy is not well');

/** Chooses the last candidate, and throws in the hooks named. */
function failingIn(...hooks: readonly ('workerAdded' | 'workerRemoved' | 'maintain')[]): () => Policy {
  const fail = (): never => {
    throw failure;
  };
  const failing = Object.fromEntries(hooks.map((hook) => [hook, fail]));
  return () => ({ name: 'last', needs: {}, decide: (_, { workers }) => new Decision(workers.at(-1)), ...failing });
}

async function routerOf(options: RouterOptions): Promise<{ router: Router; told: Warning[] }> {
  const router = await createRouter({ seed: 1, ...options });
  const told: Warning[] = [];
  router.on('warning', (warning) => told.push(warning));
  return { router, told };
}

const pooled = (router: Router): (readonly [string, readonly string[]])[] =>
  router.pools().map(({ model, workers }) => [model, workers] as const);

describe('workerAdded', () => {
  it('LB-15, WK-65: a worker joins all its pools; one warning for each', async () => {
    const { router, told } = await routerOf({ policy: failingIn('workerAdded') });
    const joined: string[] = [];
    router.on('workerAdded', ({ worker }) => joined.push(worker.id));
    expect(router.addWorker({ id: 'a', models: ['m', 'n'] }).id).toBe('a');
    expect(pooled(router)).toEqual([
      ['unknown', ['a']],
      ['m', ['a']],
      ['n', ['a']],
    ]);
    expect(joined).toEqual(['a']);
    expect(router.selectWorker({ model: 'n' })).toMatchObject({ ok: true, worker: { id: 'a' } });
    const warning = { code: 'policyFailed', message: 'policy last threw in workerAdded for a', fields: ['policy'] };
    expect(told).toEqual(['m', 'n', 'unknown'].map((model) => ({ ...warning, model, worker: 'a', error: failure })));
    expect(router.warnings).toEqual(told);
    router.removeWorker('a');
    expect(router.warnings).toEqual([]);
  });

  it('LB-15, LB-35: reconfigure puts every pool under the new policy', async () => {
    const { router, told } = await routerOf({ policy: 'random' });
    for (const id of ['a', 'b']) router.addWorker({ id, models: ['m'] });
    router.reconfigure({ policy: failingIn('workerAdded'), workerOverloadWaitingRequests: 1 });
    expect(router.pools().map(({ policy, workers }) => [policy, workers])).toEqual([
      ['last', ['a', 'b']],
      ['last', ['a', 'b']],
    ]);
    router.reportLoad('b', { waitingRequests: 1 });
    expect(router.worker('b')?.available).toBe(false);
    expect(told.map(({ code, worker }) => [code, worker])).toContainEqual(['policyFailed', 'b']);
  });
});

describe('workerRemoved', () => {
  it('LB-15, LB-30: a worker leaves all its pools with its leases, and no warning names it', async () => {
    const { router, told } = await routerOf({ policy: failingIn('workerRemoved') });
    for (const id of ['a', 'b']) router.addWorker({ id, models: ['m'] });
    router.begin('a');
    expect(router.removeWorker('a')).toBe(true);
    expect(router.leases().open).toBe(0);
    expect(pooled(router)).toEqual([
      ['unknown', ['b']],
      ['m', ['b']],
    ]);
    const warning = { code: 'policyFailed', message: 'policy last threw in workerRemoved', fields: ['policy'] };
    expect(told).toEqual(['m', 'unknown'].map((model) => expect.objectContaining({ ...warning, model })));
    expect(JSON.stringify(router.warnings)).not.toContain('"a"');
  });

  it('LB-15, WK-3: a worker whose model changes is in its new pool and out of the old one', async () => {
    const { router } = await routerOf({ policy: failingIn('workerAdded', 'workerRemoved') });
    router.addWorker({ id: 'a', models: ['m'] });
    router.replaceWorker({ id: 'a', models: ['n'] });
    expect(router.worker('a')).toMatchObject({ models: ['n'], revision: 1 });
    expect(pooled(router)).toEqual([
      ['unknown', ['a']],
      ['n', ['a']],
    ]);
  });
});

describe('maintain', () => {
  it('LB-15, LB-20: a lease ends when its host says so, and every other call answers', async () => {
    const time = manualTime();
    const { router, told } = await routerOf({ policy: failingIn('maintain'), clock: time.clock });
    const worker = router.addWorker({ id: 'a' });
    const acquired = router.acquire({});
    if (!acquired.ok) throw new Error('nothing selected');
    time.advance(1000);
    acquired.lease.end({ status: 200 });
    expect(worker.inFlight).toBe(0);
    time.advance(1000);
    expect(router.maintain()).toBe(false);
    expect(router.selectWorker({}).ok).toBe(true);
    // Said once, however often it happens.
    expect(told.map(({ code, message }) => [code, message])).toEqual([
      ['policyFailed', 'policy last threw in maintain'],
    ]);
  });
});

describe('the factory', () => {
  it('LB-15, LM-25: a worker can always be removed: the policy its label named goes on when no other can be made', async () => {
    let made = 0;
    const policy = (): Policy => {
      if (++made > 1) throw failure;
      return failingIn()();
    };
    const time = manualTime();
    const { router, told } = await routerOf({ policy, clock: time.clock, drainSettleMs: 5000 });
    router.addWorker({ id: 'a', labels: { policy: 'round_robin' } });
    router.setStatus('a', 'draining');
    time.advance(5000);
    expect(router.selectWorker({})).toMatchObject({ ok: false, reason: 'no_workers' });
    expect(router.workers()).toEqual([]);
    expect(router.pools().map((pool) => [pool.policy, pool.workers])).toEqual([['round_robin', []]]);
    const message = 'the configured policy could not be made; round_robin goes on';
    expect(told).toEqual([{ code: 'policyFailed', message, fields: ['policy'], model: 'unknown', error: failure }]);
  });

  it('WK-66, LB-21: one that throws ends a reconciling after the removals and their leases; another call does the rest', async () => {
    let made = 0;
    const policy = (): Policy => {
      if (++made === 3) throw failure;
      return failingIn()();
    };
    const { router } = await routerOf({ policy });
    router.addWorker({ id: 'a', models: ['m'] });
    router.begin('a');
    const wanted = [{ id: 'b' }, { id: 'c', models: ['n'] }, { id: 'd' }];
    expect(() => router.reconcile(wanted)).toThrow(failure);
    expect(router.workers().map(({ id }) => id)).toEqual(['b']);
    expect(router.leases().open).toBe(0);
    expect(router.reconcile(wanted)).toEqual({ added: ['c', 'd'], replaced: [], removed: [], unchanged: 1 });
  });
});
