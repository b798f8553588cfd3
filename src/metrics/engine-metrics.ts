/**
 * Metrics of load reports: OB-60 and OB-61, one series a data-parallel rank. What an engine does not report has no
 * series, since unknown is not 0 (LR-32); a series the last report no longer has goes to -1, like all of a worker that is
 * removed or not ready (OB-81).
 */
import type { DisaggregationLoad, LoadReport, RankLoad } from '../load/report.js';
import { ranksOf } from '../load/report.js';
import type { WorkerId } from '../workers/candidate.js';
import type { Worker } from '../workers/worker.js';
import type { MetricSink } from './adapter.js';
import type { LabelsOf } from './metric-table.js';
import type { Subscribe } from './metrics-source.js';
import type { ModelLabels } from './model-labels.js';

const loadFields = [
  ['smg_engine_running_requests', 'runningRequests'],
  ['smg_engine_waiting_requests', 'waitingRequests'],
  ['smg_engine_token_usage', 'kvCacheUsage'],
  ['smg_engine_gen_throughput', 'tokensPerSecond'],
  ['smg_engine_cache_hit_rate', 'cacheHitRate'],
] as const satisfies readonly (readonly [string, keyof RankLoad])[];

const transferFields = [
  ['smg_engine_pd_kv_transfer_latency_ms', 'kvTransferLatencyMs'],
  ['smg_engine_pd_kv_transfer_speed_gb_s', 'kvTransferGigabytesPerSecond'],
  ['smg_engine_pd_prefill_queue_reqs', 'prefillQueueRequests'],
  ['smg_engine_pd_decode_queue_reqs', 'decodeQueueRequests'],
] as const satisfies readonly (readonly [string, keyof DisaggregationLoad])[];

/** One series that a report set: `set` gives it a value. */
type Series = (value: number) => void;

/** The value of a series without one. */
const noValue = -1;

export function bindEngineMetrics(
  registered: readonly Worker[],
  on: Subscribe,
  sink: MetricSink,
  models: ModelLabels,
  isCurrent: (worker: Worker) => boolean,
): void {
  const live = new Map<WorkerId, ReadonlyMap<string, Series>>();

  const tell = (worker: Worker, report: LoadReport): void => {
    const before = live.get(worker.id);
    const told = new Map<string, Series>();
    const put = (key: string, value: unknown, series: Series): void => {
      // The fields of the PD section are the engine's own and were never checked.
      if (typeof value !== 'number' || !Number.isFinite(value)) return;
      told.set(key, series);
      series(value);
    };
    const model = models.of(worker.models[0] ?? 'unknown');
    for (const rank of ranksOf(report)) {
      const dpRank = String(rank.dpRank ?? 0);
      const labels = { worker: worker.id, model, dp_rank: dpRank };
      for (const [name, field] of loadFields) {
        put(`${name} ${dpRank} ${model}`, rank[field], (value) => sink.set(name, labels, value));
      }
      const pd = rank.disaggregation;
      if (pd === undefined || pd === null) continue;
      const pdLabels = { worker: worker.id, role: roleOf(pd), dp_rank: dpRank };
      for (const [name, field] of transferFields) {
        put(`${name} ${dpRank} ${pdLabels.role}`, pd[field], (value) => sink.set(name, pdLabels, value));
      }
    }
    live.set(worker.id, told);
    if (before !== undefined) for (const [key, series] of before) if (!told.has(key)) series(noValue);
  };
  const retire = (worker: Worker): void => {
    const series = live.get(worker.id);
    live.delete(worker.id);
    if (series !== undefined) for (const set of series.values()) set(noValue);
  };

  on('reportApplied', ({ worker, report }) => {
    if (isCurrent(worker)) tell(worker, report);
  });
  on('workerStatus', ({ worker, to }) => {
    if (to !== 'ready') retire(worker);
  });
  on('workerRemoved', ({ worker }) => retire(worker));
  for (const worker of registered) if (worker.report !== undefined) tell(worker, worker.report);
}

/** A closed set, whatever the engine says. */
function roleOf({ mode }: DisaggregationLoad): LabelsOf<'smg_engine_pd_kv_transfer_latency_ms'>['role'] {
  return mode === 'prefill' || mode === 'decode' ? mode : 'null';
}
