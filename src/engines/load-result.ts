/** What reading a load payload yields: a report, or a typed reason why there is none (LB-45). */
import type { RankedLoadReport } from '../load/report.js';

/**
 * Why a payload gave no report. None of them ever stands for "idle" (B41, B47).
 *
 * - `not_a_report`: another schema, no JSON, HTML, or a metrics text without any series of this engine.
 * - `invalid`: the right schema with a value that cannot be: negative, not finite, of the wrong type, a rank told
 *   twice or missing (LR-11a, B42).
 * - `empty`: the right schema with no rank in it yet (LR-5).
 * - `no_kv_usage`: the engine said something, but not the KV usage without which it would read as an idle worker
 *   (LR-15, LR-16, LR-19).
 * - `unsupported`: the kind is none this package knows.
 */
export type NoReportReason = 'not_a_report' | 'invalid' | 'empty' | 'no_kv_usage' | 'unsupported';

/** The outcome of `parseLoadReport`. `detail` is for logs only and may change; compare `reason`. */
export type LoadReportResult =
  | { readonly ok: true; readonly report: RankedLoadReport }
  | { readonly ok: false; readonly reason: NoReportReason; readonly detail?: string | undefined };

/** A result without report. */
export function noReport(reason: NoReportReason, detail: string): LoadReportResult {
  return { ok: false, reason, detail };
}
