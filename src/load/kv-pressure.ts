/**
 * Fleet-wide KV-cache pressure: when the fullest worker, or the spread between the fullest and the emptiest, exceeds
 * its threshold, `cache_aware` stops following prefixes (CA-20). Candidates without a fresh report, or whose report
 * gives no KV usage, take no part; usage is clamped to [0, 1], so a threshold of 1 or more is off by itself. O(n).
 */
import { freshLoad, type WorkerSignals } from '../workers/candidate.js';

/** Thresholds of the check, both ratios. */
export interface KvPressureThresholds {
  /** Spread above which there is pressure; 1 or more = off. */
  readonly balanceTokenUsageThreshold: number;
  /** Usage of the fullest worker above which there is pressure; 1 or more = off. */
  readonly overloadTokenUsageThreshold: number;
}

/** Whether the candidates of this call are under KV pressure; false when none of them says. */
export function isUnderKvPressure(
  candidates: { readonly workers: readonly WorkerSignals[] },
  now: number,
  thresholds: KvPressureThresholds,
): boolean {
  const { balanceTokenUsageThreshold: spread, overloadTokenUsageThreshold: ceiling } = thresholds;
  if (spread >= 1 && ceiling >= 1) return false;
  const { workers } = candidates;
  let highest = 0;
  let lowest = 1;
  for (let i = 0; i < workers.length; i++) {
    const usage = freshLoad(workers[i] as WorkerSignals, now)?.kvCacheUsage;
    if (usage === undefined) continue;
    const clamped = Math.min(1, Math.max(0, usage));
    if (clamped > highest) highest = clamped;
    if (clamped < lowest) lowest = clamped;
  }
  // Without any usage the spread is -1 and the ceiling 0: neither exceeds a threshold, which is above 0 (CF-23, CF-24).
  return highest > ceiling || highest - lowest > spread;
}
