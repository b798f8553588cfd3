/**
 * The gate between affinity and load: a candidate is hot when its in-flight count exceeds both a multiple of the
 * fleet's mean and the mean plus a margin, both strictly (CA-10). With the mean of T + 1 requests it is the load check
 * of `prefix_hash` as well (PH-8). The relative limit alone would fire on noise in small fleets (B63). O(1).
 */
import type { WorkerId, WorkerSignals } from '../workers/candidate.js';

/** The limits of one decision, computed once and compared with every candidate that matters. */
export interface SpillLimits {
  /** In-flight mean they were derived from. */
  readonly mean: number;
  /** Multiple of the mean. */
  readonly relative: number;
  /** Mean plus the margin. */
  readonly absolute: number;
}

/** The comparison of one candidate with the fleet by a gate: hot when both margins are positive (CA-10, PH-8). */
export interface GateTerms {
  /** The candidate. */
  readonly worker: WorkerId;
  /** Its requests in flight. */
  readonly inFlight: number;
  /** In-flight mean of the candidates; `prefix_hash` counts the request at hand too (PH-8). */
  readonly mean: number;
  /** inFlight minus the relative limit, requests. */
  readonly relativeMargin: number;
  /** inFlight minus the absolute limit, requests. */
  readonly absoluteMargin: number;
  /** Above both limits: passed over while there is somebody else. */
  readonly hot: boolean;
}

/**
 * The limits that follow from a mean (CA-10, PH-8).
 *
 * @param mean in-flight mean of the candidates of this call
 * @param relThreshold multiple of the mean, ≥ 1
 * @param absThreshold requests above the mean, ≥ 0
 */
export function spillLimits(mean: number, relThreshold: number, absThreshold: number): SpillLimits {
  return { mean, relative: relThreshold * mean, absolute: mean + absThreshold };
}

/** Whether a count is above both limits. */
export function isHot(inFlight: number, limits: SpillLimits): boolean {
  return inFlight > limits.relative && inFlight > limits.absolute;
}

/** The gate's view of candidates, for `explain`. */
export function gateTerms(workers: readonly WorkerSignals[], limits: SpillLimits): GateTerms[] {
  return workers.map(({ id, inFlight }) => ({
    worker: id,
    inFlight,
    mean: limits.mean,
    relativeMargin: inFlight - limits.relative,
    absoluteMargin: inFlight - limits.absolute,
    hot: isHot(inFlight, limits),
  }));
}
