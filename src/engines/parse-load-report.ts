/**
 * One entry point for every load payload (LB-45): a report, or a typed reason why there is none. Never throws, whatever
 * the bytes; a report never holds a number that is negative, NaN or infinite (B42, B48).
 */
import { show } from '../errors.js';
import { readSglangGetLoad, readSglangLoads, readVllmLoad } from './json-reports.js';
import { type LoadReportResult, noReport } from './load-result.js';
import { type MetricsKind, readMetrics } from './metric-reports.js';
import { readJson } from './payload.js';

/**
 * What the payload is.
 *
 * - `sglang_loads`: JSON of `GET /v1/loads`, flat or in sections (LR-1, LR-14). Also what a nested gateway's `/loads` says.
 * - `sglang_get_load`: JSON of SGLang's legacy `GET /get_load`, a list of ranks. It has no KV usage, which stays absent.
 *   Its oldest form, one number, gives `no_kv_usage`.
 * - `vllm_load`: JSON of vLLM's `GET /load`. It only counts requests, so it always gives `no_kv_usage`.
 * - `vllm_metrics`, `sglang_metrics`, `tensorrt_llm_metrics`, `triton_metrics`: Prometheus text (LR-15, LR-16, LR-19).
 */
export type LoadReportKind = 'sglang_loads' | 'sglang_get_load' | 'vllm_load' | MetricsKind;

/** How to read a load payload. */
export interface LoadReportOptions {
  /**
   * Only series whose `model_name` or `model` label equals it count, for workers that serve several models. Absent: all
   * series together. Metrics kinds only (LR-18).
   */
  readonly model?: string | undefined;
}

/**
 * Reads what an engine said about its load.
 *
 * Fields the engine did not send are absent in the report (LR-32); ranks keep their order. A Prometheus text gives one
 * rank, number 0. `observedAt` is the host's to add (LR-31).
 *
 * @param payload text, UTF-8 bytes, or (JSON kinds) an already parsed value
 * @returns the report, or the reason why there is none; pass `null` to `reportLoad` then
 */
export function parseLoadReport(
  kind: LoadReportKind,
  payload: unknown,
  options: LoadReportOptions = {},
): LoadReportResult {
  switch (kind) {
    case 'sglang_loads':
      return readSglangLoads(readJson(payload));
    case 'sglang_get_load':
      return readSglangGetLoad(readJson(payload));
    case 'vllm_load':
      return readVllmLoad(readJson(payload));
    case 'vllm_metrics':
    case 'sglang_metrics':
    case 'tensorrt_llm_metrics':
    case 'triton_metrics':
      return readMetrics(kind, payload, options?.model);
    default:
      return noReport('unsupported', `kind ${show(kind)}`);
  }
}
