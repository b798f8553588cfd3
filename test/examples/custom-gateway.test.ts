/**
 * The gateway of examples/custom-gateway over real sockets: prefill/decode pairs whose legs are both counted and both given
 * back (faults B29 to B35), KV events that lead decisions, gaps in them, places on decode workers, sticky keys, metrics.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRouter, type Router, type RouterEvents, type RouterOptions } from 'kvroute';
import { hostMetrics, metricTable } from 'kvroute/metrics';
import { afterEach, describe, expect, it } from 'vitest';
import { createGateway, type GatewayOptions } from '../../examples/custom-gateway/gateway.js';
import { type MemoryMeter, memoryMeter } from '../../examples/custom-gateway/memory-meter.js';
import { otelAdapter } from '../../examples/custom-gateway/otel-metrics.js';
import type { EngineOptions } from '../../examples/shared/engine-simulator/engine.js';
import { chatFormat } from '../../examples/shared/engine-simulator/formats.js';
import type { EngineServer } from '../../examples/shared/engine-simulator/server.js';
import { closeServer, listen } from '../../examples/shared/listen.js';
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
/** Block size of the simulated engines; prompts below are longer. */
const blockTokens = 16;

interface Leg {
  readonly url: string;
  readonly bootstrapPort?: number | undefined;
  readonly labels?: Readonly<Record<string, string>>;
}

interface Stand {
  readonly url: string;
  readonly router: Router;
  readonly meter: MemoryMeter;
  readonly leaseEnds: RouterEvents['leaseEnded'][];
  /** What was selected, `leg branch`, in order. */
  readonly decisions: string[];
}

async function gateway(
  prefills: readonly Leg[],
  decodes: readonly Leg[],
  options: RouterOptions = {},
  others: Partial<GatewayOptions> = {},
): Promise<Stand> {
  const router = await createRouter({
    mode: 'pd',
    prefillPolicy: 'cache_aware',
    decodePolicy: 'round_robin',
    seed: 1,
    ...options,
  });
  const add = (kind: 'prefill' | 'decode', { url, bootstrapPort = 1, labels = {} }: Leg) =>
    router.addWorker({ url, kind, labels, models: ['demo'], ...(kind === 'prefill' && { bootstrapPort }) });
  for (const leg of prefills) add('prefill', leg);
  for (const leg of decodes) add('decode', leg);
  const leaseEnds = recordLeaseEnds(router);
  const decisions: string[] = [];
  router.on('selected', ({ record }) => decisions.push(`${record.leg} ${record.branch ?? '-'}`));
  const meter = memoryMeter();
  const { server, close } = createGateway(router, {
    tokenizeChat: (messages) => chatFormat.read({ messages })?.prompt as number[] | undefined,
    metrics: otelAdapter(meter),
    loadPollIntervalMs: 10_000,
    ...others,
  });
  onTestEnd(close);
  onTestEnd(() => closeServer(server));
  return { url: await listen(server), router, meter, leaseEnds, decisions };
}

async function pairs(
  prefillCount: number,
  decodeCount: number,
  engineOptions: EngineOptions = {},
): Promise<{ readonly prefills: EngineServer[]; readonly decodes: EngineServer[] }> {
  const prefills = await startEngines(prefillCount, engineOptions, 'prefill');
  return { prefills, decodes: await startEngines(decodeCount, engineOptions, 'decode') };
}

function chatBody(maxTokens: number, content = 'tell me something', stream = true): string {
  return JSON.stringify({ model: 'demo', messages: [{ role: 'user', content }], max_tokens: maxTokens, stream });
}

function post(url: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url + path, { method: 'POST', body, headers });
}

const total = (router: Router) => inFlight(router).reduce((sum, count) => sum + count, 0);
const failures = (router: Router) => router.workers().map((worker) => worker.consecutiveFailures);

describe('pairs', () => {
  it('WK-32, OB-100: both legs are counted, the prefill leg until its answer, the decode leg until the body has ended', async () => {
    const { prefills, decodes } = await pairs(1, 1, { prefillTokensPerSecond: 1_000, decodeStepMs: 20 });
    const stand = await gateway(prefills, decodes);
    const asked = post(stand.url, chatBody(10, 'x'.repeat(800)));
    await until(() => total(stand.router) > 0, 10_000);
    expect(inFlight(stand.router)).toEqual([1, 1]);
    const response = await asked;
    expect(response.headers.get('x-smg-routed-worker-id')).toBe(decodes[0]?.url);
    await until(() => inFlight(stand.router)[0] === 0, 10_000);
    expect(inFlight(stand.router)).toEqual([0, 1]);
    const text = await response.text();
    expect(text.match(/"content":"\w+ "/g)).toHaveLength(10);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(inFlight(stand.router)).toEqual([0, 0]);
    expect(stand.leaseEnds.map(({ worker, outcome }) => [worker.kind, outcome])).toEqual([
      ['prefill', { status: 200 }],
      ['decode', { status: 200 }],
    ]);
    // The decode engine got the prompt's KV instead of computing it, and the prefill engine made one token only.
    expect(prefills[0]?.totals.generatedTokens).toBe(1);
    expect(decodes[0]?.totals.generatedTokens).toBe(10);
  });

  it('LM-15, LM-36: both get the same body, with the prefill worker’s bootstrap address and one room', async () => {
    const seen: Record<string, unknown>[] = [];
    const answer: RequestListener = async (req, res) => {
      let text = '';
      for await (const chunk of req) text += chunk;
      seen.push(JSON.parse(text));
      res.end('{}');
    };
    const [prefill, decode] = await Promise.all([scriptedWorker(answer), scriptedWorker(answer)]);
    const stand = await gateway([{ url: prefill, bootstrapPort: 8998 }], [{ url: decode }]);
    await (await post(stand.url, chatBody(3, 'hello', false))).text();
    await (await post(stand.url, chatBody(3, 'hello', false))).text();
    expect(seen).toHaveLength(4);
    expect(seen[0]).toEqual(seen[1]);
    expect(seen[2]).toEqual(seen[3]);
    expect(seen[0]).toMatchObject({
      ...JSON.parse(chatBody(3, 'hello', false)),
      bootstrap_host: '127.0.0.1',
      bootstrap_port: 8998,
      bootstrap_room: expect.any(Number),
    });
    expect(seen[0]?.bootstrap_room).not.toBe(seen[2]?.bootstrap_room);
  });

  it('does not read ahead of a slow client', async () => {
    const size = 48 * 1024 * 1024;
    const prefill = await scriptedWorker((_req, res) => res.end('{}'));
    const decode = await floodingWorker(size);
    const stand = await gateway([{ url: prefill }], [decode]);
    const socket = rawPost(stand.url, path, chatBody(1));
    await firstData(socket);
    socket.pause();
    // The sockets' own buffers fill up, then the worker has to wait.
    let before = -1;
    while (decode.written() !== before) {
      before = decode.written();
      await sleep(150);
    }
    expect(decode.written()).toBeLessThan(size / 2);
    expect(inFlight(stand.router)).toEqual([0, 1]);
    socket.destroy();
    expect(await until(() => total(stand.router) === 0, 10_000)).toBeLessThan(100);
  });

  it('LB-42: what is no request is refused and reaches nobody', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    const stand = await gateway(prefills, decodes);
    for (const body of ['{', '[]', 'null', '']) {
      const response = await post(stand.url, body);
      expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([400, 'invalid_request']);
    }
    expect((await post(stand.url, 'packed', { 'content-encoding': 'gzip' })).status).toBe(415);
    expect((await fetch(`${stand.url}/v2/nothing`, { method: 'POST' })).status).toBe(404);
    expect((await fetch(stand.url + path)).status).toBe(404);
    expect((await post(stand.url, 'x'.repeat(33 * 1024 * 1024))).status).toBe(413);
    expect(stand.decisions).toEqual([]);
  });
});

describe('clients that leave', () => {
  it('B31: in mid-stream, give all counts back within 100 ms and stop the engine', async () => {
    const { prefills, decodes } = await pairs(2, 2);
    const stand = await gateway(prefills, decodes);
    const sockets = decodes.map(() => rawPost(stand.url, path, chatBody(3_000)));
    await Promise.all(sockets.map(firstData));
    await until(() => inFlight(stand.router).join() === '0,0,1,1', 10_000);
    for (const socket of sockets) socket.destroy();
    expect(await until(() => total(stand.router) === 0, 10_000)).toBeLessThan(100);
    await until(() => decodes.every(({ totals }) => totals.cancelled === 1), 10_000);
    expect(failures(stand.router)).toEqual([0, 0, 0, 0]);
  });

  it('B33: while both workers are silent, give both counts back at once', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    prefills[0]?.faults.stallNext(1);
    const stand = await gateway(prefills, decodes);
    const socket = rawPost(stand.url, path, chatBody(5));
    await until(() => inFlight(stand.router).join() === '1,1', 10_000);
    socket.destroy();
    expect(await until(() => total(stand.router) === 0, 10_000)).toBeLessThan(100);
    expect(stand.leaseEnds.map(({ end }) => end)).toEqual(['aborted', 'aborted']);
    expect(failures(stand.router)).toEqual([0, 0]);
  });
});

describe('workers that fail', () => {
  it('CB-25: a decode worker that breaks off in mid-stream ends the client’s stream with an error and is charged', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    decodes[0]?.faults.breakNext(1, 3);
    const stand = await gateway(prefills, decodes);
    const response = await post(stand.url, chatBody(50));
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow('terminated');
    expect(inFlight(stand.router)).toEqual([0, 0]);
    expect(stand.leaseEnds.at(-1)).toMatchObject({ worker: { kind: 'decode' }, outcome: { error: 'body' } });
    expect(failures(stand.router)).toEqual([0, 1]);
  });

  it('LM-35, WK-34, CB-33: a prefill refusal leads to another pair; the decode worker is not blamed', async () => {
    const { prefills, decodes } = await pairs(2, 1);
    const stand = await gateway(prefills, decodes);
    let most = 0;
    stand.router.on('leaseBegan', () => {
      most = Math.max(most, stand.router.leases().open);
    });
    prefills[0]?.faults.failNext(100, 503);
    for (let i = 0; i < 20 && failures(stand.router)[0] === 0; i++) {
      const response = await post(stand.url, chatBody(2, `question ${i}`));
      expect(response.status).toBe(200);
      await response.text();
    }
    expect(failures(stand.router)).toEqual([1, 0, 0]);
    expect(most).toBe(2);
    expect(stand.meter.read('smg_worker_retries_total', { worker_type: 'prefill', endpoint: path })).toBe(1);
    expect(total(stand.router)).toBe(0);
  });

  it('a decode worker that is not there leads to another one', async () => {
    const { prefills, decodes } = await pairs(1, 2);
    await decodes[0]?.close();
    const stand = await gateway(prefills, decodes);
    for (let i = 0; i < 3; i++) {
      const response = await post(stand.url, chatBody(2));
      expect([response.status, response.headers.get('x-smg-routed-worker-id')]).toEqual([200, decodes[1]?.url]);
      await response.text();
    }
    expect(failures(stand.router)[0]).toBe(0);
    expect(failures(stand.router)[1]).toBeGreaterThan(0);
    expect(total(stand.router)).toBe(0);
  });

  it('a refusal that no other worker would answer better is passed on', async () => {
    const { prefills, decodes } = await pairs(2, 2);
    for (const { faults } of prefills) faults.failNext(1, 422);
    const stand = await gateway(prefills, decodes);
    const response = await post(stand.url, chatBody(2));
    expect([response.status, await response.json()]).toMatchObject([422, { error: { message: 'injected' } }]);
    expect(stand.leaseEnds.map(({ outcome }) => outcome)).toEqual([{ status: 422 }, { aborted: true }]);
  });

  it('CB-30: when nobody answers the client is told so, and one request is one failure', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    await prefills[0]?.close();
    const stand = await gateway(prefills, decodes);
    const response = await post(stand.url, chatBody(2));
    expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([502, 'service_unavailable']);
    expect(stand.leaseEnds).toHaveLength(6);
    expect(failures(stand.router)).toEqual([1, 0]);
    expect(stand.meter.read('smg_worker_retries_exhausted_total', { worker_type: 'prefill', endpoint: path })).toBe(1);
  });
});

describe('requests that find no pair', () => {
  it('OV-20, LM-32: a vetoed leg is a shed with Retry-After', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    const options = { workerOverloadWaitingRequests: 2, loadMonitorIntervalMs: 2_500 };
    const stand = await gateway(prefills, decodes, options, { loadPollIntervalMs: 60_000 });
    await until(() => stand.router.workers().every(({ report }) => report !== undefined), 10_000);
    stand.router.reportLoad(decodes[0]?.url ?? '', { waitingRequests: 2 });
    const response = await post(stand.url, chatBody(1));
    expect(response.status).toBe(503);
    expect(response.headers.get('x-smg-error-code')).toBe('worker_overload_protection_shed');
    expect(response.headers.get('retry-after')).toBe('3');
    expect(prefills[0]?.totals.requests).toBe(0);
  });

  it('LM-32a: workers that do not pair are told apart from workers that are missing', async () => {
    const prefill = { url: 'http://127.0.0.1:1', labels: { kv_transport: 'nixl' } };
    const stand = await gateway([prefill], [{ url: 'http://127.0.0.1:2', labels: { kv_transport: 'mooncake' } }]);
    const response = await post(stand.url, chatBody(1));
    expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([503, 'no_compatible_pd_pair']);
    expect(response.headers.get('retry-after')).toBeNull();
  });
});

describe('places on a decode worker', () => {
  const one = (url: string) => ({ url, labels: { max_running_requests: '1' } });

  async function occupied(admissionWaitMs: number): Promise<Stand & { readonly first: Socket }> {
    const { prefills, decodes } = await pairs(1, 1);
    const stand = await gateway(prefills, [one(decodes[0]?.url ?? '')], {}, { admissionWaitMs });
    const first = rawPost(stand.url, path, chatBody(3_000));
    await firstData(first);
    return { ...stand, first };
  }

  it('LM-33: a request waits for a place, first come, first served', async () => {
    const { url, router, meter, first } = await occupied(5_000);
    const ended: string[] = [];
    const ask = async (name: string) => {
      const response = await post(url, chatBody(2));
      await response.text();
      ended.push(`${name} ${response.status}`);
    };
    const second = ask('second');
    await until(() => inFlight(router)[1] === 2, 10_000);
    const third = ask('third');
    await until(() => inFlight(router)[1] === 3, 10_000);
    await sleep(30);
    expect(ended).toEqual([]);
    first.destroy();
    await Promise.all([second, third]);
    expect(ended).toEqual(['second 200', 'third 200']);
    expect(meter.read('smg_pd_admission_waits_total')).toBe(2);
    expect(meter.read('smg_pd_admission_sheds_total')).toBe(0);
    await until(() => total(router) === 0, 10_000);
  });

  it.each([0, 50])(
    'LM-33, OB-41: after %i ms without a place it is shed, and no worker has seen it',
    async (waitMs) => {
      const { url, router, meter } = await occupied(waitMs);
      const response = await post(url, chatBody(2));
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, '10']);
      expect(response.headers.get('x-smg-error-code')).toBe('worker_overload_protection_shed');
      expect(inFlight(router)).toEqual([0, 1]);
      expect(failures(router)).toEqual([0, 0]);
      expect(meter.read('smg_pd_admission_waits_total')).toBe(waitMs === 0 ? 0 : 1);
      expect(meter.read('smg_worker_overload_shed_total', { stage: 'pd_admission' })).toBe(1);
    },
  );

  it('B29: a client that leaves while it waits leaves no trace', async () => {
    const { url, router, meter, leaseEnds, first } = await occupied(5_000);
    const waiting = rawPost(url, path, chatBody(2));
    await until(() => inFlight(router)[1] === 2, 10_000);
    waiting.destroy();
    expect(await until(() => inFlight(router)[1] === 1, 10_000)).toBeLessThan(100);
    expect(leaseEnds.slice(-2).map(({ outcome }) => outcome)).toEqual([{ aborted: true }, { aborted: true }]);
    first.destroy();
    await until(() => total(router) === 0, 10_000);
    // The place was not taken along.
    expect((await (await post(url, chatBody(1))).text()).endsWith('[DONE]\n\n')).toBe(true);
    expect(meter.read('smg_pd_admission_sheds_total')).toBe(0);
  });

  it('LM-33: a request wider than the window is shed at once, whoever waits', async () => {
    const { url, router, meter } = await occupied(5_000);
    const waiting = rawPost(url, path, chatBody(2));
    await until(() => inFlight(router)[1] === 2, 10_000);
    const response = await post(url, JSON.stringify({ ...JSON.parse(chatBody(1)), n: 2 }));
    expect(response.status).toBe(503);
    expect(meter.read('smg_pd_admission_waits_total')).toBe(1);
    expect(inFlight(router)[1]).toBe(2);
    waiting.destroy();
  });
});

describe('sticky keys', () => {
  it('ST-20, LM-6: a key keeps its pair, on each leg', async () => {
    const { prefills, decodes } = await pairs(3, 3);
    const stand = await gateway(prefills, decodes, { routingKeyOverride: true });
    const workers = new Set<string | null>();
    for (const content of ['one', 'two', 'three', 'four']) {
      const response = await post(stand.url, chatBody(1, content), { 'x-smg-routing-key': 'user-42' });
      workers.add(response.headers.get('x-smg-routed-worker-id'));
      await response.text();
    }
    expect(workers.size).toBe(1);
    expect(prefills.map(({ totals }) => totals.requests).sort()).toEqual([0, 0, 4]);
    expect(stand.decisions).toEqual([
      'prefill vacant',
      'decode vacant',
      ...Array(3).fill(['prefill occupied_hit', 'decode occupied_hit']).flat(),
    ]);
  });
});

describe('KV events', () => {
  const long = (about: string) => `${about} `.repeat(40);
  const counts = ({ router }: Stand) => router.kvEvents.counts;
  const ask = async (stand: Stand, content: string) => (await post(stand.url, chatBody(1, content))).text();

  it('CA-80, CA-83: what an engine tells leads the next request with the same beginning to it', async () => {
    const { prefills, decodes } = await pairs(3, 1);
    const stand = await gateway(prefills, decodes);
    await ask(stand, long('one prompt'));
    await until(() => counts(stand).appliedBatches === 1, 10_000);
    await ask(stand, `${long('one prompt')} and a question`);
    await ask(stand, long('another prompt'));
    const prefillDecisions = stand.decisions.filter((decision) => decision.startsWith('prefill'));
    expect(prefillDecisions.slice(1)).toEqual(['prefill event_hit', 'prefill event_miss']);
    const cached = prefills.reduce((sum, { totals }) => sum + totals.cachedTokens, 0);
    expect(cached).toBeGreaterThanOrEqual(Math.floor(long('one prompt').length / 4 / blockTokens) * blockTokens - 1);
  });

  it('CA-97: a gateway that starts late learns what engines hold, and follows workers that come later', async () => {
    const { prefills, decodes } = await pairs(2, 1);
    const [one, two] = prefills as [EngineServer, EngineServer];
    const before = await gateway([one], decodes);
    await ask(before, long('known before'));
    const stand = await gateway([two], decodes);
    stand.router.addWorker({ url: one.url, kind: 'prefill', bootstrapPort: one.bootstrapPort, models: ['demo'] });
    await until(() => counts(stand).appliedBatches === 1, 10_000);
    await ask(stand, `${long('known before')} go on`);
    expect(stand.decisions[0]).toBe('prefill event_hit');
    expect(one.totals.requests).toBe(2);
  });

  it('CA-92, CA-93: a gap is replayed from where it began', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    const stand = await gateway(prefills, decodes);
    const gaps: RouterEvents['kvEventGap'][] = [];
    stand.router.on('kvEventGap', (gap) => gaps.push(gap));
    await ask(stand, long('seen'));
    await until(() => counts(stand).appliedBatches === 1, 10_000);
    prefills[0]?.faults.loseKvEvents(2);
    await ask(stand, long('lost'));
    await ask(stand, long('lost too'));
    await ask(stand, long('seen again'));
    await until(() => counts(stand).appliedBatches === 4, 10_000);
    expect(gaps).toEqual([{ worker: prefills[0]?.url, expected: 1, received: 3 }]);
    await ask(stand, `${long('lost')} go on`);
    expect(stand.decisions.at(-2)).toBe('prefill event_hit');
  });

  it('CA-93: what cannot be replayed is given up, and live events go on', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    const stand = await gateway(prefills, decodes);
    await ask(stand, long('seen'));
    await until(() => counts(stand).appliedBatches === 1, 10_000);
    prefills[0]?.faults.loseKvEvents(1);
    await ask(stand, long('lost'));
    prefills[0]?.faults.forgetKvEvents();
    await ask(stand, long('seen again'));
    await until(() => counts(stand).gaps === 1, 10_000);
    // The batch that showed the gap can be replayed no more than the lost one: the next one is the new beginning.
    await until(() => prefillHolds(stand, long('seen')) === false, 10_000);
    await sleep(50);
    await ask(stand, long('fresh'));
    await until(() => prefillHolds(stand, long('fresh')), 10_000);
    expect(prefillHolds(stand, long('seen'))).toBe(false);
  });

  it('CA-93: a stream that breaks off is taken up where it ended', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    const stand = await gateway(prefills, decodes);
    await ask(stand, long('before'));
    await until(() => counts(stand).appliedBatches === 1, 10_000);
    prefills[0]?.faults.breakKvEvents();
    await ask(stand, long('meanwhile'));
    await until(() => counts(stand).appliedBatches === 2, 10_000);
    expect(counts(stand)).toMatchObject({ gaps: 0, staleBatches: 0, rejectedBatches: 0 });
    expect(prefillHolds(stand, long('before'))).toBe(true);
  });

  it('CA-92, B87: a restart and a line that cannot be read drop what was known, and nothing more', async () => {
    const stored = (id: number, token: number) => ['BlockStored', [id], null, Array(4).fill(token), 4];
    let stream: ServerResponse | undefined;
    const { worker, paths } = await tellingWorker((_path, res) => {
      res.writeHead(200).flushHeaders();
      stream = res;
    });
    const stand = await gateway([{ url: worker }], [{ url: 'http://127.0.0.1:1' }]);
    const holds = (token: number) => holdsTokens(stand, Array(5).fill(token));
    const write = (line: string) => stream?.write(`${line}\n`);
    await until(() => stream !== undefined, 10_000);
    write(JSON.stringify([7, [0, [stored(1, 1)]]]));
    await until(() => holds(1), 10_000);
    write(JSON.stringify([0, [0, [stored(1, 2)]]]));
    await until(() => holds(2), 10_000);
    expect([holds(1), counts(stand).restarts]).toEqual([false, 1]);
    write('{ "no": batch');
    write(JSON.stringify([5, [0, [['Unheard-of'], stored(1, 3)]]]));
    await until(() => holds(3), 10_000);
    expect([holds(2), counts(stand).rejectedBatches, counts(stand).gaps]).toEqual([false, 1, 0]);
    expect(paths).toEqual(['/kv_events?from=0']);
  });

  it('CA-93: an engine that tells no events is asked once; one that fails is asked again', async () => {
    const silent = await tellingWorker((_path, res) => res.writeHead(501).end());
    const failing = await tellingWorker((_path, res) => res.writeHead(503).end());
    await gateway([{ url: silent.worker }, { url: failing.worker }], []);
    await until(() => failing.paths.length === 3, 2_000);
    expect(failing.paths).toEqual(Array(3).fill('/kv_events?from=0'));
    expect(silent.paths).toHaveLength(1);
  });

  it('CA-95: a removed worker is followed no longer', async () => {
    let open = 0;
    const { worker } = await tellingWorker((_path, res) => {
      res.writeHead(200).flushHeaders();
      open++;
      res.once('close', () => open--);
    });
    const stand = await gateway([{ url: worker }], []);
    await until(() => open === 1, 10_000);
    stand.router.removeWorker(worker);
    await until(() => open === 0, 10_000);
  });

  /** A prefill worker of which only the event stream exists. */
  async function tellingWorker(answer: (path: string, res: ServerResponse) => void) {
    const paths: string[] = [];
    const worker = await scriptedWorker(
      (_req, res) => res.writeHead(500).end(),
      (req: IncomingMessage, res) => {
        if (!req.url?.startsWith('/kv_events')) return res.writeHead(404).end();
        paths.push(req.url);
        return answer(req.url, res);
      },
    );
    return { worker, paths };
  }

  function prefillHolds(stand: Stand, content: string): boolean {
    return holdsTokens(stand, chatFormat.read(JSON.parse(chatBody(1, content)))?.prompt as number[]);
  }

  function holdsTokens({ router }: Stand, tokens: readonly number[]): boolean {
    const { policy } = router.explain({ model: 'demo', leg: 'prefill', tokens });
    return policy.match?.index === 'kv_events' && policy.match.matchedUnits > 0;
  }
});

describe('metrics', () => {
  it('LB-51, OB-10, OB-11: the router’s metrics come out of an OpenTelemetry meter', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    const stand = await gateway(prefills, decodes);
    for (let i = 0; i < 3; i++) await (await post(stand.url, chatBody(1))).text();
    const labels = { connection_mode: 'http', model: 'demo' };
    const selections = (policy: string, worker_type: string) =>
      stand.meter.read('smg_worker_selection_total', { ...labels, worker_type, policy });
    expect([selections('cache_aware', 'prefill'), selections('round_robin', 'decode')]).toEqual([3, 3]);
    expect(stand.meter.read('smg_worker_health', { worker: decodes[0]?.url ?? '' })).toBe(1);
    expect(stand.meter.read('smg_worker_requests_active', { worker: decodes[0]?.url ?? '' })).toBe(0);
  });

  it('LB-51: every metric of the table has one instrument, histograms with their buckets', () => {
    const made: unknown[] = [];
    const samples: unknown[] = [];
    const adapter = otelAdapter({
      createCounter: (name, options) => {
        made.push([name, 'counter', options?.description]);
        return { add: (value, attributes) => samples.push([name, value, attributes]) };
      },
      createGauge: (name, options) => {
        made.push([name, 'gauge', options?.description]);
        return { record: (value, attributes) => samples.push([name, value, attributes]) };
      },
      createHistogram: (name, options) => {
        made.push([name, 'histogram', options?.description, options?.advice?.explicitBucketBoundaries]);
        return { record: (value, attributes) => samples.push([name, value, attributes]) };
      },
    });
    expect(made).toEqual(
      metricTable.map(({ name, type, help, buckets }) =>
        type === 'histogram' ? [name, type, help, buckets] : [name, type, help],
      ),
    );
    hostMetrics(adapter).healthCheck('regular', true);
    adapter.gauge('smg_worker_health', { worker: 'w1' }, -1);
    adapter.histogram('smg_cache_aware_match_ratio', {}, 0.5);
    expect(samples).toEqual([
      ['smg_worker_health_checks_total', 1, { worker_type: 'regular', result: 'success' }],
      ['smg_worker_health', -1, { worker: 'w1' }],
      ['smg_cache_aware_match_ratio', 0.5, {}],
    ]);
  });
});
