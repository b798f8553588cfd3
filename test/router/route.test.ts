import { createRouter, type Router } from 'kvroute';
import { describe, expect, it } from 'vitest';

async function fleet(ids: string[], options = {}): Promise<Router> {
  const router = await createRouter({ policy: 'passthrough', seed: 3, ...options });
  for (const id of ids) router.addWorker({ id });
  return router;
}

const inFlight = (router: Router): number[] => router.workers().map((worker) => worker.inFlight);

describe('route', () => {
  it('LB-25: selects, begins, attempts, ends; the answer comes back with the worker and the attempts', async () => {
    const router = await fleet(['a']);
    const result = await router.route({}, (worker, { attempt, lease, record }) => {
      expect([worker.id, attempt, lease.open, record.policy, worker.inFlight]).toEqual([
        'a',
        1,
        true,
        'passthrough',
        1,
      ]);
      return { status: 200, text: 'hi' };
    });
    expect(result).toMatchObject({ ok: true, value: { text: 'hi' }, attempts: 1 });
    expect(inFlight(router)).toEqual([0]);
    expect(router.worker('a')?.consecutiveSuccesses).toBe(1);
  });

  it('LB-25, WK-34: failed workers are excluded from the next attempt, each attempt holds its own lease', async () => {
    const router = await fleet(['a', 'b', 'c']);
    const tried: string[] = [];
    const result = await router.route({}, (worker) => {
      tried.push(`${worker.id} ${inFlight(router).join('')}`);
      if (worker.id === 'a') throw new Error('refused');
      return { statusCode: worker.id === 'b' ? 503 : 200 };
    });
    expect(result).toMatchObject({ ok: true, worker: { id: 'c' }, attempts: 3 });
    expect(tried).toEqual(['a 100', 'b 010', 'c 001']);
    expect(router.workers().map((worker) => worker.consecutiveFailures)).toEqual([1, 1, 0]);
  });

  it('LB-25: when exclusion leaves nobody, everybody may be tried again; a worker is charged once (CB-30)', async () => {
    const router = await fleet(['a', 'b']);
    const tried: string[] = [];
    const result = await router.route({}, (worker) => {
      tried.push(worker.id);
      return { status: tried.length < 4 ? 502 : 200 };
    });
    expect(tried).toEqual(['a', 'b', 'a', 'a']);
    expect(result).toMatchObject({ ok: true, attempts: 4 });
    expect(router.worker('a')).toMatchObject({ consecutiveFailures: 0, consecutiveSuccesses: 1 });
    expect(router.worker('b')?.consecutiveFailures).toBe(1);
  });

  it('CF-119: attempts are limited; the last bad answer is the answer, the last error is thrown', async () => {
    const router = await fleet(['a', 'b'], { retry: { maxAttempts: 3 } });
    let attempts = 0;
    const bad = await router.route({}, () => ({ status: ++attempts === 3 ? 503 : 500 }));
    expect(bad).toMatchObject({ ok: true, value: { status: 503 }, attempts: 3 });
    await expect(
      router.route({}, () => Promise.reject(new Error(`attempt ${++attempts}`)), { retry: { maxAttempts: 2 } }),
    ).rejects.toThrow('attempt 5');
    expect(inFlight(router)).toEqual([0, 0]);
  });

  it('CF-119: waits between attempts grow, with jitter, and are the host’s to wait', async () => {
    const router = await fleet(['a'], { retry: { maxAttempts: 4, baseMs: 100, factor: 2, jitter: 0, maxMs: 300 } });
    const waits: number[] = [];
    await router.route({}, () => ({ status: 500 }), { sleep: async (ms) => void waits.push(ms) });
    expect(waits).toEqual([100, 200, 300]);
  });

  it('LB-25: an answer that no other worker would change is not retried', async () => {
    const router = await fleet(['a', 'b']);
    for (const status of [200, 400, 404, 422, 501]) {
      expect(await router.route({}, () => ({ status }))).toMatchObject({ attempts: 1 });
    }
    expect(await router.route({}, () => 'text')).toMatchObject({ ok: true, value: 'text', attempts: 1 });
  });

  it('OV-20, LB-25: sheds are not retried, want of workers is', async () => {
    const router = await fleet(['a'], { workerOverloadProtection: true, retry: { maxAttempts: 3 } });
    router.reportLoad('a', { kvCacheUsage: 0.99 });
    let attempts = 0;
    const never = (): never => {
      throw new Error(`attempt ${++attempts}`);
    };
    expect(await router.route({}, never)).toMatchObject({ ok: false, reason: 'overloaded', attempts: 0 });
    router.reportLoad('a', null);
    router.setStatus('a', 'not_ready');
    let waits = 0;
    const sleep = async (): Promise<void> => {
      waits += 1;
      if (waits === 2) router.setStatus('a', 'ready');
    };
    expect(await router.route({}, () => 'late', { sleep })).toMatchObject({ ok: true, value: 'late', attempts: 1 });
    router.setStatus('a', 'not_ready');
    expect(await router.route({}, never)).toMatchObject({ ok: false, reason: 'no_available_workers' });
    expect(attempts).toBe(0);
  });

  it('WK-30: a followed body keeps its lease open beyond the attempt', async () => {
    const router = await fleet(['a']);
    const body = new ReadableStream<string>({
      start(controller) {
        controller.enqueue('x');
      },
    });
    const result = await router.route({}, (_, { lease }) => ({ status: 200, body: lease.follow(body) }));
    if (!result.ok) throw new Error('no answer');
    expect(inFlight(router)).toEqual([1]);
    await result.value.body.cancel();
    expect(inFlight(router)).toEqual([0]);
  });

  it('LB-20: an abort ends the running lease and the loop', async () => {
    const router = await fleet(['a', 'b']);
    const controller = new AbortController();
    let attempts = 0;
    const routed = router.route(
      {},
      () => {
        attempts += 1;
        controller.abort(new Error('client left'));
        expect(inFlight(router)).toEqual([0, 0]);
        throw new DOMException('aborted', 'AbortError');
      },
      { signal: controller.signal },
    );
    await expect(routed).rejects.toThrow('aborted');
    await expect(router.route({}, () => attempts++, { signal: controller.signal })).rejects.toThrow('client left');
    expect(attempts).toBe(1);
    expect(router.workers().map((worker) => worker.consecutiveFailures)).toEqual([0, 0]);
  });

  it('LB-25: the host may say what answers and errors mean', async () => {
    const router = await fleet(['a', 'b']);
    const result = await router.route({}, (worker) => ({ ok: worker.id === 'b' }), {
      outcomeOf: ({ ok }) => ({ status: ok ? 200 : 500 }),
    });
    expect(result).toMatchObject({ ok: true, worker: { id: 'b' } });
    await expect(
      router.route({}, () => Promise.reject(new Error('mine')), { outcomeOfError: () => ({ aborted: true }) }),
    ).rejects.toThrow('mine');
    await expect(router.route({}, undefined as never)).rejects.toThrow(/^attempt: /);
    await expect(router.route({}, () => 1, { retry: { maxAttempts: 0 } })).rejects.toThrow(/^retry.maxAttempts: /);
  });

  it('LB-15, LB-25: a hook that tells no outcome, or throws, is refused by name and leaves no count behind', async () => {
    const nothing = () => undefined as never;
    for (const retry of [{ maxAttempts: 1 }, {}]) {
      const router = await fleet(['a', 'b'], { retry });
      await expect(router.route({}, () => 1, { outcomeOf: nothing })).rejects.toThrow(/^outcomeOf: /);
      await expect(router.route({}, () => 1, { outcomeOf: () => 'ok' as never })).rejects.toThrow(/^outcomeOf: /);
      const fails = (): never => {
        throw new Error('refused');
      };
      await expect(router.route({}, fails, { outcomeOfError: nothing })).rejects.toThrow(/^outcomeOfError: /);
      // What the hook throws is no failure of the worker, and no reason to ask another one.
      await expect(router.route({}, () => 1, { outcomeOf: fails })).rejects.toThrow('refused');
      expect(router.leases().open).toBe(0);
      expect(router.workers().map((worker) => worker.consecutiveFailures)).toEqual([0, 0]);
      expect(router.workers().map((worker) => worker.selections)).toEqual([4, 0]);
    }
  });

  it('LB-25, CH-3: a worker named by the client is tried again, since exclusion leaves nobody for the request', async () => {
    const router = await fleet(['a', 'b', 'c'], { policy: 'consistent_hashing', retry: { maxAttempts: 3 } });
    const tried: string[] = [];
    const headers = { 'x-smg-target-worker': '1' };
    const result = await router.route({ headers }, (worker) => {
      tried.push(worker.id);
      return { status: tried.length < 3 ? 503 : 200 };
    });
    expect(tried).toEqual(['b', 'b', 'b']);
    expect(result).toMatchObject({ ok: true, value: { status: 200 }, attempts: 3 });
  });
});
