/** What is refused, or goes wrong in the host's own code, leaves nothing half done (LB-35, LB-42, WK-30). */
import { PassThrough } from 'node:stream';
import { createRouter, type Lease, type Router } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';

async function fleet(ids: readonly string[], options = {}): Promise<Router> {
  const router = await createRouter({ policy: 'round_robin', seed: 1, ...options });
  for (const id of ids) router.addWorker({ id });
  return router;
}

describe('arguments', () => {
  it('LB-42: acquire with a wrong signal or scope selects and credits nothing', async () => {
    const router = await fleet(['a']);
    expect(() => router.acquire({}, { scope: 5 as never })).toThrow(/^scope: /);
    expect(() => router.acquire({}, { signal: {} as never })).toThrow(/^signal: /);
    await expect(router.route({}, () => 'never', { signal: {} as never })).rejects.toThrow(/^signal: /);
    expect(router.worker('a')).toMatchObject({ creditRequests: 0, selections: 0, inFlight: 0 });
  });

  it('LB-42: a cache partition is read once, when it is checked', async () => {
    const router = await fleet(['a'], { policy: 'cache_aware' });
    let reads = 0;
    const namespace = {
      get lora() {
        reads += 1;
        return reads === 1 ? 'l' : (Symbol('l') as never);
      },
    };
    expect(router.selectWorker({ text: 'a prompt', namespace })).toMatchObject({ ok: true });
    expect(reads).toBe(1);
  });

  it('LR-22, LB-42: a report that throws when it is read applies nothing of its tick', async () => {
    const router = await fleet(['a', 'b']);
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error('unreadable');
        },
      },
    );
    const tick = [
      ['a', { waitingRequests: 9 }],
      ['b', hostile],
    ] as never;
    expect(() => router.reportLoads(tick)).toThrow('unreadable');
    expect(router.worker('a')?.report).toBeUndefined();
  });

  it('LB-42: selectLegs without a request is refused', async () => {
    const router = await createRouter({ mode: 'pd', policy: 'random' });
    expect(() => router.selectLegs(null as never)).toThrow('request: expected an object, got null');
  });

  it('LB-35, LB-40: reconfigure without options is refused; it does not reset everything', async () => {
    const router = await fleet(['a']);
    expect(() => router.reconfigure(null as never)).toThrow(/^options: must be an object/);
    expect(router.pools()[0]?.policy).toBe('round_robin');
  });

  it('CB-40, LB-35: a spec is copied: what its owner does to it later changes nothing and breaks no reconfigure', async () => {
    const router = await fleet([]);
    const resilience = { cbFailureThreshold: 1, retryableStatusCodes: [500] };
    router.addWorker({ id: 'a', resilience });
    resilience.cbFailureThreshold = -1;
    resilience.retryableStatusCodes.push(200);
    router.reconfigure({ policy: 'round_robin' });
    router.recordOutcome('a', { status: 200 });
    expect(router.worker('a')?.breakerState).toBe('closed');
    router.recordOutcome('a', { status: 500 });
    expect(router.worker('a')?.breakerState).toBe('open');
  });

  it('WK-11, WK-3: replacing one model by two whose names look alike when joined moves the worker', async () => {
    const router = await fleet([]);
    router.addWorker({ id: 'a', models: ['x\ny'] });
    router.replaceWorker({ id: 'a', models: ['x', 'y'] });
    expect(router.pools().map(({ model }) => model)).toEqual(['unknown', 'x', 'y']);
  });
});

describe('settings', () => {
  it('CB-4, CB-7, LB-35: a shorter timeout turns an open breaker half-open at its new moment, and the event tells', async () => {
    const time = manualTime();
    const router = await fleet(['a'], { clock: time.clock, circuitBreaker: { failureThreshold: 1 } });
    router.recordOutcome('a', { status: 500 });
    const told: string[] = [];
    router.on('breakerTransition', ({ from, to }) => told.push(`${from}>${to}`));
    router.reconfigure({ policy: 'round_robin', circuitBreaker: { timeoutDurationMs: 100 } });
    time.advance(99);
    router.maintain();
    expect(told).toEqual([]);
    time.advance(1);
    router.maintain();
    expect(told).toEqual(['open>half_open']);
  });
});

describe('route', () => {
  it('LB-25, WK-30: a host function that throws while it reads an outcome leaves no lease open', async () => {
    const router = await fleet(['a']);
    const outcomeOfError = (): never => {
      throw new Error('from outcomeOfError');
    };
    const failing = router.route({}, () => Promise.reject(new Error('x')), { outcomeOfError });
    await expect(failing).rejects.toThrow('from outcomeOfError');
    expect(router.leases().open).toBe(0);
    expect(router.worker('a')?.inFlight).toBe(0);
  });

  it('WK-34, CB-21: an answer that is retried ends its lease with its own status, although its body is followed', async () => {
    const router = await fleet(['a', 'b']);
    const leases: Lease[] = [];
    const result = await router.route({}, (_worker, { lease, attempt }) => {
      expect(leases.every(({ open }) => !open)).toBe(true);
      leases.push(lease);
      const body = lease.follow(new ReadableStream());
      return { status: attempt === 1 ? 503 : 200, body };
    });
    expect(result).toMatchObject({ ok: true, attempts: 2, value: { status: 200 } });
    expect(leases.map(({ open }) => open)).toEqual([false, true]);
    expect(router.worker('a')).toMatchObject({ inFlight: 0, consecutiveFailures: 1 });
  });

  it('LB-25: attempts counts the calls of attempt, not the selections that found nobody', async () => {
    const router = await fleet([]);
    expect(await router.route({}, () => 'never')).toMatchObject({ ok: false, reason: 'no_workers', attempts: 0 });
  });
});

describe('bodies and media', () => {
  it('LB-24: a lease that ends some other way takes its hooks off a Node stream', async () => {
    const router = await fleet(['a']);
    const acquired = router.acquire({});
    if (!acquired.ok) throw new Error('nothing acquired');
    const stream = new PassThrough();
    const count = (): number[] => ['end', 'finish', 'close'].map((event) => stream.listenerCount(event));
    const before = count();
    acquired.lease.follow(stream);
    expect(count()).not.toEqual(before);
    acquired.lease.end({ status: 200 });
    expect(count()).toEqual(before);
    acquired.lease.follow(stream);
    expect(count()).toEqual(before);
    stream.destroy();
  });

  it('LM-34, LB-3: with round_robin the media of one request go round the encode workers', async () => {
    const router = await createRouter({ mode: 'epd', policy: 'random', encodePolicy: 'round_robin' });
    router.addWorker({ id: 'p', kind: 'prefill' });
    router.addWorker({ id: 'd', kind: 'decode' });
    for (const id of ['e1', 'e2', 'e3']) router.addWorker({ id, kind: 'encode' });
    const legs = router.selectLegs({}, { media: ['x', 'y', 'z', 'x'] });
    expect(legs.ok && legs.encode.map(({ worker }) => worker.id)).toEqual(['e1', 'e2', 'e3', 'e1']);
  });
});
