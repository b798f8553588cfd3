/**
 * A report summed up over its data-parallel ranks (LR-3), once, when it is applied; every selection reads only this.
 * Counts and throughputs are summed, fractions averaged over the ranks that have them; nothing is clamped here.
 */
import { type LoadReport, type RankLoad, ranksOf } from './report.js';

/** The aggregate every scorer reads. */
export interface LoadSummary {
  /** The report as the host gave it. */
  readonly report: LoadReport;
  /** Sum over ranks; ranks that do not say count 0. */
  readonly waitingRequests: number;
  /** Sum over ranks; undefined when no rank says (LR-32). */
  readonly waitingTokens: number | undefined;
  /** Sum over ranks, tokens per second; 0 when no rank says. */
  readonly tokensPerSecond: number;
  /** Mean over the ranks that say; undefined when none does (EW-8a). */
  readonly kvCacheUsage: number | undefined;
  /** Sum of the engines' running windows; undefined when no rank says. */
  readonly maxRunningRequests: number | undefined;
  /** Router time of the sample, milliseconds. */
  readonly observedAt: number;
  /** Router time at which it stops being fresh (LR-30); `Infinity` = never. */
  readonly expiresAt: number;
}

/** Why a report was refused (LR-5, LR-11a). */
export type RefusedReport = 'empty' | 'invalid';

const numberFields = [
  'dpRank',
  'runningRequests',
  'waitingRequests',
  'waitingTokens',
  'kvCacheUsage',
  'tokensPerSecond',
  'totalRequests',
  'usedTokens',
  'maxTotalTokens',
  'cacheHitRate',
  'utilization',
  'maxRunningRequests',
] as const;

const disaggregationFields = [
  'kvTransferLatencyMs',
  'kvTransferGigabytesPerSecond',
  'prefillQueueRequests',
  'decodeQueueRequests',
] as const;

/**
 * Sums a report up.
 *
 * @returns the summary, or why there is none: `empty` for a report without ranks (LR-5), `invalid` when it is not a
 * report or a number in it is not finite (LR-11a). Negative counts are accepted; the scorers read them as 0 (EW-10).
 */
export function summarizeReport(
  report: LoadReport,
  observedAt: number,
  expiresAt: number,
): LoadSummary | RefusedReport {
  if (typeof report !== 'object' || report === null) return 'invalid';
  if (report.ranks !== undefined && !Array.isArray(report.ranks)) return 'invalid';
  if (!isFiniteOrAbsent(report.observedAt)) return 'invalid';
  const ranks = ranksOf(report);
  if (ranks.length === 0) return 'empty';
  let waitingRequests = 0;
  let waitingTokens: number | undefined;
  let tokensPerSecond = 0;
  let usageSum = 0;
  let usageRanks = 0;
  let maxRunningRequests: number | undefined;
  for (const rank of ranks) {
    if (!isReadable(rank)) return 'invalid';
    waitingRequests += rank.waitingRequests ?? 0;
    if (rank.waitingTokens !== undefined) waitingTokens = (waitingTokens ?? 0) + rank.waitingTokens;
    tokensPerSecond += rank.tokensPerSecond ?? 0;
    if (rank.kvCacheUsage !== undefined) {
      usageSum += rank.kvCacheUsage;
      usageRanks += 1;
    }
    if (rank.maxRunningRequests !== undefined) {
      maxRunningRequests = (maxRunningRequests ?? 0) + rank.maxRunningRequests;
    }
  }
  // Finite ranks may still add up to infinity.
  if (!Number.isFinite(waitingRequests + (waitingTokens ?? 0) + usageSum) || !Number.isFinite(tokensPerSecond)) {
    return 'invalid';
  }
  return {
    report,
    waitingRequests,
    waitingTokens,
    tokensPerSecond,
    kvCacheUsage: usageRanks > 0 ? usageSum / usageRanks : undefined,
    maxRunningRequests,
    observedAt,
    expiresAt,
  };
}

/** Whether all numbers of a rank are finite or absent. */
function isReadable(rank: RankLoad): boolean {
  if (typeof rank !== 'object' || rank === null) return false;
  if (!numberFields.every((field) => isFiniteOrAbsent(rank[field]))) return false;
  const disaggregation = rank.disaggregation ?? undefined;
  if (disaggregation === undefined) return true;
  if (typeof disaggregation !== 'object') return false;
  return disaggregationFields.every((field) => isFiniteOrAbsent(disaggregation[field]));
}

function isFiniteOrAbsent(value: unknown): boolean {
  return value === undefined || Number.isFinite(value);
}
