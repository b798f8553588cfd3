/** Leases that end with a body: web streams, async iterables, Node streams (LB-20, B30 to B33). */
import { EventEmitter } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import type { Router } from 'kvroute';
import { afterEach, describe, expect, it } from 'vitest';
import { inFlight, oneWorker } from './one-worker.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

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

  it('LB-15, LB-20: a body that fails to be let go of, or to be stopped, leaves no count behind and breaks no call', async () => {
    const unwilling = (): never => {
      throw new Error('not now');
    };
    const stream = { on: () => {}, off: unwilling, readableEnded: false };
    const { router } = await following(stream);
    const lease = router.begin('a');
    lease.follow(stream);
    lease.end();
    expect(inFlight(router)).toBe(1);

    for (const stop of [unwilling, () => ({ done: true, value: undefined })]) {
      const own = await oneWorker();
      const controller = new AbortController();
      const followed = own.begin('a', { signal: controller.signal }).follow({
        [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}), return: stop as never }),
      });
      void followed[Symbol.asyncIterator]().next();
      const uncaught: unknown[] = [];
      const note = (error: unknown) => uncaught.push(error);
      process.on('uncaughtException', note);
      controller.abort();
      await turn();
      process.off('uncaughtException', note);
      expect(inFlight(own)).toBe(0);
      expect(uncaught).toEqual([]);
    }
  });
});
