/**
 * Asks the workers for their load and reports it. The rules are kvroute's: which route to ask, what an answer means,
 * what an old report is worth. All polls of a tick run at once and are reported at once; a failed one reports `null`.
 */
import type { LoadReport, Router, Worker, WorkerId } from 'kvroute';
import {
  type LoadRouteMemo,
  loadRoutesToAsk,
  parseLoadReport,
  readLoadResponse,
  rememberLoadRoute,
  unknownLoadRoutes,
} from 'kvroute/engines';
import { type Dispatcher, request } from 'undici';

export interface LoadPoller {
  stop(): void;
}

const loadRoutes = ['/v1/loads'];
/** Only what routing reads is asked for. */
const loadQuery = '?include=core,disagg,queues,memory';
const metricsKinds = { sglang: 'sglang_metrics', vllm: 'vllm_metrics', trtllm: 'tensorrt_llm_metrics' } as const;

/** Polls at once and then every `intervalMs` until stopped. Its timer keeps no process alive. */
export function startLoadPoller(router: Router, dispatcher: Dispatcher, intervalMs: number): LoadPoller {
  const memos = new Map<WorkerId, LoadRouteMemo>();
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  const tick = async () => {
    const ready = router.workers().filter((worker) => worker.status === 'ready');
    for (const id of memos.keys()) if (!ready.some((worker) => worker.id === id)) memos.delete(id);
    const reports = await Promise.all(
      ready.map(async (worker) => [worker.id, await poll(worker, memos, dispatcher)] as const),
    );
    if (stopped) return;
    router.reportLoads(reports);
    router.maintain();
    timer = setTimeout(tick, intervalMs).unref();
  };
  void tick();

  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

async function poll(
  worker: Worker,
  memos: Map<WorkerId, LoadRouteMemo>,
  dispatcher: Dispatcher,
): Promise<LoadReport | null> {
  let memo = memos.get(worker.id) ?? unknownLoadRoutes;
  for (const route of loadRoutesToAsk(memo, loadRoutes)) {
    const answer = await get(`${worker.url}${route}${loadQuery}`, dispatcher);
    const outcome = readLoadResponse(answer?.status, answer?.body);
    memo = rememberLoadRoute(memo, route, outcome);
    memos.set(worker.id, memo);
    if (outcome.outcome === 'report') return outcome.report;
  }
  // No load route, or no answer from it: the engine's metrics say nearly the same.
  const kind = metricsKinds[worker.runtime as keyof typeof metricsKinds];
  const answer = kind && (await get(`${worker.url}/metrics`, dispatcher));
  if (answer?.status !== 200) return null;
  const result = parseLoadReport(kind, answer.body);
  return result.ok ? result.report : null;
}

async function get(url: string, dispatcher: Dispatcher): Promise<{ status: number; body: string } | undefined> {
  try {
    const { statusCode, body } = await request(url, { dispatcher, signal: AbortSignal.timeout(5_000) });
    return { status: statusCode, body: await body.text() };
  } catch {
    return undefined;
  }
}
