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
  splitRank,
  unknownLoadRoutes,
} from 'kvroute/engines';

export interface LoadPoller {
  stop(): void;
}

const loadRoutes = ['/v1/loads'];
/** Only what routing reads is asked for. */
const loadQuery = '?include=core,disagg,queues,memory';
const metricsKinds = { sglang: 'sglang_metrics', vllm: 'vllm_metrics', trtllm: 'tensorrt_llm_metrics' } as const;

/** Polls at once and then every `intervalMs` until stopped. Its timer keeps no process alive. */
export function startLoadPoller(router: Router, intervalMs: number): LoadPoller {
  const memos = new Map<WorkerId, LoadRouteMemo>();
  const stopped = new AbortController();
  let timer: NodeJS.Timeout | undefined;

  const tick = async () => {
    const ready = router.workers().filter((worker) => worker.status === 'ready');
    for (const id of memos.keys()) if (!ready.some((worker) => worker.id === id)) memos.delete(id);
    const timeout = AbortSignal.any([stopped.signal, AbortSignal.timeout(5_000)]);
    const reports = await Promise.all(
      ready.map(async (worker) => [worker.id, await poll(worker, memos, timeout)] as const),
    );
    if (stopped.signal.aborted) return;
    router.reportLoads(reports);
    router.maintain();
    timer = setTimeout(tick, intervalMs).unref();
  };
  void tick();

  return {
    stop() {
      stopped.abort();
      clearTimeout(timer);
    },
  };
}

async function poll(
  worker: Worker,
  memos: Map<WorkerId, LoadRouteMemo>,
  signal: AbortSignal,
): Promise<LoadReport | null> {
  if (worker.url === undefined) return null;
  const base = splitRank(worker.url).url;
  let memo = memos.get(worker.id) ?? unknownLoadRoutes;
  for (const route of loadRoutesToAsk(memo, loadRoutes)) {
    const answer = await get(base + route + loadQuery, signal);
    const outcome = readLoadResponse(answer?.status, answer?.body);
    memo = rememberLoadRoute(memo, route, outcome);
    memos.set(worker.id, memo);
    if (outcome.outcome === 'report') return outcome.report;
  }
  // No load route, or no answer from it: the engine's metrics say nearly the same.
  const kind = metricsKinds[worker.runtime as keyof typeof metricsKinds];
  const answer = kind && (await get(`${base}/metrics`, signal));
  if (answer?.status !== 200) return null;
  const result = parseLoadReport(kind, answer.body);
  return result.ok ? result.report : null;
}

async function get(url: string, signal: AbortSignal): Promise<{ status: number; body: string } | undefined> {
  try {
    const response = await fetch(url, { signal });
    return { status: response.status, body: await response.text() };
  } catch {
    return undefined;
  }
}
