/**
 * The gateway of examples/express-gateway over real sockets when a client or a worker goes away: every dispatch gives its
 * count back (faults B30 to B35).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { type EngineServer, startEngine } from '../../examples/shared/engine-simulator/server.js';
import { until } from '../../examples/shared/until.js';
import { chatBody, client, gateway, path, post } from './express-stand.js';
import { rawPost, startEngines, undoAll } from './gateway-helpers.js';

afterEach(undoAll);

describe('clients that leave', () => {
  it('B31: in mid-stream, give the count back within 100 ms and stop the engine', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await gateway([engine.url]);
    const socket = rawPost(stand.url, path, chatBody(5_000));
    await new Promise((resolve) => socket.once('data', resolve));
    await sleep(50);
    expect(stand.inFlight()).toEqual([1]);
    socket.destroy();
    expect(await until(() => stand.inFlight()[0] === 0, 10_000)).toBeLessThan(100);
    await until(() => engine.totals.cancelled === 1, 10_000);
    expect(engine.engine.load()).toMatchObject({ runningRequests: 0, waitingRequests: 0, usedTokens: 0 });
    expect(stand.leaseEnds).toMatchObject([{ end: 'aborted', outcome: { aborted: true } }]);
    expect(stand.router.workers()[0]?.consecutiveFailures).toBe(0);
  });

  it('B33: while the worker is silent, give the count back at once', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    engine.faults.stallNext(1);
    const stand = await gateway([engine.url]);
    const socket = rawPost(stand.url, path, chatBody(5));
    await until(() => stand.inFlight()[0] === 1, 10_000);
    await sleep(20);
    socket.destroy();
    expect(await until(() => stand.inFlight()[0] === 0, 10_000)).toBeLessThan(100);
    expect(stand.leaseEnds).toMatchObject([{ end: 'aborted' }]);
    expect(stand.router.workers()[0]?.consecutiveFailures).toBe(0);
  });

  it('B32: before their request is complete, reach no worker', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await gateway([engine.url]);
    const half = chatBody(5).slice(0, 40);
    const socket = rawPost(stand.url, path, half, 10_000);
    await until(() => stand.sockets.length === 1, 10_000);
    await sleep(20);
    socket.destroy();
    const late = rawPost(stand.url, path, chatBody(5));
    late.destroySoon(); // sends everything and closes without waiting for the answer
    await until(() => stand.sockets.length === 2 && stand.sockets.every(({ destroyed }) => destroyed), 10_000);
    await until(() => stand.inFlight()[0] === 0, 10_000);
    expect((await post(stand.url, chatBody(5))).status).toBe(200);
    expect(engine.totals.requests - engine.totals.cancelled).toBe(1);
  });

  it('B30: keep a count for each of many streams, and none when all have left', async () => {
    const started = await startEngines(3, { kvCapacityTokens: 64_000 });
    const stand = await gateway(started.map(({ url }) => url));
    const leave = new AbortController();
    const streams = Array.from({ length: 30 }, () => post(stand.url, chatBody(5_000), { signal: leave.signal }));
    await Promise.all(streams);
    expect(stand.inFlight()).toEqual([10, 10, 10]);
    leave.abort();
    await until(() => stand.inFlight().every((count) => count === 0), 2_000);
    await until(() => started.every(({ totals }) => totals.cancelled === 10), 2_000);
  });
});

describe('workers that fail', () => {
  it('CB-25: breaking off in mid-stream ends the client’s stream with an error and charges the worker', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    engine.faults.breakNext(1, 3);
    const stand = await gateway([engine.url]);
    const response = await post(stand.url, chatBody(50));
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow('terminated');
    expect(stand.inFlight()).toEqual([0]);
    expect(stand.leaseEnds).toMatchObject([{ outcome: { error: 'body' } }]);
    expect(stand.router.workers()[0]?.consecutiveFailures).toBe(1);
  });

  it('LB-14: a refusal before the answer leads to another worker', async () => {
    const [one, two] = (await startEngines(2)) as [EngineServer, EngineServer];
    one.faults.failNext(1, 503);
    const stand = await gateway([one.url, two.url]);
    for (let i = 0; i < 2; i++) {
      const response = await post(stand.url, chatBody(2));
      expect(response.status).toBe(200);
      await response.text();
    }
    expect(stand.leaseEnds.map(({ outcome }) => outcome)).toEqual(
      expect.arrayContaining([{ status: 503 }, { status: 200 }, { status: 200 }]),
    );
    expect(stand.leaseEnds).toHaveLength(3);
    expect(stand.inFlight()).toEqual([0, 0]);
  });

  it('a worker that is not there is tried once, then another answers', async () => {
    const gone = await startEngine();
    await gone.close();
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await gateway([gone.url, engine.url]);
    for (let i = 0; i < 4; i++) {
      const response = await post(stand.url, chatBody(1));
      expect([response.status, response.headers.get('x-smg-routed-worker-id')]).toEqual([200, engine.url]);
      await response.text();
    }
    expect(stand.leaseEnds.filter(({ outcome }) => outcome && 'error' in outcome)).not.toHaveLength(0);
    expect(stand.inFlight()).toEqual([0, 0]);
  });

  it('when nobody answers the client is told so, in a form its library understands', async () => {
    const gone = await startEngine();
    await gone.close();
    const stand = await gateway([gone.url]);
    const error = await client(stand.url)
      .chat.completions.create({ model: 'demo', messages: [] })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ status: 502, code: 'service_unavailable' });
    expect((error as InstanceType<typeof OpenAI.APIError>).headers?.get('x-smg-error-code')).toBe(
      'service_unavailable',
    );
    expect(stand.inFlight()).toEqual([0]);
  });

  it('a refusal of the last worker is passed on', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    engine.faults.failNext(10, 500);
    const stand = await gateway([engine.url], { retry: { maxAttempts: 2 } });
    const response = await post(stand.url, chatBody(1));
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: { message: 'injected' } });
    expect(stand.leaseEnds.map(({ outcome }) => outcome)).toEqual([{ status: 500 }, { status: 500 }]);
    // Two attempts of one request are one failure (CB-30).
    expect(stand.router.workers()[0]?.consecutiveFailures).toBe(1);
  });

  it('CB-20: a worker that stays silent counts as a timeout', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    engine.faults.stallNext(1);
    const stand = await gateway([engine.url], { retry: { maxAttempts: 1 } }, { workerTimeoutMs: 100 });
    const response = await post(stand.url, chatBody(1));
    expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([504, 'service_unavailable']);
    expect(stand.leaseEnds).toMatchObject([{ outcome: { error: 'timeout' } }]);
    expect(stand.inFlight()).toEqual([0]);
  });
});
