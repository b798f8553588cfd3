/**
 * What an engine says about its load: the report shape of LR-1 and LR-2 in our own words, and its reading. "Unknown"
 * and "0" stay different all the way: a field the engine did not send is absent (LR-32).
 */

/** The load of one data-parallel rank. Every field is optional; absent means the engine did not say (LR-2, LR-32). */
export interface RankLoad {
  /** Rank number, 0-based. Absent = 0. */
  readonly dpRank?: number | undefined;
  /** Requests being executed. Not part of any score (EW-9). */
  readonly runningRequests?: number | undefined;
  /** Requests queued in the engine. */
  readonly waitingRequests?: number | undefined;
  /** Queued prompt tokens that are not served from the engine's cache. Absent or 0: estimated from the depth (EW-4). */
  readonly waitingTokens?: number | undefined;
  /** KV-cache usage, 0–1. Absent: the KV term is 0 (EW-8a). */
  readonly kvCacheUsage?: number | undefined;
  /** Generation throughput in tokens per second. Absent, 0 or negative: not reported (EW-7, EW-10). */
  readonly tokensPerSecond?: number | undefined;
  /** Requests in the engine, running and waiting. */
  readonly totalRequests?: number | undefined;
  /** KV tokens in use. */
  readonly usedTokens?: number | undefined;
  /** KV capacity in tokens; a positive value on any rank makes `usedTokens` meaningful (LR-4). */
  readonly maxTotalTokens?: number | undefined;
  /** Share of prompt tokens served from cache, 0–1. Observed only. */
  readonly cacheHitRate?: number | undefined;
  /** Engine-defined utilisation. Observed only. */
  readonly utilization?: number | undefined;
  /** The engine's running window, in requests. */
  readonly maxRunningRequests?: number | undefined;
  /** Prefill/decode section of the engine, observed only. */
  readonly disaggregation?: DisaggregationLoad | undefined;
}

/** The prefill/decode section of a rank (LR-2). Observed only. */
export interface DisaggregationLoad {
  /** Which leg the engine serves; null when it says that it serves none by itself. */
  readonly mode?: 'prefill' | 'decode' | null | undefined;
  /** Milliseconds. */
  readonly kvTransferLatencyMs?: number | undefined;
  /** Gigabytes per second. */
  readonly kvTransferGigabytesPerSecond?: number | undefined;
  /** Requests queued for prefill. */
  readonly prefillQueueRequests?: number | undefined;
  /** Requests queued for decode. */
  readonly decodeQueueRequests?: number | undefined;
}

/** When and how the sample was taken. */
export interface ReportStamp {
  /** Instant of the sample as a reading of the injected clock, in milliseconds. Absent: when it was applied (LR-31). */
  readonly observedAt?: number | undefined;
  /** The engine's own time stamp; kept, never read. */
  readonly timestamp?: string | undefined;
}

/** A report with several data-parallel ranks. An empty list counts as no report (LR-5). */
export interface RankedLoadReport extends ReportStamp {
  /** One entry a rank, in any order. */
  readonly ranks: readonly RankLoad[];
}

/** A report of one rank, written flat: `{ waitingRequests: 3, kvCacheUsage: 0.4 }`. */
export interface SingleLoadReport extends RankLoad, ReportStamp {
  /** Absent: that is what tells it from a report of several ranks. */
  readonly ranks?: undefined;
}

/** The last load an engine told: one rank written flat, or `{ ranks: [...] }` (LR-1). */
export type LoadReport = SingleLoadReport | RankedLoadReport;

/** The ranks of a report, whichever way it was written. */
export function ranksOf(report: LoadReport): readonly RankLoad[] {
  return report.ranks === undefined ? [report] : report.ranks;
}
