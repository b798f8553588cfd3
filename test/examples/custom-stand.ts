/** The gateway of examples/custom-gateway in front of pairs of the test's choice. */
import { createRouter, type Router, type RouterEvents, type RouterOptions } from 'kvroute';
import { createGateway, type GatewayOptions } from '../../examples/custom-gateway/gateway.js';
import { type MemoryMeter, memoryMeter } from '../../examples/custom-gateway/memory-meter.js';
import { otelAdapter } from '../../examples/custom-gateway/otel-metrics.js';
import type { EngineOptions } from '../../examples/shared/engine-simulator/engine.js';
import { chatFormat } from '../../examples/shared/engine-simulator/formats.js';
import type { EngineServer } from '../../examples/shared/engine-simulator/server.js';
import { closeServer, listen } from '../../examples/shared/listen.js';
import { inFlight, onTestEnd, recordLeaseEnds, startEngines } from './gateway-helpers.js';

/** Block size of the simulated engines; prompts below are longer. */
export const blockTokens = 16;

interface Leg {
  readonly url: string;
  readonly bootstrapPort?: number | undefined;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface Stand {
  readonly url: string;
  readonly router: Router;
  readonly meter: MemoryMeter;
  readonly leaseEnds: RouterEvents['leaseEnded'][];
  /** What was selected, `leg branch`, in order. */
  readonly decisions: string[];
}

export async function gateway(
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

export async function pairs(
  prefillCount: number,
  decodeCount: number,
  engineOptions: EngineOptions = {},
): Promise<{ readonly prefills: EngineServer[]; readonly decodes: EngineServer[] }> {
  const prefills = await startEngines(prefillCount, engineOptions, 'prefill');
  return { prefills, decodes: await startEngines(decodeCount, engineOptions, 'decode') };
}

export const total = (router: Router) => inFlight(router).reduce((sum, count) => sum + count, 0);

export const failures = (router: Router) => router.workers().map((worker) => worker.consecutiveFailures);
