/**
 * `npm run example:custom`: two simulated prefill and two decode engines and the gateway on free loopback ports, a few
 * requests through the official OpenAI client, and one line for each thing tried. The exit code is 0 when every line is
 * right. With `-- --serve` everything stays up until Ctrl-C.
 */
import { createRouter, type Router } from 'kvroute';
import OpenAI from 'openai';
import { type Checks, startChecks } from '../shared/checks.js';
import { chatFormat } from '../shared/engine-simulator/formats.js';
import { type EngineServer, startEngine } from '../shared/engine-simulator/server.js';
import { closeServer, listen } from '../shared/listen.js';
import { interrupted, until } from '../shared/until.js';
import { createGateway } from './gateway.js';
import { type MemoryMeter, memoryMeter } from './memory-meter.js';
import { otelAdapter } from './otel-metrics.js';

const loadPollIntervalMs = 1_000;

const prefills = await Promise.all([startEngine({}, 'prefill'), startEngine({}, 'prefill')]);
const decodes = await Promise.all([startEngine({}, 'decode'), startEngine({}, 'decode')]);
const router = await createRouter({
  mode: 'pd',
  prefillPolicy: 'cache_aware',
  decodePolicy: { name: 'power_of_two', loadMetric: 'requests' },
  // Requests with a key stay on their pair; the others go where their prefix is.
  routingKeyOverride: true,
  loadMonitorIntervalMs: loadPollIntervalMs,
});
const common = { models: ['demo'], runtime: 'sglang' } as const;
for (const { url, bootstrapPort } of prefills) router.addWorker({ ...common, url, kind: 'prefill', bootstrapPort });
// Two requests at a time, so that a few fill the window.
const labels = { max_running_requests: '2' };
for (const { url } of decodes) router.addWorker({ ...common, url, kind: 'decode', labels });

// A host with an OpenTelemetry SDK gives `metrics.getMeter('kvroute')` instead.
const meter = memoryMeter();
const gateway = createGateway(router, {
  tokenizeChat: (messages) => chatFormat.read({ messages })?.prompt as number[] | undefined,
  metrics: otelAdapter(meter),
  loadPollIntervalMs,
  admissionWaitMs: 200,
});
try {
  const url = await listen(gateway.server);
  const urls = (engines: readonly EngineServer[]) => engines.map((engine) => engine.url).join(' ');
  console.log(`Gateway on ${url}, prefill on ${urls(prefills)}, decode on ${urls(decodes)}\n`);
  if (process.argv.includes('--serve')) {
    console.log('Serving /v1/chat/completions, /v1/completions and /generate until Ctrl-C.');
    await interrupted();
  } else {
    process.exitCode = await tour(url, router, meter);
  }
} finally {
  await closeServer(gateway.server);
  await gateway.close();
  await Promise.all([...prefills, ...decodes].map((engine) => engine.close()));
}

interface Tour {
  readonly router: Router;
  readonly checks: Checks;
  /** Asks for a short answer and returns how it was routed. */
  ask(content: string, key?: string): Promise<Routed>;
  /** Asks for a long answer and leaves it when told to. */
  occupy(): Promise<() => void>;
}

interface Routed {
  readonly prefill: string;
  readonly decode: string;
  readonly prefillBranch: string;
}

async function tour(url: string, router: Router, meter: MemoryMeter): Promise<number> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'unused', maxRetries: 0 });
  const create = (content: string, maxTokens: number, key?: string) =>
    client.chat.completions.create(
      { model: 'demo', messages: [{ role: 'user', content }], max_tokens: maxTokens, stream: true },
      { headers: key === undefined ? {} : { 'x-smg-routing-key': key } },
    );
  let last: Record<string, { worker: string; branch: string }> = {};
  router.on('selected', ({ worker, record }) => {
    last[record.leg] = { worker: worker.url ?? '', branch: record.branch ?? '' };
  });
  const checks = startChecks();
  const all: Tour = {
    router,
    checks,
    async ask(content, key) {
      last = {};
      for await (const _ of await create(content, 4, key));
      const { prefill, decode } = last;
      return { prefill: prefill?.worker ?? '', decode: decode?.worker ?? '', prefillBranch: prefill?.branch ?? '' };
    },
    async occupy() {
      const stream = await create('Tell me a long story.', 1_000);
      return () => stream.controller.abort();
    },
  };
  await followPrefix(all);
  const pair = await keepKey(all);
  await closeGap(all, pair);
  await failOver(all, pair);
  await fillWindows(all);
  const pdSheds = meter.read('smg_worker_overload_shed_total', { stage: 'pd_admission' });
  const waits = meter.read('smg_pd_admission_waits_total');
  checks.check(pdSheds === 1 && waits === 1, `OpenTelemetry: ${waits} wait, ${pdSheds} shed for a decode place`);
  const inFlight = router.workers().map((worker) => worker.inFlight);
  checks.check(
    inFlight.every((count) => count === 0),
    `in flight at the end: ${inFlight.join(' ')}`,
  );
  return checks.exitCode;
}

/** Applied batches tell what an engine holds; a prompt with the same beginning goes there. */
async function followPrefix({ router, checks, ask }: Tour): Promise<void> {
  const manual = 'Chapter one of a manual that many will ask about. '.repeat(20);
  const first = await ask(`${manual}How does it begin?`);
  await until(() => router.kvEvents.counts.appliedBatches > 0, 1_000);
  const second = await ask(`${manual}How does it end?`);
  checks.check(
    second.prefillBranch === 'event_hit' && second.prefill === first.prefill,
    `the engine told that it holds the prompt: ${second.prefillBranch} on ${second.prefill}`,
  );
}

/** A key keeps its pair, whatever it asks. */
async function keepKey({ checks, ask }: Tour): Promise<Routed> {
  const first = await ask('What is my name?', 'user-42');
  const second = await ask('Something else altogether: why is the sky blue?', 'user-42');
  checks.check(
    second.prefillBranch === 'occupied_hit' && second.prefill === first.prefill && second.decode === first.decode,
    `a key stayed on its pair: ${second.prefill} ${second.decode}`,
  );
  return second;
}

/** An event is lost on its way; the next one shows it, and a replay brings it. */
async function closeGap({ router, checks, ask }: Tour, { prefill }: Routed): Promise<void> {
  const { counts } = router.kvEvents;
  const before = counts.appliedBatches;
  const lost = 'Words that only a lost event told about. '.repeat(20);
  prefills.find(({ url }) => url === prefill)?.faults.loseKvEvents(1);
  await ask(lost, 'user-42');
  await ask('Words that come after them. '.repeat(20), 'user-42');
  await until(() => counts.gaps === 1 && counts.appliedBatches >= before + 2, 1_000);
  const again = await ask(`${lost}And more.`);
  checks.check(
    again.prefillBranch === 'event_hit' && again.prefill === prefill,
    `a KV event was lost: gap seen, replayed, ${again.prefillBranch} on ${again.prefill}`,
  );
}

/** The prefill engine of the pair refuses: another pair serves, and the decode engine is not blamed. */
async function failOver({ router, checks, ask }: Tour, { prefill }: Routed): Promise<void> {
  prefills.find(({ url }) => url === prefill)?.faults.failNext(1, 503);
  const routed = await ask('Are you there?', 'user-42');
  const failures = router.workers().map((worker) => worker.consecutiveFailures);
  checks.check(
    routed.prefill !== prefill && failures.reduce((sum, count) => sum + count, 0) === 1,
    `a prefill engine answered 503: ${routed.prefill} served instead, failures by worker ${failures.join(' ')}`,
  );
}

/** Four long answers fill both decode windows; the fifth waits for a place and is shed. */
async function fillWindows({ router, checks, ask, occupy }: Tour): Promise<void> {
  const leave = await Promise.all(Array.from({ length: 4 }, occupy));
  const error = await ask('Is there room?').catch((thrown) => thrown);
  const isShed = error instanceof OpenAI.APIError && error.code === 'worker_overload_protection_shed';
  checks.check(
    isShed && error.status === 503 && error.headers?.get('retry-after') === '1',
    `both decode windows were full: ${isShed ? `${error.status} ${error.code}` : error}`,
  );
  for (const go of leave) go();
  await until(() => router.workers().every((worker) => worker.inFlight === 0), 1_000);
}
