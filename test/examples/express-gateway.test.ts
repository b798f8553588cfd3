/** The gateway of examples/express-gateway over real sockets: what it relays, what it refuses, and what lasts (B31). */
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import type { EngineServer } from '../../examples/shared/engine-simulator/server.js';
import { until } from '../../examples/shared/until.js';
import { chatBody, client, gateway, post } from './express-stand.js';
import { floodingWorker, notFound, onTestEnd, scriptedWorker, startEngines, undoAll } from './gateway-helpers.js';

afterEach(undoAll);

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
      counts.push(...stand.inFlight());
      text += word;
    }
    // A gateway that collects tokens first would hand them over when the worker is done.
    expect(counts.slice(0, 5)).toEqual(Array(5).fill(1));
    expect(stand.inFlight()).toEqual([0]);
    const direct = (await (await post(engine.url, chatBody(10, false))).json()) as OpenAI.ChatCompletion;
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
    expect(stand.inFlight()).toEqual([0]);
  });

  it('CA-111, OB-101: sends the body as it came, and keeps connection headers, hints and error marks to itself', async () => {
    let seen: IncomingMessage['headers'] = {};
    let seenBody = '';
    const worker = await scriptedWorker(async (req, res) => {
      seen = req.headers;
      for await (const chunk of req) seenBody += chunk;
      res.writeHead(200, { 'x-request-id': 'r1', 'x-smg-error-code': 'forged', 'keep-alive': 'timeout=9' }).end('{}');
    });
    const stand = await gateway([worker]);
    const body = '{ "model":"demo", "messages": [], "unknown_field": 1e2 }';
    const response = await post(stand.url, body, {
      headers: { authorization: 'Bearer key', 'x-smg-routing-tokens': '1,2,3', 'content-type': 'application/json' },
    });
    expect(seenBody).toBe(body);
    expect(seen.authorization).toBe('Bearer key');
    expect(seen['content-type']).toBe('application/json');
    expect(seen['x-smg-routing-tokens']).toBeUndefined();
    expect(response.headers.get('x-request-id')).toBe('r1');
    expect(response.headers.get('x-smg-error-code')).toBeNull();
    expect(response.headers.get('x-smg-routed-worker-id')).toBe(worker);
  });

  it('reads a packed body and sends it on unpacked', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await gateway([engine.url]);
    const response = await fetch(`${stand.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-encoding': 'gzip' },
      body: gzipSync(chatBody(2, false)),
    });
    expect(await response.json()).toMatchObject({ usage: { completion_tokens: 2 } });
  });

  it('passes a worker error on as it is and tries no other worker for it', async () => {
    const [one, two] = (await startEngines(2)) as [EngineServer, EngineServer];
    const stand = await gateway([one.url, two.url]);
    for (const engine of [one, two]) engine.faults.failNext(1, 422);
    const response = await post(stand.url, chatBody(1));
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ error: { message: 'injected' } });
    expect(stand.leaseEnds).toMatchObject([{ outcome: { status: 422 } }]);
    expect(stand.inFlight()).toEqual([0, 0]);
  });

  it('does not read ahead of a slow client', async () => {
    const total = 48 * 1024 * 1024;
    const worker = await floodingWorker(total);
    const stand = await gateway([worker.url]);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const { hostname, port } = new URL(stand.url);
      const req = request({ hostname, port, path: '/v1/chat/completions', method: 'POST' }, resolve);
      req.on('error', reject).end(chatBody(1));
    });
    response.pause();
    // The sockets' own buffers fill up, then the worker has to wait.
    let before = -1;
    while (worker.written() !== before) {
      before = worker.written();
      await sleep(150);
    }
    expect(worker.written()).toBeLessThan(total / 2);
    expect(stand.inFlight()).toEqual([1]);
    let received = 0;
    for await (const part of response) received += (part as Buffer).length;
    expect(received).toBe(total);
    expect(await until(() => stand.inFlight()[0] === 0, 10_000)).toBeLessThan(100);
    expect(stand.leaseEnds).toMatchObject([{ end: 'body', outcome: { status: 200 } }]);
  });
});

describe('requests that find no worker', () => {
  it('OV-20: a shed is a 503 with its code and Retry-After', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await gateway([engine.url], { workerOverloadWaitingRequests: 2, loadMonitorIntervalMs: 2_500 });
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
    const stand = await gateway([]);
    const response = await post(stand.url, chatBody(1));
    expect(response.status).toBe(503);
    expect(response.headers.get('x-smg-error-code')).toBe('no_available_workers');
    expect(response.headers.get('retry-after')).toBeNull();
    expect((await fetch(`${stand.url}/health`)).status).toBe(503);
  });

  it('LB-42: a body that is no JSON object is a 400', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await gateway([engine.url]);
    for (const body of ['{', '[]', 'null', '']) {
      const response = await post(stand.url, body);
      expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([400, 'invalid_request']);
    }
    expect(engine.totals.requests).toBe(0);
  });
});

describe('over time', () => {
  it('B31: 200 requests on one keep-alive socket leave no listener behind', async () => {
    const [engine] = (await startEngines(1, { decodeStepMs: 1 })) as [EngineServer];
    const stand = await gateway([engine.url]);
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    onTestEnd(async () => process.off('warning', onWarning));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestEnd(async () => agent.destroy());
    const { hostname, port } = new URL(stand.url);
    const ask = () =>
      new Promise<number | undefined>((resolve, reject) => {
        const req = request({ hostname, port, path: '/v1/chat/completions', method: 'POST', agent }, (res) => {
          res.resume().once('end', () => resolve(res.statusCode));
        });
        req.once('error', reject).end(chatBody(1));
      });
    await ask();
    const listeners = () => ['close', 'error', 'end', 'drain'].map((event) => stand.sockets[0]?.listenerCount(event));
    await sleep(5);
    const before = listeners();
    for (let i = 0; i < 199; i++) expect(await ask()).toBe(200);
    await sleep(5);
    expect(stand.sockets).toHaveLength(1);
    expect(listeners()).toEqual(before);
    expect(warnings).toEqual([]);
    expect(stand.leaseEnds).toHaveLength(200);
    expect(stand.inFlight()).toEqual([0]);
  });

  it('LR-27: workers are polled and reported, also when they fail', async () => {
    const [one, two] = (await startEngines(2)) as [EngineServer, EngineServer];
    const stand = await gateway([one.url, two.url], { policy: 'least_load' }, { loadPollIntervalMs: 20 });
    const reports = () => stand.router.workers().map((worker) => worker.report !== undefined);
    await until(() => reports().every(Boolean), 10_000);
    one.faults.failLoads(500);
    await until(() => reports().join() === 'false,true', 10_000);
    one.faults.failLoads(undefined);
    await until(() => reports().every(Boolean), 10_000);
  });

  it('LR-12: a worker without a load route is read from its metrics', async () => {
    const paths: string[] = [];
    const worker = await scriptedWorker(notFound, (req, res) => {
      paths.push((req.url as string).split('?')[0] as string);
      if (req.url !== '/metrics') return notFound(req, res);
      res.end('sglang_token_usage{model_name="demo"} 0.25\nsglang_num_queue_reqs{model_name="demo"} 3\n');
    });
    const stand = await gateway([worker], { policy: 'least_load' }, { loadPollIntervalMs: 20 });
    await until(() => paths.length >= 3, 10_000);
    expect(paths.slice(0, 3)).toEqual(['/v1/loads', '/metrics', '/metrics']);
    expect(stand.router.workers()[0]?.report).toMatchObject({ ranks: [{ kvCacheUsage: 0.25, waitingRequests: 3 }] });
  });

  it('OB-10, OB-11: the router’s metrics come out as Prometheus text', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await gateway([engine.url]);
    for (let i = 0; i < 3; i++) await (await post(stand.url, chatBody(1))).text();
    const text = await (await fetch(`${stand.url}/metrics`)).text();
    expect(text).toMatch(
      /^smg_worker_selection_total\{worker_type="regular",connection_mode="http",model="demo",policy="round_robin"\} 3$/m,
    );
    expect(text).toContain(`smg_worker_requests_active{worker="${engine.url}"} 0\n`);
  });
});
