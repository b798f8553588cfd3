/** What `parseLoadReport` makes of a payload, in the form that tests compare. */
import { type LoadReportKind, parseLoadReport } from 'kvroute/engines';
import type { RankLoad } from '../../src/load/report.js';

/** The ranks of a payload that has some. */
export function ranks(kind: LoadReportKind, payload: unknown, model?: string): readonly RankLoad[] {
  const result = parseLoadReport(kind, payload, { model });
  if (!result.ok) throw new Error(`no report: ${result.reason} ${result.detail}`);
  return result.report.ranks;
}

/** Why there is no report; `report` when there is one. */
export function reason(kind: LoadReportKind, payload: unknown, model?: string): string {
  const result = parseLoadReport(kind, payload, { model });
  return result.ok ? 'report' : result.reason;
}

/** A `/v1/loads` body. */
export const loads = (...entries: unknown[]) => ({ loads: entries });
