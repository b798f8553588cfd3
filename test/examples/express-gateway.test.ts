/** The gateway of examples/express-gateway over real sockets: the contract of all gateways, and what lasts (B31). */
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import type { EngineServer } from '../../examples/shared/engine-simulator/server.js';
import { until } from '../../examples/shared/until.js';
import { expressGateway } from './express-stand.js';
import { describeGateway } from './gateway-contract.js';
import {
  chatBody,
  inFlight,
  notFound,
  onTestEnd,
  path,
  post,
  rawPost,
  scriptedWorker,
  startEngines,
  undoAll,
} from './gateway-helpers.js';

describeGateway('the Express gateway', expressGateway);

afterEach(undoAll);

describe('bodies', () => {
  it('reads a packed body and sends it on unpacked', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await expressGateway([engine.url]);
    const response = await fetch(stand.url + path, {
      method: 'POST',
      headers: { 'content-encoding': 'gzip' },
      body: gzipSync(chatBody(2, undefined, false)),
    });
    expect(await response.json()).toMatchObject({ usage: { completion_tokens: 2 } });
  });

  it('B32: clients that leave before their request is complete reach no worker', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await expressGateway([engine.url]);
    const half = chatBody(5).slice(0, 40);
    const socket = rawPost(stand.url, path, half, 10_000);
    await until(() => stand.sockets.length === 1, 10_000);
    await sleep(20);
    socket.destroy();
    const late = rawPost(stand.url, path, chatBody(5));
    late.destroySoon(); // sends everything and closes without waiting for the answer
    await until(() => stand.sockets.length === 2 && stand.sockets.every(({ destroyed }) => destroyed), 10_000);
    await until(() => inFlight(stand.router)[0] === 0, 10_000);
    expect((await post(stand.url, chatBody(5))).status).toBe(200);
    expect(engine.totals.requests - engine.totals.cancelled).toBe(1);
  });
});

describe('over time', () => {
  it('B31: 200 requests on one keep-alive socket leave no listener behind', async () => {
    const [engine] = (await startEngines(1, { decodeStepMs: 1 })) as [EngineServer];
    const stand = await expressGateway([engine.url]);
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    onTestEnd(async () => process.off('warning', onWarning));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestEnd(async () => agent.destroy());
    const { hostname, port } = new URL(stand.url);
    const ask = () =>
      new Promise<number | undefined>((resolve, reject) => {
        const req = request({ hostname, port, path, method: 'POST', agent }, (res) => {
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
    expect(inFlight(stand.router)).toEqual([0]);
  });

  it('LR-27: workers are polled and reported, also when they fail', async () => {
    const [one, two] = (await startEngines(2)) as [EngineServer, EngineServer];
    const stand = await expressGateway([one.url, two.url], { policy: 'least_load' }, { loadPollIntervalMs: 20 });
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
    const stand = await expressGateway([worker], { policy: 'least_load' }, { loadPollIntervalMs: 20 });
    await until(() => paths.length >= 3, 10_000);
    expect(paths.slice(0, 3)).toEqual(['/v1/loads', '/metrics', '/metrics']);
    expect(stand.router.workers()[0]?.report).toMatchObject({ ranks: [{ kvCacheUsage: 0.25, waitingRequests: 3 }] });
  });
});
