/**
 * Reports from Prometheus text: vLLM (LR-15), SGLang (LR-16), TensorRT-LLM and Triton (LR-19).
 *
 * Counts are summed and truncated to integers, fractions and throughput averaged over the series (LR-18, B47). The KV
 * gauge is required: without it there is no report, never a usage of 0. Each engine has gone by several names; the first
 * family whose KV gauge has a sample is read (B43). What has no sample stays absent (LR-32). O(size of the text).
 */
import type { RankLoad } from '../load/report.js';
import { type LoadReportResult, noReport } from './load-result.js';
import { readText } from './payload.js';
import { readSamples, type Sample } from './prometheus-text.js';

/** The metric texts that can be read. */
export type MetricsKind = 'vllm_metrics' | 'sglang_metrics' | 'tensorrt_llm_metrics' | 'triton_metrics';

/** A series by name, or those of its samples that carry one label value. */
type Series = string | { readonly name: string; readonly label: string; readonly value: string };

/** The names under which an engine version tells its load. */
interface MetricFamily {
  readonly kvCacheUsage: Series;
  readonly runningRequests: Series;
  readonly waitingRequests: Series;
  readonly tokensPerSecond?: Series;
  readonly cacheHitRate?: Series;
  readonly utilization?: Series;
}

function vllm(kvCacheUsage: string): MetricFamily {
  return {
    kvCacheUsage,
    runningRequests: 'vllm:num_requests_running',
    waitingRequests: 'vllm:num_requests_waiting',
    cacheHitRate: 'vllm:gpu_prefix_cache_hit_rate',
  };
}

function sglang(prefix: string): MetricFamily {
  return {
    kvCacheUsage: `${prefix}token_usage`,
    runningRequests: `${prefix}num_running_reqs`,
    waitingRequests: `${prefix}num_queue_reqs`,
    tokensPerSecond: `${prefix}gen_throughput`,
    cacheHitRate: `${prefix}cache_hit_rate`,
    utilization: `${prefix}utilization`,
  };
}

const tensorRtLlm: MetricFamily = {
  kvCacheUsage: 'trtllm_kv_cache_utilization',
  runningRequests: 'trtllm_num_requests_running',
  waitingRequests: 'trtllm_num_requests_waiting',
};

const triton: MetricFamily = {
  kvCacheUsage: { name: 'nv_trt_llm_kv_cache_block_metrics', label: 'kv_cache_block_type', value: 'fraction' },
  runningRequests: { name: 'nv_trt_llm_request_metrics', label: 'request_type', value: 'scheduled' },
  waitingRequests: { name: 'nv_trt_llm_request_metrics', label: 'request_type', value: 'waiting' },
};

const families: Readonly<Record<MetricsKind, readonly MetricFamily[]>> = {
  vllm_metrics: [vllm('vllm:kv_cache_usage_perc'), vllm('vllm:gpu_cache_usage_perc')],
  sglang_metrics: [sglang('sglang:'), sglang('sglang_')],
  tensorrt_llm_metrics: [tensorRtLlm],
  triton_metrics: [triton],
};

/** Reads a metrics text. With `model`, only series labelled with it count (LR-18, B46). */
export function readMetrics(kind: MetricsKind, payload: unknown, model: string | undefined): LoadReportResult {
  const text = readText(payload);
  if (text === undefined) return noReport('not_a_report', 'no text');
  const samples = readSamples(text, namesOf(families[kind]));
  if (samples.size === 0) return noReport('not_a_report', 'no series of this engine');
  const gauges = new Gauges(samples, model);
  for (const family of families[kind]) {
    const kvCacheUsage = gauges.mean(family.kvCacheUsage);
    if (kvCacheUsage === undefined) continue;
    const rank = {
      dpRank: 0,
      kvCacheUsage,
      ...told('runningRequests', gauges.count(family.runningRequests)),
      ...told('waitingRequests', gauges.count(family.waitingRequests)),
      ...told('tokensPerSecond', gauges.mean(family.tokensPerSecond)),
      ...told('cacheHitRate', gauges.mean(family.cacheHitRate)),
      ...told('utilization', gauges.mean(family.utilization)),
    };
    return gauges.problem === undefined ? { ok: true, report: { ranks: [rank] } } : noReport('invalid', gauges.problem);
  }
  return noReport('no_kv_usage', model === undefined ? 'no KV-cache gauge' : 'no KV-cache gauge of this model');
}

function told(field: keyof RankLoad, value: number | undefined): Partial<RankLoad> {
  return value === undefined ? {} : { [field]: value };
}

function nameOf(series: Series): string {
  return typeof series === 'string' ? series : series.name;
}

function namesOf(list: readonly MetricFamily[]): Set<string> {
  return new Set(list.flatMap((family) => Object.values(family).map(nameOf)));
}

/** Sums and means over the series in scope. The first value that cannot be is remembered in `problem` (LR-11a). */
class Gauges {
  problem: string | undefined;
  readonly #samples: ReadonlyMap<string, readonly Sample[]>;
  readonly #model: string | undefined;

  constructor(samples: ReadonlyMap<string, readonly Sample[]>, model: string | undefined) {
    this.#samples = samples;
    this.#model = model;
  }

  /** Average; undefined without a sample, or for a series the engine does not have. */
  mean(series: Series | undefined): number | undefined {
    if (series === undefined) return undefined;
    const values = this.#values(series);
    return values.length === 0 ? undefined : this.#checked(series, sum(values) / values.length);
  }

  /** Sum, truncated to an integer; undefined without a sample. */
  count(series: Series): number | undefined {
    const values = this.#values(series);
    return values.length === 0 ? undefined : this.#checked(series, Math.trunc(sum(values)));
  }

  /** One value a scheduler: the tensor-parallel ranks of one mirror each other, so the largest counts once (LR-18). */
  #values(series: Series): readonly number[] {
    const values: number[] = [];
    const mirrors = new Map<string, number>();
    for (const { value, labels } of this.#samples.get(nameOf(series)) ?? []) {
      if (!this.#inScope(series, labels)) continue;
      if (value < 0) this.problem ??= `${nameOf(series)}: ${value} is negative`;
      if (labels.has('tp_rank')) {
        const key = schedulerKey(labels);
        mirrors.set(key, Math.max(mirrors.get(key) ?? 0, value));
      } else {
        values.push(value);
      }
    }
    for (const value of mirrors.values()) values.push(value);
    return values;
  }

  #inScope(series: Series, labels: ReadonlyMap<string, string>): boolean {
    if (typeof series !== 'string' && labels.get(series.label) !== series.value) return false;
    const model = this.#model;
    return model === undefined || labels.get('model_name') === model || labels.get('model') === model;
  }

  #checked(series: Series, value: number): number {
    if (!Number.isFinite(value)) this.problem ??= `${nameOf(series)}: the sum is not finite`;
    return value;
  }
}

function schedulerKey(labels: ReadonlyMap<string, string>): string {
  return JSON.stringify([...labels].filter(([name]) => name !== 'tp_rank').sort());
}

function sum(values: readonly number[]): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
