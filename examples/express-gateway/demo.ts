/**
 * `npm run demo`: three simulated engines in processes of their own, the Express gateway, and dozens of streamed
 * conversations through the official OpenAI client; the same traffic under four policies, with fresh engines each time,
 * after a short warm-up that is not counted.
 * Everything runs on loopback and on free ports. The exit code is 0 only when every in-flight count came back to zero
 * and every request that was not aborted succeeded.
 */
import { createServer } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createRouter, type PolicyName } from 'kvroute';
import type { EngineOptions } from '../shared/engine-simulator/engine.js';
import { type EngineProcess, spawnEngine } from '../shared/engine-simulator/spawn-engine.js';
import { tokenize } from '../shared/engine-simulator/tokenizer.js';
import { closeServer, listen } from '../shared/listen.js';
import { formatTable, percentile } from '../shared/statistics.js';
import { type Measurements, newMeasurements, runTraffic } from './driver.js';
import { createGateway } from './gateway.js';
import { type Conversation, makeTraffic } from './traffic.js';

const policies: readonly PolicyName[] = ['cache_aware', 'least_load', 'power_of_two', 'round_robin'];
const engineCount = 3;
const engine = {
  model: 'demo',
  kvCapacityTokens: 16_000,
  maxRunningRequests: 12,
  prefillTokensPerSecond: 5_000,
  decodeStepMs: 16,
} satisfies EngineOptions;
const loadPollIntervalMs = 250;

/** How late this process's own timers were: on a busy machine that is part of every time measured. */
const lateness = monitorEventLoopDelay({ resolution: 10 });

interface Outcome {
  readonly policy: PolicyName;
  readonly seconds: number;
  readonly measured: Measurements;
  /** Read from each engine's /metrics when the traffic has ended. */
  readonly engines: readonly EngineCounters[];
  /** The router's count of each worker when the traffic has ended. */
  readonly inFlight: readonly number[];
}

interface EngineCounters {
  readonly requests: number;
  readonly aborted: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

const interrupted = new AbortController();
process.once('SIGINT', () => {
  interrupted.abort();
  process.once('SIGINT', () => process.exit(130));
});

try {
  process.exitCode = await main(interrupted.signal);
} catch (error) {
  if (!interrupted.signal.aborted) throw error;
  console.log('\nstopped; engines, gateway and clients are gone');
  process.exitCode = 130;
}

async function main(signal: AbortSignal): Promise<number> {
  const traffic = makeTraffic({ seed: 2026, products: 9, conversations: 36, rampMs: 1_500 });
  console.log(describeSetup(traffic));
  const engines: EngineProcess[] = [];
  try {
    await Promise.all(Array.from({ length: engineCount }, async () => engines.push(await spawnEngine(engine))));
    const warmUp = makeTraffic({ seed: 1, products: 3, conversations: 4, rampMs: 0 });
    await runPolicy('round_robin', warmUp, engines, 'warm-up', signal);
    const outcomes: Outcome[] = [];
    lateness.enable();
    for (const policy of policies) outcomes.push(await runPolicy(policy, traffic, engines, policy, signal));
    lateness.disable();
    console.log(`\n${table(outcomes)}\n\n${reading(outcomes)}${warning()}`);
    const failures = outcomes.flatMap((outcome) => outcome.measured.failures);
    const clean = failures.length === 0 && outcomes.every(({ inFlight }) => sum(inFlight) === 0);
    if (!clean) console.log(['', 'FAILED', ...failures].join('\n'));
    return clean ? 0 : 1;
  } finally {
    await Promise.all(engines.map((process) => process.stop()));
  }
}

/** One pass of the traffic over fresh engines, a fresh router and a fresh gateway. */
async function runPolicy(
  policy: PolicyName,
  traffic: readonly Conversation[],
  engines: readonly EngineProcess[],
  title: string,
  signal: AbortSignal,
): Promise<Outcome> {
  await Promise.all(engines.map((process) => process.renew()));
  signal.throwIfAborted();
  const router = await createRouter({ policy, seed: 1, loadMonitorIntervalMs: loadPollIntervalMs });
  for (const { url } of engines) router.addWorker({ url, models: ['demo'], runtime: 'sglang' });
  const inFlight = () => router.workers().map((worker) => worker.inFlight);
  const gateway = createGateway(router, { loadPollIntervalMs });
  const server = createServer(gateway.app);
  const measured = newMeasurements();
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1_000;
  const progress = showProgress(() => {
    const done = String(measured.succeeded + measured.aborted).padStart(3);
    const counts = inFlight().map((count) => String(count).padStart(2));
    return `${title.padEnd(12)} ${seconds().toFixed(0).padStart(2)} s  ${done} of ${countTurns(traffic)} requests, in flight ${counts.join(' ')}`;
  });
  try {
    await runTraffic(await listen(server), traffic, measured, signal);
    const counters = await Promise.all(engines.map(({ url }) => readCounters(url)));
    return { policy, seconds: seconds(), measured, engines: counters, inFlight: inFlight() };
  } finally {
    progress.stop();
    await closeServer(server);
    await gateway.close();
  }
}

async function readCounters(url: string): Promise<EngineCounters> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const read = (name: string) => Number(new RegExp(`^sglang_${name}\\{.*\\} (.*)$`, 'm').exec(text)?.[1]);
  return {
    requests: read('num_requests_total'),
    aborted: read('num_aborted_requests_total'),
    promptTokens: read('prompt_tokens_total'),
    cachedTokens: read('cached_tokens_total'),
  };
}

/** One line that is rewritten on a terminal, a line every second elsewhere. */
function showProgress(line: () => string): { stop(): void } {
  const isTerminal = process.stdout.isTTY === true;
  const print = () => process.stdout.write(isTerminal ? `\r${line()}` : `${line()}\n`);
  const timer = setInterval(print, isTerminal ? 100 : 1_000);
  return {
    stop() {
      clearInterval(timer);
      print();
      if (isTerminal) process.stdout.write('\n');
    },
  };
}

function describeSetup(traffic: readonly Conversation[]): string {
  const systems = new Set(traffic.map((conversation) => conversation.system));
  const tokens = (texts: Iterable<string>) => sum([...texts].map((text) => tokenize(text).length));
  const spoken = sum(traffic.flatMap(({ turns }) => turns.map((turn) => tokenize(turn.user).length + turn.maxTokens)));
  return [
    `${engineCount} engines: ${engine.kvCapacityTokens} tokens of KV memory each, prefill ${engine.prefillTokensPerSecond} tokens/s, ` +
      `${engine.maxRunningRequests} running requests, one token every ${engine.decodeStepMs} ms.`,
    `${traffic.length} conversations, ${countTurns(traffic)} requests: ${systems.size} system prompts of ${tokens(systems)} tokens together, ` +
      `${spoken} tokens of questions and answers.`,
    '',
  ].join('\n');
}

function table(outcomes: readonly Outcome[]): string {
  const header = [
    'policy',
    'share of workers',
    'prefix hits',
    'TTFT p50',
    'TTFT p95',
    'ok',
    'aborted',
    'failed',
    'in flight after',
    'time',
  ];
  return formatTable(
    header,
    outcomes.map((outcome) => {
      const { measured, engines, inFlight } = outcome;
      const requests = sum(engines.map((counters) => counters.requests));
      return [
        outcome.policy,
        engines.map((counters) => percent(counters.requests / requests).padStart(4)).join(' '),
        percent(hitRate(outcome)),
        milliseconds(ttft(outcome, 0.5)),
        milliseconds(ttft(outcome, 0.95)),
        String(measured.succeeded),
        String(measured.aborted),
        String(measured.failures.length),
        inFlight.join(' '),
        `${outcome.seconds.toFixed(1)} s`,
      ];
    }),
  );
}

/** What the table says, in words that hold for whatever was measured. */
function reading(outcomes: readonly Outcome[]): string {
  const [aware, ...others] = outcomes as [Outcome, ...Outcome[]];
  const range = (value: (outcome: Outcome) => number, format: (value: number) => string) => {
    const values = others.map(value).sort((a, b) => a - b);
    return [...new Set([format(values[0] as number), format(values.at(-1) as number)])].join(' to ');
  };
  const best = (value: (outcome: Outcome) => number) =>
    others.every((other) => value(aware) > value(other)) ? 'more than' : 'not always more than';
  const clients = sum(outcomes.map(({ measured }) => measured.aborted));
  const engines = sum(outcomes.flatMap((outcome) => outcome.engines.map((counters) => counters.aborted)));
  return [
    `Reading: ${aware.policy} sends a conversation to the engine that has its prompt, so ${percent(hitRate(aware))} of all prompt`,
    `tokens came from an engine's cache, ${best(hitRate)} the ${range(hitRate, percent)} of the policies that look only at load or`,
    'at nothing: they make every engine hold every system prompt, which does not fit, and compute the rest again.',
    `Uncached tokens are what a user waits for: half of the answers began within ${milliseconds(ttft(aware, 0.5))} (others ${range((o) => ttft(o, 0.5), milliseconds)}),`,
    `95 % within ${milliseconds(ttft(aware, 0.95))} (others ${range((o) => ttft(o, 0.95), milliseconds)}). The price is a less even share of the workers.`,
    `Of ${clients} requests that clients broke off, the engines saw ${engines} end early; no count was left in flight${
      outcomes.every(({ inFlight }) => sum(inFlight) === 0) ? '' : ' - EXCEPT those above'
    }.`,
  ].join('\n');
}

function warning(): string {
  const lateMs = lateness.percentile(95) / 1e6 - 10;
  if (lateMs < 20) return '';
  return `\nThis machine was busy: timers of the demo came up to ${milliseconds(lateMs)} late (95 %), and the times above with them.`;
}

function hitRate({ engines }: Outcome): number {
  return sum(engines.map((counters) => counters.cachedTokens)) / sum(engines.map((counters) => counters.promptTokens));
}

function ttft({ measured }: Outcome, share: number): number {
  return percentile(measured.timeToFirstTokenMs, share);
}

function countTurns(traffic: readonly Conversation[]): number {
  return sum(traffic.map((conversation) => conversation.turns.length));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function percent(ratio: number): string {
  return `${Math.round(ratio * 100)} %`;
}

function milliseconds(value: number): string {
  return `${Math.round(value)} ms`;
}
