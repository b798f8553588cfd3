/**
 * `npm run example:nest`: three simulated engines and the Nest gateway on free loopback ports, a few requests through the
 * official OpenAI client, and one line for each thing tried. The exit code is 0 when every line is right.
 * With `-- --serve` everything stays up until Ctrl-C.
 */
import { Router } from 'kvroute';
import OpenAI from 'openai';
import { type Checks, startChecks } from '../shared/checks.js';
import { type EngineServer, startEngine } from '../shared/engine-simulator/server.js';
import { interrupted, until } from '../shared/until.js';
import { createGateway } from './gateway.js';

const opening = { role: 'system' as const, content: 'You answer in a few plain words. '.repeat(30) };

const engines = await Promise.all(Array.from({ length: 3 }, () => startEngine()));
const app = await createGateway({
  useFactory: () => ({
    router: { policy: 'cache_aware', workerOverloadWaitingRequests: 64 },
    workers: engines.map(({ url }) => ({ url, models: ['demo'], runtime: 'sglang' })),
    loadPollIntervalMs: 1_000,
  }),
});
try {
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  console.log(`Nest gateway on ${url}, engines on ${engines.map((engine) => engine.url).join(' ')}\n`);
  if (process.argv.includes('--serve')) {
    console.log('Serving /v1/chat/completions, /v1/completions, /generate, /health, /metrics until Ctrl-C.');
    await interrupted();
  } else {
    process.exitCode = await tour(url, app.get(Router, { strict: false }));
  }
} finally {
  await app.close();
  await Promise.all(engines.map((engine) => engine.close()));
}

async function tour(url: string, router: Router): Promise<number> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'unused', maxRetries: 0 });
  const checks = startChecks();
  const holder = await converse(client, checks);
  await leave(client, router, checks);
  await failOver(client, holder, checks);
  await shed(client, router, checks);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const selections = /^smg_worker_selection_total\{.*policy="cache_aware"\} (\d+)$/m.exec(metrics)?.[1];
  checks.check(selections === '6', `/metrics counts ${selections} selections`);
  const inFlight = router.workers().map((worker) => worker.inFlight);
  checks.check(
    inFlight.every((count) => count === 0),
    `in flight at the end: ${inFlight.join(' ')}`,
  );
  return checks.exitCode;
}

/** Three turns, streamed: they belong where their prefix is. Returns that engine. */
async function converse(client: OpenAI, checks: Checks): Promise<EngineServer> {
  const messages: OpenAI.ChatCompletionMessageParam[] = [opening];
  const workers: (string | null)[] = [];
  const cached: string[] = [];
  for (const content of ['What is a KV cache?', 'Who fills it?', 'And who empties it?']) {
    messages.push({ role: 'user', content });
    const { data: stream, response } = await client.chat.completions
      .create({ model: 'demo', messages, max_tokens: 12, stream: true, stream_options: { include_usage: true } })
      .withResponse();
    let answer = '';
    for await (const { choices, usage } of stream) {
      answer += choices[0]?.delta.content ?? '';
      if (usage) cached.push(`${usage.prompt_tokens_details?.cached_tokens} of ${usage.prompt_tokens}`);
    }
    messages.push({ role: 'assistant', content: answer });
    workers.push(response.headers.get('x-smg-routed-worker-id'));
  }
  const engine = engines.find(({ url }) => url === workers[0]);
  if (engine === undefined) throw new Error(`an answer came from ${workers[0]}`);
  checks.check(
    new Set(workers).size === 1,
    `a conversation stayed on ${engine.url}; prompt tokens from its cache: ${cached.join(', ')}`,
  );
  return engine;
}

/** A client that stops reading in mid-answer. */
async function leave(client: OpenAI, router: Router, checks: Checks): Promise<void> {
  const stream = await client.chat.completions.create({
    model: 'demo',
    messages: [{ role: 'user', content: 'Tell me a long story.' }],
    max_tokens: 1_000,
    stream: true,
  });
  let chunks = 0;
  for await (const _ of stream) if (++chunks === 3) break;
  const inFlight = () => router.workers().reduce((sum, worker) => sum + worker.inFlight, 0);
  const ms = await until(() => inFlight() === 0, 1_000);
  await until(() => engines.some(({ totals }) => totals.cancelled === 1), 1_000);
  checks.check(true, `a client left after 3 tokens: nothing in flight ${Math.round(ms)} ms later, engine stopped`);
}

/** The engine that holds the prefix refuses: another one answers. */
async function failOver(client: OpenAI, holder: EngineServer, checks: Checks): Promise<void> {
  holder.faults.failNext(1, 503);
  const { response } = await client.chat.completions
    .create({ model: 'demo', messages: [opening, { role: 'user', content: 'Are you there?' }], max_tokens: 2 })
    .withResponse();
  const worker = response.headers.get('x-smg-routed-worker-id');
  checks.check(response.status === 200 && worker !== holder.url, `it answered 503: ${worker} served instead`);
}

/** Every engine reports a queue over the threshold. */
async function shed(client: OpenAI, router: Router, checks: Checks): Promise<void> {
  router.reportLoads(engines.map(({ url }) => [url, { waitingRequests: 64 }] as const));
  const error = await client.chat.completions.create({ model: 'demo', messages: [opening] }).catch((thrown) => thrown);
  const isShed = error instanceof OpenAI.APIError && error.code === 'worker_overload_protection_shed';
  const retryAfter = isShed ? error.headers?.get('retry-after') : undefined;
  checks.check(
    isShed && error.status === 503 && retryAfter === '1',
    `every engine overloaded: ${isShed ? `${error.status} ${error.code}, Retry-After ${retryAfter}` : error}`,
  );
}
