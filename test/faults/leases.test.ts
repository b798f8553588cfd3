/** Reported faults of counting requests in flight and of following streamed answers: one test an id. */
import { EventEmitter, getEventListeners, once } from 'node:events';
import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { ReadableStream, type UnderlyingSource } from 'node:stream/web';
import { AdmissionWindow, type Lease, leastLoad, type Router, type RouterEvents } from 'kvroute';
import { fakeCandidate, manualClock } from 'kvroute/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { fleet, keyed, names, pick, tally, times } from './support.js';

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const open = (router: Router, id = 'w1'): number => router.worker(id)?.inFlight ?? -1;

/** The ends of leases from now on, as `end` words. */
function endsOf(router: Router): RouterEvents['leaseEnded']['end'][] {
  const ends: RouterEvents['leaseEnded']['end'][] = [];
  router.on('leaseEnded', ({ end }) => ends.push(end));
  return ends;
}

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A server on the loopback interface, and the port it listens on. */
async function listen(handle: (req: IncomingMessage, res: ServerResponse) => void): Promise<number> {
  const server = createServer(handle).listen(0, '127.0.0.1');
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Everything `process` warns about until `stop`. */
function processWarnings(): { readonly names: string[]; stop(): void } {
  const seen: string[] = [];
  const listener = (warning: Error): number => seen.push(warning.name);
  process.on('warning', listener);
  return { names: seen, stop: () => process.off('warning', listener) };
}

describe('requests in flight', () => {
  it('B25: an end without a begin of its own changes no count, and idle workers share alike afterwards', async () => {
    const router = await fleet(names(3), { policy: 'least_load' });
    // The only ways to end what was never begun here: a lease of an earlier life of the id, or one that is over.
    const late = router.begin('w1');
    router.removeWorker('w1');
    router.addWorker({ id: 'w1' });
    late.end({ status: 200 });
    const over = router.begin('w2');
    over.end({ status: 200 });
    over.end({ status: 200 });
    expect(router.workers().map((worker) => worker.inFlight)).toEqual([0, 0, 0]);
    const admission = new AdmissionWindow();
    const admitted = admission.tryAdmit(4);
    if (typeof admitted === 'string') throw new Error(admitted);
    admitted.release();
    admitted.release();
    expect(admission.inUse).toBe(0);
    const picks = times(300, () => {
      const acquired = router.acquire({});
      if (!acquired.ok) throw new Error(acquired.reason);
      acquired.lease.end({ status: 200 });
      return acquired.worker.id;
    });
    const counts = tally(picks);
    for (const id of names(3)) expect(Math.abs((counts.get(id) ?? 0) - 100), id).toBeLessThanOrEqual(30);
    // A policy used alone refuses a count that cannot be.
    expect(() => leastLoad().selectWorker({}, [fakeCandidate({ inFlight: -1 })])).toThrow(/^candidates\[0\]\.inFlight/);
  });

  it('B26: the first end counts, the others do nothing', async () => {
    const router = await fleet(['w1']);
    const ends = endsOf(router);
    const lease = router.begin('w1');
    router.begin('w1');
    lease.end({ error: 'connect' });
    lease.end({ status: 200 });
    lease[Symbol.dispose]();
    lease.follow(null);
    expect(open(router)).toBe(1);
    expect(ends).toEqual(['ended']);
    expect(router.worker('w1')).toMatchObject({ consecutiveFailures: 1, consecutiveSuccesses: 0 });
  });

  it('B27: nothing periodic rewrites the counts of running requests', async () => {
    const time = manualClock();
    const router = await fleet(['w1'], { clock: time.clock, evictionIntervalMs: 1000 });
    const leases = times(3, () => router.begin('w1'));
    for (let minute = 0; minute < 60; minute++) {
      time.advance(60_000);
      while (router.maintain());
    }
    expect(open(router)).toBe(3);
    for (const lease of leases) lease.end({ status: 200 });
    expect(open(router)).toBe(0);
  });

  it('B29: a request aborted while it is prepared leaves neither count nor credit', async () => {
    const router = await fleet(['w1'], { policy: 'least_load' });
    const controller = new AbortController();
    const tokenize = async (): Promise<number[]> => {
      await turn();
      return [1, 2, 3];
    };
    const dispatch = async (): Promise<Lease | undefined> => {
      const tokens = await tokenize();
      const acquired = router.acquire({ tokens }, { signal: controller.signal });
      return acquired.ok ? acquired.lease : undefined;
    };
    const running = dispatch();
    controller.abort();
    expect((await running)?.open).toBe(false);
    expect(router.worker('w1')).toMatchObject({ inFlight: 0, creditTokens: 0, creditRequests: 0, selections: 0 });
    let attempts = 0;
    const routed = router.route({ tokens: [1] }, () => attempts++, { signal: controller.signal });
    await expect(routed).rejects.toMatchObject({ name: 'AbortError' });
    expect(attempts).toBe(0);
    expect(router.worker('w1')).toMatchObject({ inFlight: 0, creditTokens: 0 });
  });
});

describe('streamed answers', () => {
  it('B30: counted until the body is over, whichever way it ends, and no longer', async () => {
    const router = await fleet(['w1']);
    const follow = <B>(body: B): B => router.begin('w1').follow(body);
    const stream = (source: UnderlyingSource<string>): ReadableStream<string> => new ReadableStream<string>(source);

    // (a) The handler has returned, the body is still open.
    let close = (): void => {};
    const running = follow(
      stream({
        start(controller) {
          close = () => controller.close();
          controller.enqueue('first');
        },
      }),
    );
    await turn();
    expect(open(router)).toBe(1);
    close();
    for await (const _ of running);
    expect(open(router)).toBe(0);

    // (b) The reader cancels.
    let isCancelled = false;
    const left = follow(
      stream({
        pull: (controller) => controller.enqueue('more'),
        cancel: () => {
          isCancelled = true;
        },
      }),
    ).getReader();
    await left.read();
    expect(open(router)).toBe(1);
    await left.cancel();
    expect([open(router), isCancelled]).toEqual([0, true]);

    // (c) An empty body, and none at all, without a read.
    follow(stream({ start: (controller) => controller.close() }));
    await turn();
    expect(open(router)).toBe(0);
    follow(null);
    expect(open(router)).toBe(0);

    // (d) An error after two chunks.
    let sent = 0;
    const broken = follow(
      stream({
        pull(controller) {
          sent += 1;
          if (sent > 2) controller.error(new Error('broke off'));
          else controller.enqueue('chunk');
        },
      }),
    ).getReader();
    await broken.read();
    await broken.read();
    await expect(broken.read()).rejects.toThrow('broke off');
    expect(open(router)).toBe(0);

    // (e) The last chunk was read and the source closed: nobody pulls again.
    const chunks = ['only'];
    const last = follow(
      stream({
        pull(controller) {
          controller.enqueue(chunks.pop() as string);
          controller.close();
        },
      }),
    ).getReader();
    expect(await last.read()).toEqual({ done: false, value: 'only' });
    await turn();
    expect(open(router)).toBe(0);
  });

  it('B31: a client that leaves is noticed on the response, at once and once, and keep-alive gathers no listeners', async () => {
    const router = await fleet(['w1']);
    const ends = endsOf(router);
    const warnings = processWarnings();
    const sockets: Socket[] = [];
    let released = (): void => {};
    const release = new Promise<number>((resolve) => {
      released = () => resolve(performance.now());
    });
    router.on('leaseEnded', () => released());
    const port = await listen(async (req, res) => {
      sockets.push(req.socket);
      let size = 0;
      for await (const chunk of req) size += (chunk as Buffer).length;
      router.begin('w1').follow(res, { status: 200 });
      if (req.url === '/short') {
        res.end(String(size));
        return;
      }
      // An answer of ten seconds; it stops with the response.
      const stream = setInterval(() => res.write('data: x\n\n'), 10);
      const end = setTimeout(() => res.end(), 10_000);
      res.once('close', () => {
        clearInterval(stream);
        clearTimeout(end);
      });
    });

    const long = httpRequest({ port, host: '127.0.0.1', method: 'POST', path: '/long' });
    long.on('error', () => {});
    long.end('x'.repeat(1000));
    const [answer] = (await once(long, 'response')) as [IncomingMessage];
    answer.on('error', () => {});
    answer.resume();
    await wait(50);
    expect(open(router)).toBe(1);
    const leftAt = performance.now();
    answer.socket.destroy();
    expect((await release) - leftAt).toBeLessThan(100);
    await turn();
    expect([open(router), ends]).toEqual([0, ['aborted']]);

    sockets.length = 0;
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    closing.push(() => agent.destroy());
    let listeners = 0;
    for (let i = 0; i < 200; i++) {
      const short = httpRequest({ port, host: '127.0.0.1', method: 'POST', path: '/short', agent });
      short.end('x'.repeat(1000));
      const [reply] = (await once(short, 'response')) as [IncomingMessage];
      reply.resume();
      await once(reply, 'end');
      const socket = sockets[0] as Socket;
      const count = socket.eventNames().reduce((sum, name) => sum + socket.listenerCount(name), 0);
      if (i === 0) listeners = count;
      else expect(count).toBeLessThanOrEqual(listeners + 2);
    }
    await turn();
    warnings.stop();
    expect(new Set(sockets).size).toBe(1);
    expect([open(router), ends.length]).toEqual([0, 201]);
    expect(ends.slice(1)).toEqual(times(200, () => 'body'));
    expect(warnings.names).toEqual([]);
  });

  it('B32: a client that is gone before anybody could listen is noticed, and leaves no listener', async () => {
    const router = await fleet(['w1']);
    const ends = endsOf(router);
    const controller = new AbortController();
    controller.abort();
    const lease = router.begin('w1', { signal: controller.signal });
    expect([lease.open, open(router), ends]).toEqual([false, 0, ['aborted']]);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
    const gone = Object.assign(new EventEmitter(), { destroyed: true, writableFinished: false });
    router.begin('w1').follow(gone);
    expect([open(router), ends]).toEqual([0, ['aborted', 'aborted']]);
    expect(gone.eventNames()).toEqual([]);
    // A synchronous end takes its listener along.
    const later = new AbortController();
    router.begin('w1', { signal: later.signal }).end({ status: 200 });
    expect(getEventListeners(later.signal, 'abort')).toHaveLength(0);
  });

  it('B33: an abort releases at once, not with the next chunk, and cancels the silent source', async () => {
    const router = await fleet(['w1']);
    const controller = new AbortController();
    let cancelledAt = 0;
    const silent = new ReadableStream({
      pull: () => new Promise(() => {}),
      cancel: () => {
        cancelledAt = performance.now();
      },
    });
    const body = router.begin('w1', { signal: controller.signal }).follow(silent).getReader();
    const reading = body.read();
    await wait(20);
    expect(open(router)).toBe(1);
    const abortedAt = performance.now();
    controller.abort();
    expect(open(router)).toBe(0);
    expect(cancelledAt - abortedAt).toBeGreaterThanOrEqual(0);
    expect(cancelledAt - abortedAt).toBeLessThan(10);
    expect((await reading).done).toBe(true);
  });

  it('B34: a lease nobody ends is seen to age and goes at the age limit; what is unknown does no harm', async () => {
    const time = manualClock(500);
    const router = await fleet(['w1'], { clock: time.clock, maxLeaseAgeMs: 1000 });
    const ends = endsOf(router);
    const expired: number[] = [];
    router.on('leaseExpired', ({ ageMs }) => expired.push(ageMs));
    const lease = router.begin('w1');
    time.advance(400);
    expect(router.leases()).toMatchObject({ open: 1, oldestAgeMs: 400 });
    time.advance(601);
    router.maintain();
    expect(open(router)).toBe(0);
    expect(router.leases()).toEqual({ open: 0, oldestAgeMs: 0, byWorker: new Map() });
    expect([expired, ends]).toEqual([[1001], ['expired']]);
    lease.end({ error: 'connect' });
    expect(ends).toHaveLength(1);
    expect(router.worker('w1')).toMatchObject({ inFlight: 0, consecutiveFailures: 0 });
    const unknown = [
      router.removeWorker('w9'),
      router.recordOutcome('w9', { status: 500 }),
      router.recordProbe('w9', true),
      router.setStatus('w9', 'failed'),
    ];
    expect(unknown).toEqual([false, false, false, false]);
  });

  it('B35: a thousand requests on one long-lived signal leave no listener', async () => {
    const router = await fleet(names(2), { routingKeyOverride: true });
    const warnings = processWarnings();
    const { signal } = new AbortController();
    for (let i = 0; i < 1000; i++) {
      const acquired = router.acquire(keyed(`k${i % 7}`), { signal });
      if (!acquired.ok) throw new Error(acquired.reason);
      const { lease } = acquired;
      if (i % 3 === 0) lease.end({ status: 200 });
      else if (i % 3 === 1) for await (const _ of lease.follow(new Blob(['x']).stream()));
      else await router.route({}, () => ({ status: 200 }), { signal }).finally(() => lease[Symbol.dispose]());
    }
    await turn();
    warnings.stop();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(warnings.names).toEqual([]);
    expect(router.leases().open).toBe(0);
    expect(names(2)).toContain(pick(router));
  });
});
