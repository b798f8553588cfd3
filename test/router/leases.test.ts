import { EventEmitter, getEventListeners } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { createRouter, type Lease, RequestScope, type Router } from 'kvroute';
import { afterEach, describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';

async function oneWorker(options = {}): Promise<Router> {
  const router = await createRouter({ policy: 'random', seed: 1, ...options });
  router.addWorker({ id: 'a' });
  return router;
}

const inFlight = (router: Router): number | undefined => router.worker('a')?.inFlight;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('begin and end', () => {
  it('LB-20, WK-30: selecting credits and counts nothing in flight, begin counts, end releases exactly once', async () => {
    const router = await oneWorker();
    const selection = router.selectWorker({ tokens: [1, 2, 3] });
    if (!selection.ok) throw new Error('nothing selected');
    expect(router.worker('a')).toMatchObject({ inFlight: 0, creditTokens: 3, creditRequests: 1 });
    const lease = selection.begin();
    const other = selection.begin();
    expect(inFlight(router)).toBe(2);
    lease.end({ status: 200 });
    lease.end({ error: 'connect' });
    lease[Symbol.dispose]();
    expect(lease.open).toBe(false);
    expect(inFlight(router)).toBe(1);
    other[Symbol.dispose]();
    expect(inFlight(router)).toBe(0);
  });

  it('LB-20: acquire is both in one call; router.begin counts what was chosen elsewhere', async () => {
    const router = await oneWorker();
    const acquired = router.acquire({});
    if (!acquired.ok) throw new Error('nothing acquired');
    expect(inFlight(router)).toBe(1);
    const elsewhere = router.begin('a', { routingKey: 'k' });
    expect(router.worker('a')).toMatchObject({ inFlight: 2, activeKeys: 1 });
    elsewhere.end();
    acquired.lease.end();
    expect(router.worker('a')).toMatchObject({ inFlight: 0, activeKeys: 0 });
    expect(() => router.begin('nobody')).toThrow('workerId: expected a registered worker, got "nobody"');
    expect(() => router.begin('a', { routingKey: 'x'.repeat(129) })).toThrow(/^routingKey: /);
    expect(() => router.begin('a', { signal: {} as never })).toThrow(/^signal: /);
    expect(() => router.begin('a', { scope: {} as never })).toThrow(/^scope: /);
    expect(inFlight(router)).toBe(0);
  });

  it('WK-40, WK-41, WK-43: the effective key counts as a distinct (model, leg, key) while a request of it runs', async () => {
    const router = await createRouter({ policy: 'random', routingKeyOverride: true });
    router.addWorker({ id: 'a', models: ['m', 'n'] });
    const begin = (model: string, rid: string): Lease => {
      const acquired = router.acquire({ model, rid });
      if (!acquired.ok) throw new Error('nothing acquired');
      return acquired.lease;
    };
    const leases = [begin('m', 'k_t1'), begin('m', 'k_t2'), begin('n', 'k_t1'), begin('m', 'other')];
    expect(router.worker('a')?.activeKeys).toBe(3);
    for (const lease of leases) lease.end();
    expect(router.worker('a')?.activeKeys).toBe(0);
  });

  it('LB-21: after removal, or removal and re-adding, a late end touches nothing else', async () => {
    const router = await oneWorker();
    const events: string[] = [];
    router.on('leaseEnded', () => events.push('ended'));
    router.on('breakerOutcome', () => events.push('outcome'));
    const lease = router.begin('a');
    router.removeWorker('a');
    expect(router.leases()).toMatchObject({ open: 0 });
    router.addWorker({ id: 'a' });
    const fresh = router.begin('a');
    lease.end({ error: 'connect' });
    expect(router.worker('a')).toMatchObject({ inFlight: 1, consecutiveFailures: 0 });
    expect(router.leases().open).toBe(1);
    expect(events).toEqual([]);
    fresh.end();
    expect(inFlight(router)).toBe(0);
  });

  it('LB-23: open leases are observable; maxLeaseAgeMs releases older ones with an event, exactly at its age', async () => {
    const time = manualTime();
    const router = await oneWorker({ clock: time.clock, maxLeaseAgeMs: 1000 });
    const seen: unknown[] = [];
    router.on('leaseExpired', ({ worker, ageMs }) => seen.push([worker.id, ageMs]));
    router.on('leaseEnded', ({ end, outcome }) => seen.push([end, outcome]));
    const lease = router.begin('a');
    time.advance(400);
    router.begin('a');
    time.advance(599);
    expect(router.leases()).toMatchObject({ open: 2, oldestAgeMs: 999 });
    expect(router.leases().byWorker).toEqual(new Map([['a', 2]]));
    time.advance(1);
    expect(inFlight(router)).toBe(1);
    lease.end({ status: 500 });
    expect(inFlight(router)).toBe(1);
    expect(seen).toEqual([
      ['expired', undefined],
      ['a', 1000],
    ]);
    expect(router.worker('a')?.consecutiveFailures).toBe(0);
  });

  it('B27: without maxLeaseAgeMs nothing rewrites live counts, whatever time passes', async () => {
    const time = manualTime();
    const router = await oneWorker({ clock: time.clock });
    const leases = [router.begin('a'), router.begin('a'), router.begin('a')];
    time.advance(3_600_000);
    while (router.maintain());
    expect(inFlight(router)).toBe(3);
    for (const lease of leases) lease.end();
    expect(inFlight(router)).toBe(0);
  });
});

describe('signals', () => {
  it('LB-20, B32: an abort ends the lease at once, one that is aborted already too; nothing is recorded', async () => {
    const router = await oneWorker();
    const controller = new AbortController();
    const lease = router.begin('a', { signal: controller.signal });
    expect(inFlight(router)).toBe(1);
    controller.abort();
    expect([lease.open, inFlight(router)]).toEqual([false, 0]);
    const late = router.begin('a', { signal: controller.signal });
    expect([late.open, inFlight(router)]).toEqual([false, 0]);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
    expect(router.worker('a')).toMatchObject({ consecutiveFailures: 0, consecutiveSuccesses: 0 });
  });

  it('LB-15, LB-20: a signal that fails to be let go of leaves no count behind', async () => {
    const router = await oneWorker();
    const signal = {
      aborted: false,
      addEventListener: () => {},
      removeEventListener: () => {
        throw new Error('foreign');
      },
    };
    const lease = router.begin('a', { signal });
    lease.end({ status: 200 });
    expect([lease.open, inFlight(router), router.leases().open]).toEqual([false, 0, 0]);
    expect(router.worker('a')?.consecutiveSuccesses).toBe(1);
  });

  it('B29: acquiring with an aborted signal leaves no credit, no count and no pin', async () => {
    const router = await oneWorker({ routingKeyOverride: true });
    const controller = new AbortController();
    controller.abort();
    const acquired = router.acquire({ rid: 'k' }, { signal: controller.signal });
    expect(acquired).toMatchObject({ ok: true, lease: { open: false } });
    expect(router.worker('a')).toMatchObject({ inFlight: 0, creditTokens: 0, creditRequests: 0, selections: 0 });
    expect(router.pinCount).toBe(0);
    router.removeWorker('a');
    expect(router.acquire({}, { signal: controller.signal })).toMatchObject({ ok: false, reason: 'no_workers' });
  });

  it('LB-24, B35: a thousand requests on one long-lived signal leave no listener', async () => {
    const router = await oneWorker();
    const { signal } = new AbortController();
    for (let i = 0; i < 1000; i++) router.begin('a', { signal }).end({ status: 200 });
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

describe('bodies', () => {
  const streams: { destroy(): void }[] = [];
  afterEach(() => {
    for (const stream of streams.splice(0)) stream.destroy();
  });

  async function following<B>(body: B): Promise<{ router: Router; body: B; ends: string[] }> {
    const router = await oneWorker();
    const ends: string[] = [];
    router.on('leaseEnded', ({ end, outcome }) => ends.push(`${end} ${JSON.stringify(outcome)}`));
    return { router, body: router.begin('a').follow(body), ends };
  }

  const webStream = (chunks: string[], end: 'close' | 'error' | 'hang' = 'close'): ReadableStream<string> =>
    new ReadableStream({
      pull(controller) {
        const chunk = chunks.shift();
        if (chunk !== undefined) controller.enqueue(chunk);
        else if (end === 'close') controller.close();
        else if (end === 'error') controller.error(new Error('broke off'));
        else return new Promise(() => {});
        return undefined;
      },
    });

  it('B30: held while the body is open, released when it was read to its end', async () => {
    const { router, body, ends } = await following(webStream(['a', 'b', 'c']));
    await turn();
    expect(inFlight(router)).toBe(1);
    const chunks: string[] = [];
    for await (const chunk of body) chunks.push(chunk);
    expect(chunks).toEqual(['a', 'b', 'c']);
    expect(inFlight(router)).toBe(0);
    expect(ends).toEqual(['body {"status":200}']);
  });

  it('B30 b: cancelling the reader releases and cancels the source; nothing is recorded', async () => {
    let cancelled: unknown;
    const source = new ReadableStream({
      pull: (controller) => controller.enqueue('x'),
      cancel: (reason) => {
        cancelled = reason;
      },
    });
    const { router, body, ends } = await following(source);
    const reader = body.getReader();
    await reader.read();
    await reader.cancel('enough');
    expect(inFlight(router)).toBe(0);
    expect(cancelled).toBe('enough');
    expect(ends).toEqual(['aborted {"aborted":true}']);
  });

  it('B30 c: an empty body, and no body at all, release without a read', async () => {
    const { router } = await following(webStream([]));
    await turn();
    expect(inFlight(router)).toBe(0);
    for (const nothing of [null, undefined]) {
      const { router: other, body } = await following(nothing);
      expect([body, inFlight(other)]).toEqual([nothing, 0]);
    }
  });

  it('B30 d, CB-25: a body that fails after two chunks releases and is a failure', async () => {
    const { router, body, ends } = await following(webStream(['a', 'b'], 'error'));
    await expect(
      (async () => {
        for await (const _ of body);
      })(),
    ).rejects.toThrow('broke off');
    expect(inFlight(router)).toBe(0);
    expect(ends).toEqual(['body {"error":"body"}']);
    expect(router.worker('a')?.consecutiveFailures).toBe(1);
  });

  it('B30 e: the last chunk is read and the source closed: no further pull is needed', async () => {
    const { router, body } = await following(webStream(['only']));
    const reader = body.getReader();
    expect(await reader.read()).toEqual({ done: false, value: 'only' });
    await turn();
    expect(inFlight(router)).toBe(0);
  });

  it('B33: an abort while the source is silent releases at once and cancels the source', async () => {
    const router = await oneWorker();
    const controller = new AbortController();
    let cancelled = false;
    const silent = new ReadableStream({
      pull: () => new Promise(() => {}),
      cancel: () => {
        cancelled = true;
      },
    });
    const lease = router.begin('a', { signal: controller.signal });
    const reader = lease.follow(silent).getReader();
    const reading = reader.read();
    await turn();
    expect([lease.following, inFlight(router)]).toEqual([true, 1]);
    controller.abort();
    expect(inFlight(router)).toBe(0);
    expect((await reading).done).toBe(true);
    expect(cancelled).toBe(true);
  });

  it('an async iterable: its end, its failure and leaving the loop early', async () => {
    async function* generate(fail: boolean): AsyncGenerator<number> {
      yield 1;
      if (fail) throw new Error('broke off');
      yield 2;
    }
    const whole = await following(generate(false));
    for await (const _ of whole.body);
    expect([inFlight(whole.router), whole.ends]).toEqual([0, ['body {"status":200}']]);
    const failing = await following(generate(true));
    await expect(drain(failing.body)).rejects.toThrow('broke off');
    expect([inFlight(failing.router), failing.ends]).toEqual([0, ['body {"error":"body"}']]);
    const left = await following(generate(false));
    for await (const _ of left.body) break;
    expect([inFlight(left.router), left.ends]).toEqual([0, ['aborted {"aborted":true}']]);
  });

  async function drain(body: AsyncIterable<unknown>): Promise<void> {
    for await (const _ of body);
  }

  it('a Node readable: end, error and an early close, and its listeners go', async () => {
    const whole = await following(Readable.from(['a', 'b']));
    for await (const _ of whole.body);
    await turn();
    expect([inFlight(whole.router), whole.ends]).toEqual([0, ['body {"status":200}']]);
    const broken = await following(new PassThrough());
    broken.body.on('error', () => {});
    broken.body.destroy(new Error('broke off'));
    await turn();
    expect([inFlight(broken.router), broken.ends]).toEqual([0, ['body {"error":"body"}']]);
    const closed = await following(new PassThrough());
    closed.body.destroy();
    await turn();
    expect([inFlight(closed.router), closed.ends]).toEqual([0, ['aborted {"aborted":true}']]);
    expect(closed.body.listenerCount('end') + closed.body.listenerCount('finish')).toBe(
      new PassThrough().listenerCount('end') + new PassThrough().listenerCount('finish'),
    );
  });

  it('B30: of a transform what was read counts: written to its end is not over', async () => {
    const { router, body } = await following(new PassThrough());
    body.end('all of it');
    await turn();
    expect(inFlight(router)).toBe(1);
    for await (const _ of body);
    await turn();
    expect(inFlight(router)).toBe(0);
  });

  it('B31, B32: of a response the end of writing counts; a close before that is an abort, also one that came earlier', async () => {
    const response = (): EventEmitter & { writableFinished: boolean; destroyed: boolean } =>
      Object.assign(new EventEmitter(), { writableFinished: false, destroyed: false });
    const finished = await following(response());
    finished.body.writableFinished = true;
    finished.body.emit('finish');
    finished.body.emit('close');
    expect([inFlight(finished.router), finished.ends]).toEqual([0, ['body {"status":200}']]);
    expect(finished.body.eventNames()).toEqual([]);
    const gone = await following(response());
    gone.body.emit('close');
    expect([inFlight(gone.router), gone.ends]).toEqual([0, ['aborted {"aborted":true}']]);
    const before = await following(Object.assign(response(), { destroyed: true }));
    expect([inFlight(before.router), before.ends]).toEqual([0, ['aborted {"aborted":true}']]);
    expect(before.body.eventNames()).toEqual([]);
  });

  it('LB-42: what is no stream is refused and the lease stays open', async () => {
    const router = await oneWorker();
    const lease = router.begin('a');
    expect(() => lease.follow('text')).toThrow(/^body: /);
    expect([lease.open, lease.following, inFlight(router)]).toEqual([true, false, 1]);
  });
});

describe('outcomes', () => {
  it('CB-20, CB-25: statuses, no answer and aborts reach the breaker once, at the end', async () => {
    const router = await oneWorker({ circuitBreaker: { failureThreshold: 3 } });
    const end = (outcome: Parameters<Lease['end']>[0]): number | undefined => {
      router.begin('a').end(outcome);
      return router.worker('a')?.consecutiveFailures;
    };
    expect(end({ status: 500 })).toBe(1);
    expect(end({ status: 429 })).toBe(1);
    expect(end({ aborted: true })).toBe(1);
    expect(end(undefined)).toBe(1);
    expect(end({ error: 'timeout' })).toBe(2);
    expect(end({ status: 404 })).toBe(0);
    expect(end({ error: 'connect' })).toBe(1);
  });

  it('LB-22, CB-30, CB-31: one request charges a worker once, whatever its attempts', async () => {
    const router = await oneWorker();
    router.addWorker({ id: 'b' });
    const scope = new RequestScope();
    for (const id of ['a', 'b', 'a']) router.begin(id, { scope }).end({ status: 500 });
    expect(router.workers().map((worker) => worker.consecutiveFailures)).toEqual([1, 1]);
    expect(router.recordOutcome('a', { status: 500 }, scope)).toBe(true);
    expect(router.worker('a')?.consecutiveFailures).toBe(1);
    expect(router.recordOutcome('a', { status: 500 })).toBe(true);
    expect(router.worker('a')?.consecutiveFailures).toBe(2);
    expect(router.recordOutcome('nobody', { status: 500 })).toBe(false);
  });

  it('CB-32: a request id stands for a scope; the last 4 096 are remembered', async () => {
    const router = await oneWorker({ disableCircuitBreaker: true });
    const failures = (): number | undefined => router.worker('a')?.consecutiveFailures;
    for (let i = 0; i < 3; i++) router.begin('a', { scope: 'request-1' }).end({ status: 500 });
    router.recordOutcome('a', { status: 500 }, 'request-1');
    expect(failures()).toBe(1);
    for (let i = 2; i <= 4096; i++) router.recordOutcome('a', { status: 500 }, `request-${i}`);
    router.recordOutcome('a', { status: 500 }, 'request-1');
    expect(failures()).toBe(4096);
    router.recordOutcome('a', { status: 500 }, 'one more');
    router.recordOutcome('a', { status: 500 }, 'request-2');
    expect(failures()).toBe(4098);
    expect(() => router.recordOutcome('a', { status: 500 }, '')).toThrow(/^scope: /);
    expect(() => router.begin('a', { scope: 'x'.repeat(257) })).toThrow(/^scope: /);
    expect(inFlight(router)).toBe(0);
  });

  it('CB-2, CB-4, CB-5, CB-7: an opened breaker takes its worker out, half-open lets it in again, events tell', async () => {
    const time = manualTime();
    const router = await oneWorker({
      clock: time.clock,
      circuitBreaker: { failureThreshold: 2, successThreshold: 1, timeoutDurationMs: 30_000 },
    });
    router.addWorker({ id: 'b' });
    const moves: string[] = [];
    router.on('breakerTransition', ({ worker, from, to }) => moves.push(`${worker.id}:${from}>${to}`));
    for (let i = 0; i < 2; i++) router.begin('a').end({ status: 503 });
    const reachable = (): Set<string | undefined> =>
      new Set(Array.from({ length: 40 }, () => router.selectWorker({})).map((s) => (s.ok ? s.worker.id : undefined)));
    expect(reachable()).toEqual(new Set(['b']));
    time.advance(29_999);
    expect(reachable()).toEqual(new Set(['b']));
    time.advance(1);
    expect(reachable()).toEqual(new Set(['a', 'b']));
    expect(router.worker('a')?.breakerState).toBe('half_open');
    router.begin('a').end({ status: 200 });
    expect(moves).toEqual(['a:closed>open', 'a:open>half_open', 'a:half_open>closed']);
  });

  it('CB-26: the outcome of a lease begun before the last transition moves streaks, never the state', async () => {
    const router = await oneWorker({ circuitBreaker: { failureThreshold: 1, successThreshold: 1 } });
    const early = router.begin('a');
    router.begin('a').end({ status: 500 });
    expect(router.worker('a')?.breakerState).toBe('open');
    early.end({ status: 200 });
    expect(router.worker('a')).toMatchObject({ breakerState: 'open', consecutiveFailures: 0, consecutiveSuccesses: 1 });
  });
});

describe('counts', () => {
  it('WK-31: ends that come again, in any way, never take a count below zero', async () => {
    const router = await oneWorker();
    const abort = new AbortController();
    const lease = router.begin('a', { signal: abort.signal });
    lease.end({ status: 200 });
    abort.abort();
    lease.end();
    lease[Symbol.dispose]();
    expect(inFlight(router)).toBe(0);
    router.begin('a');
    expect(inFlight(router)).toBe(1);
    expect(router.leases().byWorker).toEqual(new Map([['a', 1]]));
  });

  it('WK-33: routers count for themselves, workers of one id included', async () => {
    const [first, second] = [await oneWorker(), await oneWorker()];
    const lease = first.begin('a');
    expect([inFlight(first), inFlight(second)]).toEqual([1, 0]);
    second.begin('a');
    second.begin('a');
    lease.end();
    expect([inFlight(first), inFlight(second)]).toEqual([0, 2]);
  });
});
