/**
 * Overload protection: thresholds, the verdict on one report, and what an empty selection means (OV-1 to OV-27).
 *
 * Pure functions. The verdict is reached once a report and kept on the worker; selection only reads it (OV-7). Nothing
 * but a report that shows a value at or above a threshold excludes: no report, no verdict (OV-9, B49).
 */

import { checkNumber, checkObject, refuse } from '../errors.js';
import type { LoadSummary } from '../load/load-summary.js';
import { ranksOf } from '../load/report.js';
import type { OptionsOf } from '../options/spec.js';
import { workerOverloadTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';

/** What vetoes one worker; an unset threshold never does. */
export interface OverloadThresholds {
  /** Waiting requests, summed over ranks; an integer ≥ 1. */
  readonly waitingRequests: number | undefined;
  /** KV-cache usage, mean over ranks; above 0, at most 1. */
  readonly tokenUsage: number | undefined;
}

/** The router's overload options (OV-3). */
export interface RouterOverloadOptions {
  /** KV usage of 0.9 vetoes where no other usage is given. */
  readonly workerOverloadProtection: boolean;
  /** Waiting requests that veto, summed over ranks; undefined = never. */
  readonly workerOverloadWaitingRequests: number | undefined;
  /** KV usage that vetoes, mean over ranks, above 0 and at most 1; undefined = as `workerOverloadProtection` says. */
  readonly workerOverloadTokenUsage: number | undefined;
}

/** A worker's own thresholds as its spec gives them (OV-4). */
export type WorkerOverload = OptionsOf<typeof workerOverloadTable>;

/** Which signal tripped, at what value. */
export interface OverloadVerdict {
  readonly signal: 'waiting_requests' | 'kv_cache_usage';
  /** What the report shows, over all ranks: requests, or a ratio. */
  readonly value: number;
  /** What it reached; in the same unit. */
  readonly threshold: number;
}

/** KV usage that vetoes when protection is on and no threshold is named (OV-3). */
const protectionTokenUsage = 0.9;

/**
 * A worker's thresholds: for each signal its own, else the router's (OV-4). Done once, at registration.
 *
 * @param router the router's options; undefined for workers of external providers, which never get them (OV-4)
 * @throws RoutingConfigError for an invalid block; the field starts with `worker.overload.`
 */
export function resolveOverloadThresholds(
  router: RouterOverloadOptions | undefined,
  overload: WorkerOverload | undefined,
): OverloadThresholds {
  const own = resolveOptions(workerOverloadTable, overload, 'worker.overload.');
  const sharedUsage =
    router?.workerOverloadTokenUsage ?? (router?.workerOverloadProtection ? protectionTokenUsage : undefined);
  return {
    waitingRequests: own.waitingRequests ?? router?.workerOverloadWaitingRequests,
    tokenUsage: own.tokenUsage ?? sharedUsage,
  };
}

/**
 * The verdict on one report: the first signal at or above its threshold, or undefined (OV-2). What the engine does not
 * report never trips (OV-6).
 *
 * @throws TypeError for a threshold that is no number
 */
export function overloadVerdict(load: LoadSummary, thresholds: OverloadThresholds): OverloadVerdict | undefined {
  const { waitingRequests, tokenUsage } = checkObject(thresholds, 'thresholds');
  if (waitingRequests !== undefined) checkNumber(waitingRequests, 'waitingRequests');
  if (tokenUsage !== undefined) checkNumber(tokenUsage, 'tokenUsage');
  if (waitingRequests !== undefined && load.waitingRequests >= waitingRequests) {
    return { signal: 'waiting_requests', value: load.waitingRequests, threshold: waitingRequests };
  }
  if (
    tokenUsage !== undefined &&
    load.kvCacheUsage !== undefined &&
    usageReaches(load, load.kvCacheUsage, tokenUsage)
  ) {
    return { signal: 'kv_cache_usage', value: load.kvCacheUsage, threshold: tokenUsage };
  }
  return undefined;
}

/** Three ranks at 0.7 have a computed mean of 0.6999…: when every rank is at the threshold, so is their mean (OV-5). */
function usageReaches(load: LoadSummary, mean: number, threshold: number): boolean {
  if (mean >= threshold) return true;
  return ranksOf(load.report).every((rank) => rank.kvCacheUsage === undefined || rank.kvCacheUsage >= threshold);
}

/** Why a selection came out empty, before the policy had a say. */
export type EmptyReason = 'overloaded' | 'no_available_workers' | 'no_workers';

/**
 * What an empty selection means for the pool it drew from, before the availability filter and before any exclusion by
 * the caller (OV-20, OV-21): `overloaded`, a shed, only when every member is vetoed, ready or not.
 *
 * @throws TypeError when the pool is no list of workers
 */
export function emptySelection(pool: Iterable<{ readonly overloaded: boolean }>): EmptyReason {
  if (typeof pool?.[Symbol.iterator] !== 'function') throw refuse('pool', 'a list of workers', pool);
  let reason: EmptyReason = 'no_workers';
  for (const member of pool) {
    if (!checkObject(member, 'worker').overloaded) return 'no_available_workers';
    reason = 'overloaded';
  }
  return reason;
}

const minRetryAfterMs = 1000;

/**
 * When a shed request may come back: the interval at which the pool is polled, that is the shortest one that a worker of
 * it asks for, else the router's (OV-20, LR-20). Milliseconds, at least 1 000.
 */
export function shedRetryAfterMs(
  pool: Iterable<{ readonly loadMonitorIntervalMs?: number | undefined }>,
  routerIntervalMs: number,
): number {
  let shortest = Infinity;
  for (const worker of pool) shortest = Math.min(shortest, worker.loadMonitorIntervalMs ?? Infinity);
  return Math.max(minRetryAfterMs, shortest === Infinity ? routerIntervalMs : shortest);
}
