/**
 * What every example gateway for single workers does, over real sockets: relays without reading ahead, gives the count of
 * every dispatch back whoever goes away (faults B30 to B35), and tells a client what it cannot do.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Router, RouterEvents, RouterOptions } from 'kvroute';
import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { type EngineServer, startEngine } from '../../examples/shared/engine-simulator/server.js';
import { until } from '../../examples/shared/until.js';
import {
  chatBody,
  client,
  firstData,
  floodingWorker,
  inFlight,
  path,
  post,
  rawPost,
  scriptedWorker,
  startEngines,
  undoAll,
} from './gateway-helpers.js';

export interface GatewayStand {
  readonly url: string;
  readonly router: Router;
  readonly leaseEnds: RouterEvents['leaseEnded'][];
}

/** Listens in front of `workers`, with policy `round_robin` unless `options` name another. */
export type StartGateway = (
  workers: readonly string[],
  options?: RouterOptions,
  others?: { readonly loadPollIntervalMs?: number; readonly workerTimeoutMs?: number },
) => Promise<GatewayStand>;

export function describeGateway(name: string, gateway: StartGateway): void {
  describe(name, () => {
    afterEach(undoAll);
    describeRelaying(gateway);
    describeLeavingClients(gateway);
    describeFailingWorkers(gateway);
    describeRefusals(gateway);
  });
}

function describeRelaying(gateway: StartGateway): void {
  describe('relaying', () => {
    it('WK-30, OB-100: streams token by token, names the worker, and counts until the body has ended', async () => {
      const [engine] = (await startEngines(1, { decodeStepMs: 20 })) as [EngineServer];
      const stand = await gateway([engine.url]);
      const { data: stream, response } = await client(stand.url)
        .chat.completions.create({
          model: 'demo',
          messages: [{ role: 'user', content: 'tell me something' }],
          max_tokens: 10,
          stream: true,
        })
        .withResponse();
      expect(response.headers.get('x-smg-routed-worker-id')).toBe(engine.url);
      expect(response.headers.get('content-type')).toBe('text/event-stream');

      const counts: number[] = [];
      let text = '';
      for await (const chunk of stream) {
        const word = chunk.choices[0]?.delta.content ?? '';
        if (word === '') continue;
        counts.push(...inFlight(stand.router));
        text += word;
      }
      // A gateway that collects tokens first would hand them over when the worker is done.
      expect(counts.slice(0, 5)).toEqual(Array(5).fill(1));
      expect(inFlight(stand.router)).toEqual([0]);
      const direct = await client(engine.url).chat.completions.create(JSON.parse(chatBody(10, undefined, false)));
      expect(text).toBe(direct.choices[0]?.message.content);
      expect(stand.leaseEnds).toMatchObject([{ end: 'body', outcome: { status: 200 } }]);
    });

    it('relays answers that are not streamed, and the other routes', async () => {
      const [engine] = (await startEngines(1)) as [EngineServer];
      const stand = await gateway([engine.url]);
      const completion = await client(stand.url).completions.create({
        model: 'demo',
        prompt: 'x'.repeat(40),
        max_tokens: 2,
      });
      expect(completion.usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 2 });
      const generated = await fetch(`${stand.url}/generate`, {
        method: 'POST',
        body: JSON.stringify({ input_ids: [1, 2, 3], sampling_params: { max_new_tokens: 1 } }),
      });
      expect(await generated.json()).toMatchObject({ meta_info: { prompt_tokens: 3 } });
      expect(inFlight(stand.router)).toEqual([0]);
    });

    it('CA-111, OB-101: sends the body as it came, and keeps connection headers, hints and error marks to itself', async () => {
      let seen: Record<string, unknown> = {};
      let seenBody = '';
      const worker = await scriptedWorker(async (req, res) => {
        seen = req.headers;
        for await (const chunk of req) seenBody += chunk;
        res.writeHead(201, { 'x-request-id': 'r1', 'x-smg-error-code': 'forged', 'keep-alive': 'timeout=9' }).end('{}');
      });
      const stand = await gateway([worker]);
      const body = '{ "model":"demo", "messages": [], "unknown_field": 1e2 }';
      const response = await post(stand.url, body, {
        authorization: 'Bearer key',
        'x-smg-routing-tokens': '1,2,3',
        'content-type': 'application/json',
      });
      expect(seenBody).toBe(body);
      expect(seen.authorization).toBe('Bearer key');
      expect(seen['content-type']).toBe('application/json');
      expect(seen['x-smg-routing-tokens']).toBeUndefined();
      expect([response.status, response.headers.get('x-request-id')]).toEqual([201, 'r1']);
      expect(response.headers.get('x-smg-error-code')).toBeNull();
      expect(response.headers.get('keep-alive')).not.toBe('timeout=9');
      expect(response.headers.get('x-smg-routed-worker-id')).toBe(worker);
    });

    it('does not read ahead of a slow client', async () => {
      const total = 48 * 1024 * 1024;
      const worker = await floodingWorker(total);
      const stand = await gateway([worker.url]);
      const socket = rawPost(stand.url, path, chatBody(1));
      await firstData(socket);
      socket.pause();
      await worker.waits();
      expect(worker.written()).toBeLessThan(total / 2);
      expect(inFlight(stand.router)).toEqual([1]);
      socket.resume();
      await until(() => inFlight(stand.router)[0] === 0, 10_000);
      expect(worker.written()).toBe(total);
      expect(stand.leaseEnds).toMatchObject([{ end: 'body', outcome: { status: 200 } }]);
    });
  });
}

function describeLeavingClients(gateway: StartGateway): void {
  describe('clients that leave', () => {
    it('B31: in mid-stream, give the counts of all workers back within 100 ms and stop the engines', async () => {
      const engines = await startEngines(2);
      const stand = await gateway(engines.map(({ url }) => url));
      const sockets = engines.map(() => rawPost(stand.url, path, chatBody(5_000)));
      await Promise.all(sockets.map(firstData));
      await sleep(50);
      expect(inFlight(stand.router)).toEqual([1, 1]);
      for (const socket of sockets) socket.destroy();
      expect(await until(() => inFlight(stand.router).join() === '0,0', 10_000)).toBeLessThan(100);
      await until(() => engines.every(({ totals }) => totals.cancelled === 1), 10_000);
      for (const { engine } of engines) {
        expect(engine.load()).toMatchObject({ runningRequests: 0, waitingRequests: 0, usedTokens: 0 });
      }
      expect(stand.leaseEnds).toMatchObject(Array(2).fill({ end: 'aborted', outcome: { aborted: true } }));
      expect(stand.router.workers().map((worker) => worker.consecutiveFailures)).toEqual([0, 0]);
    });

    it('B32, B33: while the worker is silent, give the count back at once', async () => {
      const [engine] = (await startEngines(1)) as [EngineServer];
      engine.faults.stallNext(1);
      const stand = await gateway([engine.url]);
      const socket = rawPost(stand.url, path, chatBody(5));
      await until(() => inFlight(stand.router)[0] === 1, 10_000);
      await sleep(20);
      socket.destroy();
      expect(await until(() => inFlight(stand.router)[0] === 0, 10_000)).toBeLessThan(100);
      expect(stand.leaseEnds).toMatchObject([{ end: 'aborted', outcome: { aborted: true } }]);
      expect(stand.router.workers()[0]?.consecutiveFailures).toBe(0);
    });

    it('B30: keep a count for each of many streams, and none when all have left', async () => {
      const engines = await startEngines(3, { kvCapacityTokens: 64_000 });
      const stand = await gateway(engines.map(({ url }) => url));
      const sockets = Array.from({ length: 30 }, () => rawPost(stand.url, path, chatBody(5_000)));
      await Promise.all(sockets.map(firstData));
      expect(inFlight(stand.router)).toEqual([10, 10, 10]);
      for (const socket of sockets) socket.destroy();
      await until(() => inFlight(stand.router).every((count) => count === 0), 2_000);
      await until(() => engines.every(({ totals }) => totals.cancelled === 10), 2_000);
    });
  });
}

function describeFailingWorkers(gateway: StartGateway): void {
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

    it('LB-14, WK-34, LB-25: a failure before the answer leads to another worker, one lease after the other', async () => {
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
      expect(stand.leaseEnds.filter(({ end }) => end === 'body')).toHaveLength(3);
      expect(stand.router.leases()).toMatchObject({ open: 0 });
      expect(inFlight(stand.router)).toEqual([0, 0, 0]);
    });

    it('when nobody answers the client is told so, in a form its library understands', async () => {
      const gone = await startEngine();
      await gone.close();
      const stand = await gateway([gone.url], { retry: { baseMs: 1 } });
      const error = await client(stand.url)
        .chat.completions.create({ model: 'demo', messages: [] })
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(OpenAI.APIError);
      expect(error).toMatchObject({ status: 502, code: 'service_unavailable' });
      expect((error as InstanceType<typeof OpenAI.APIError>).headers?.get('x-smg-error-code')).toBe(
        'service_unavailable',
      );
      expect(inFlight(stand.router)).toEqual([0]);
    });

    it('a refusal that no other worker would answer better is passed on as it is, without another attempt', async () => {
      const engines = await startEngines(2);
      for (const { faults } of engines) faults.failNext(1, 422);
      const stand = await gateway(engines.map(({ url }) => url));
      const response = await post(stand.url, chatBody(1));
      expect(response.status).toBe(422);
      expect(await response.json()).toMatchObject({ error: { message: 'injected' } });
      expect(stand.leaseEnds).toMatchObject([{ outcome: { status: 422 } }]);
      expect(inFlight(stand.router)).toEqual([0, 0]);
    });

    it('CB-30: a refusal of the last worker is passed on, and two attempts of one request are one failure', async () => {
      const [engine] = (await startEngines(1)) as [EngineServer];
      engine.faults.failNext(10, 500);
      const stand = await gateway([engine.url], { retry: { maxAttempts: 2 } });
      const response = await post(stand.url, chatBody(1));
      expect(response.status).toBe(500);
      expect(await response.json()).toMatchObject({ error: { message: 'injected' } });
      expect(stand.leaseEnds.map(({ outcome }) => outcome)).toEqual([{ status: 500 }, { status: 500 }]);
      expect(stand.router.workers()[0]?.consecutiveFailures).toBe(1);
    });

    it('CB-20: a worker that stays silent counts as a timeout', async () => {
      const [engine] = (await startEngines(1)) as [EngineServer];
      engine.faults.stallNext(1);
      const stand = await gateway([engine.url], { retry: { maxAttempts: 1 } }, { workerTimeoutMs: 100 });
      const response = await post(stand.url, chatBody(1));
      expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([504, 'service_unavailable']);
      expect(stand.leaseEnds).toMatchObject([{ outcome: { error: 'timeout' } }]);
      expect(inFlight(stand.router)).toEqual([0]);
    });
  });
}

function describeRefusals(gateway: StartGateway): void {
  describe('requests that find no worker', () => {
    it('OV-20, OB-101: a shed is a 503 with its code and Retry-After', async () => {
      const [engine] = (await startEngines(1)) as [EngineServer];
      const options = { workerOverloadWaitingRequests: 2, loadMonitorIntervalMs: 2_500 };
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

    it('OV-21: no worker at all is a 503 without Retry-After, and the gateway is not ready', async () => {
      const stand = await gateway([], { retry: { maxAttempts: 1 } });
      const response = await post(stand.url, chatBody(1));
      expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([503, 'no_available_workers']);
      expect(response.headers.get('retry-after')).toBeNull();
      expect((await fetch(`${stand.url}/health`)).status).toBe(503);
    });

    it('LB-42: a body that is no JSON object is a 400 and reaches nobody', async () => {
      const [engine] = (await startEngines(1)) as [EngineServer];
      const stand = await gateway([engine.url]);
      for (const body of ['{', '[]', 'null', '']) {
        const response = await post(stand.url, body);
        expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([400, 'invalid_request']);
      }
      expect(engine.totals.requests).toBe(0);
    });
  });

  it('OB-10, OB-11: the router’s metrics come out as Prometheus text', async () => {
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
  });
}
