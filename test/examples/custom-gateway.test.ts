/**
 * The gateway of examples/custom-gateway over real sockets: prefill/decode pairs whose legs are both counted, requests that
 * find no pair, sticky keys, metrics.
 */
import type { RequestListener } from 'node:http';
import { hostMetrics, metricTable } from 'kvroute/metrics';
import { afterEach, describe, expect, it } from 'vitest';
import { otelAdapter } from '../../examples/custom-gateway/otel-metrics.js';
import { until } from '../../examples/shared/until.js';
import { gateway, pairs, total } from './custom-stand.js';
import {
  chatBody,
  firstData,
  floodingWorker,
  inFlight,
  path,
  post,
  rawPost,
  scriptedWorker,
  undoAll,
} from './gateway-helpers.js';

afterEach(undoAll);

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
    await decode.waits();
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
