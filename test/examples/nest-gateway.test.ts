/**
 * The gateway of examples/nest-gateway over real sockets: dependency injection, relaying, clients and workers that go
 * away, sheds, and that every dispatch gives its count back (faults B30 to B35).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Router, type RouterEvents, type RouterOptions, RoutingConfigError } from 'kvroute';
import OpenAI from 'openai';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createGateway } from '../../examples/nest-gateway/gateway.js';
import type { KvRouteOptions } from '../../examples/nest-gateway/kv-route.options.js';
import { type EngineServer, startEngine } from '../../examples/shared/engine-simulator/server.js';
import { until } from '../../examples/shared/until.js';
import {
  firstData,
  floodingWorker,
  inFlight,
  onTestEnd,
  rawPost,
  recordLeaseEnds,
  scriptedWorker,
  startEngines,
  undoAll,
} from './gateway-helpers.js';

afterEach(undoAll);

const path = '/v1/chat/completions';

interface Stand {
  readonly url: string;
  readonly app: NestExpressApplication;
  readonly router: Router;
  readonly leaseEnds: RouterEvents['leaseEnded'][];
}

async function gateway(
  workers: readonly string[],
  options: RouterOptions = {},
  others: Omit<KvRouteOptions, 'router' | 'workers'> = {},
): Promise<Stand> {
  const app = await createGateway({
    useFactory: () => ({
      router: { policy: 'round_robin', seed: 1, ...options },
      workers: workers.map((url) => ({ url, models: ['demo'], runtime: 'sglang' })),
      ...others,
    }),
  });
  onTestEnd(() => app.close());
  const router = app.get(Router, { strict: false });
  const leaseEnds = recordLeaseEnds(router);
  await app.listen(0, '127.0.0.1');
  return { url: await app.getUrl(), app, router, leaseEnds };
}

function chatBody(maxTokens: number, stream = true): string {
  const messages = [{ role: 'user', content: 'tell me something' }];
  return JSON.stringify({ model: 'demo', messages, max_tokens: maxTokens, stream });
}

function post(url: string, body: string): Promise<Response> {
  return fetch(url + path, { method: 'POST', body });
}

describe('the module', () => {
  it('makes the router from an injected configuration, and reports loads from start to end', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    @Module({ providers: [{ provide: 'FLEET', useValue: [engine.url] }], exports: ['FLEET'] })
    class FleetModule {}
    const app = await createGateway({
      imports: [FleetModule],
      inject: ['FLEET'],
      useFactory: async (urls: string[]) => ({ workers: urls.map((url) => ({ url })), loadPollIntervalMs: 20 }),
    });
    onTestEnd(() => app.close());
    const router = app.get(Router, { strict: false });
    expect(router.workers().map(({ id }) => id)).toEqual([engine.url]);
    expect(router.workers()[0]?.report).toBeUndefined();

    let reports = 0;
    router.on('reportApplied', () => reports++);
    await app.listen(0, '127.0.0.1');
    await until(() => reports >= 2, 10_000);
    await app.close();
    const atEnd = reports;
    await sleep(60);
    expect(reports).toBe(atEnd);
  });

  it('LB-40: a wrong option is told when the application is made', async () => {
    const log = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    onTestEnd(() => log.mockRestore());
    await expect(gateway([], { policy: 'lest_load' as never })).rejects.toThrow(RoutingConfigError);
    expect(log.mock.calls.join()).toContain('lest_load');
  });

  it('shows readiness and the router’s metrics', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await gateway([engine.url]);
    for (let i = 0; i < 3; i++) await (await post(stand.url, chatBody(1))).text();
    const metrics = await fetch(`${stand.url}/metrics`);
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain;.*version=0\.0\.4/);
    const text = await metrics.text();
    expect(text).toMatch(
      /^smg_worker_selection_total\{worker_type="regular",connection_mode="http",model="demo",policy="round_robin"\} 3$/m,
    );
    expect(text).toContain(`smg_worker_requests_active{worker="${engine.url}"} 0\n`);
    const health = async () => {
      const response = await fetch(`${stand.url}/health`);
      return [response.status, await response.json()];
    };
    expect(await health()).toEqual([200, { ready: true }]);
    stand.router.setStatus(engine.url, 'not_ready');
    expect(await health()).toEqual([503, { ready: false }]);
  });
});

describe('relaying', () => {
  it('WK-30, OB-100: streams token by token, names the worker, and counts until the body has ended', async () => {
    const [engine] = (await startEngines(1, { decodeStepMs: 20 })) as [EngineServer];
    const stand = await gateway([engine.url]);
    const client = new OpenAI({ baseURL: `${stand.url}/v1`, apiKey: 'unused', maxRetries: 0 });
    const { data: stream, response } = await client.chat.completions
      .create({ model: 'demo', messages: [{ role: 'user', content: 'hello' }], max_tokens: 10, stream: true })
      .withResponse();
    expect(response.status).toBe(200);
    expect(response.headers.get('x-smg-routed-worker-id')).toBe(engine.url);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const counts: number[] = [];
    for await (const { choices } of stream) {
      if (!choices[0]?.delta.content) continue;
      counts.push(...inFlight(stand.router));
    }
    // A gateway that collects tokens first would hand them over when the worker is done.
    expect(counts.slice(0, 5)).toEqual(Array(5).fill(1));
    expect(inFlight(stand.router)).toEqual([0]);
    expect(stand.leaseEnds).toMatchObject([{ end: 'body', outcome: { status: 200 } }]);
  });

  it('CA-111, OB-101: passes bodies and headers on, without hints and without marks a worker forged', async () => {
    let seenBody = '';
    let hint: unknown = 'not asked yet';
    const worker = await scriptedWorker(async (req, res) => {
      hint = req.headers['x-smg-routing-tokens'];
      for await (const chunk of req) seenBody += chunk;
      res.writeHead(201, { 'x-request-id': 'r1', 'x-smg-error-code': 'forged' }).end('{}');
    });
    const stand = await gateway([worker]);
    const body = '{ "model":"demo", "prompt": "x", "unknown_field": 1e2 }';
    const headers = { 'x-smg-routing-tokens': '1,2,3' };
    const response = await fetch(`${stand.url}/v1/completions`, { method: 'POST', body, headers });
    expect([seenBody, hint]).toEqual([body, undefined]);
    expect([response.status, response.headers.get('x-request-id')]).toEqual([201, 'r1']);
    expect(response.headers.get('x-smg-error-code')).toBeNull();
    expect((await fetch(`${stand.url}/generate`, { method: 'POST', body })).status).toBe(201);
  });

  it('does not read ahead of a slow client', async () => {
    const total = 48 * 1024 * 1024;
    const worker = await floodingWorker(total);
    const stand = await gateway([worker.url]);
    const socket = rawPost(stand.url, path, chatBody(1));
    await firstData(socket);
    socket.pause();
    // The sockets' own buffers fill up, then the worker has to wait.
    let before = -1;
    while (worker.written() !== before) {
      before = worker.written();
      await sleep(150);
    }
    expect(worker.written()).toBeLessThan(total / 2);
    expect(inFlight(stand.router)).toEqual([1]);
    socket.resume();
    await until(() => inFlight(stand.router)[0] === 0, 5_000);
    expect(worker.written()).toBe(total);
    expect(stand.leaseEnds).toMatchObject([{ end: 'body', outcome: { status: 200 } }]);
  });
});

describe('clients that leave', () => {
  it('B31: in mid-stream, give the counts of all workers back within 100 ms and stop the engines', async () => {
    const engines = await startEngines(2);
    const stand = await gateway(engines.map(({ url }) => url));
    const sockets = engines.map(() => rawPost(stand.url, path, chatBody(5_000)));
    await Promise.all(sockets.map(firstData));
    expect(inFlight(stand.router)).toEqual([1, 1]);
    for (const socket of sockets) socket.destroy();
    expect(await until(() => inFlight(stand.router).join() === '0,0', 10_000)).toBeLessThan(100);
    await until(() => engines.every(({ totals }) => totals.cancelled === 1), 10_000);
    expect(stand.leaseEnds.map(({ end }) => end)).toEqual(['aborted', 'aborted']);
    expect(stand.router.workers().map((worker) => worker.consecutiveFailures)).toEqual([0, 0]);
  });

  it('B32, B33: while the worker is silent, give the count back at once', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    engine.faults.stallNext(1);
    const stand = await gateway([engine.url]);
    const socket = rawPost(stand.url, path, chatBody(5));
    await until(() => inFlight(stand.router)[0] === 1, 10_000);
    socket.destroy();
    expect(await until(() => inFlight(stand.router)[0] === 0, 10_000)).toBeLessThan(100);
    expect(stand.leaseEnds).toMatchObject([{ end: 'aborted', outcome: { aborted: true } }]);
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
    expect(inFlight(stand.router)).toEqual([0]);
    expect(stand.leaseEnds).toMatchObject([{ outcome: { error: 'body' } }]);
    expect(stand.router.workers()[0]?.consecutiveFailures).toBe(1);
  });

  it('WK-34, LB-25: a failure before the answer leads to another worker, one lease after the other', async () => {
    const gone = await startEngine();
    await gone.close();
    const [failing, engine] = (await startEngines(2)) as [EngineServer, EngineServer];
    failing.faults.failNext(10, 503);
    const stand = await gateway([gone.url, failing.url, engine.url]);
    let most = 0;
    stand.router.on('leaseBegan', () => {
      most = Math.max(most, stand.router.leases().open);
    });
    for (let i = 0; i < 3; i++) {
      const response = await post(stand.url, chatBody(2));
      expect([response.status, response.headers.get('x-smg-routed-worker-id')]).toEqual([200, engine.url]);
      await response.text();
    }
    expect(most).toBe(1);
    expect(stand.leaseEnds.map(({ outcome }) => outcome)).toEqual(
      expect.arrayContaining([{ error: 'connect' }, { status: 503 }, { status: 200 }]),
    );
    expect(inFlight(stand.router)).toEqual([0, 0, 0]);
  });

  it('when nobody answers the client is told so, in a form its library understands', async () => {
    const gone = await startEngine();
    await gone.close();
    const stand = await gateway([gone.url], { retry: { baseMs: 1 } });
    const client = new OpenAI({ baseURL: `${stand.url}/v1`, apiKey: 'unused', maxRetries: 0 });
    const error = await client.chat.completions.create({ model: 'demo', messages: [] }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect([error.status, error.code]).toEqual([502, 'service_unavailable']);
    expect(error.headers.get('x-smg-error-code')).toBe('service_unavailable');
    expect(inFlight(stand.router)).toEqual([0]);
  });

  it('CB-20: a worker that stays silent counts as a timeout', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    engine.faults.stallNext(1);
    const stand = await gateway([engine.url], { retry: { maxAttempts: 1 } }, { workerTimeoutMs: 100 });
    const response = await post(stand.url, chatBody(1));
    expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([504, 'service_unavailable']);
    expect(stand.leaseEnds).toMatchObject([{ outcome: { error: 'timeout' } }]);
  });
});

describe('requests that find no worker', () => {
  it('OV-20, OB-101: a shed is a 503 with its code and Retry-After', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const options = { workerOverloadWaitingRequests: 2 };
    const stand = await gateway([engine.url], options, { loadPollIntervalMs: 2_500 });
    await until(() => stand.router.workers()[0]?.report !== undefined, 10_000);
    stand.router.reportLoad(engine.url, { waitingRequests: 2 });
    const response = await post(stand.url, chatBody(1));
    expect(response.status).toBe(503);
    expect(response.headers.get('x-smg-error-code')).toBe('worker_overload_protection_shed');
    expect(response.headers.get('retry-after')).toBe('3');
    expect(await response.json()).toMatchObject({ error: { code: 'worker_overload_protection_shed' } });
    expect(engine.totals.requests).toBe(0);
  });

  it('OV-21: no worker at all is a 503 without Retry-After', async () => {
    const stand = await gateway([], { retry: { maxAttempts: 1 } });
    const response = await post(stand.url, chatBody(1));
    expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([503, 'no_available_workers']);
    expect(response.headers.get('retry-after')).toBeNull();
  });

  it('LB-42: what is no request is refused in the same shape', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await gateway([engine.url]);
    for (const body of ['{', '[]', 'null', '']) {
      const response = await post(stand.url, body);
      expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([400, 'invalid_request']);
    }
    const headers = { 'content-encoding': 'unheard-of' };
    const packed = await fetch(stand.url + path, { method: 'POST', body: 'packed', headers });
    expect([packed.status, packed.headers.get('x-smg-error-code')]).toEqual([415, 'invalid_request']);
    const unknown = await fetch(`${stand.url}/v2/nothing`);
    expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: { code: 'invalid_request' } }]);
    expect(engine.totals.requests).toBe(0);
  });
});
