/**
 * The worker as a policy sees it: plain, readable properties and nothing to call on the hot path. The router's `Worker`
 * is one; a policy used alone is given `Candidate` literals and keeps a `TrackedCandidate` for each.
 */

import type { LoadSummary } from '../load/load-summary.js';
import type { LoadReport } from '../load/report.js';

/** Identity of a worker: any non-empty string, by default its URL (WK-1). All routing state is keyed by it. */
export type WorkerId = string;

/** A worker that may serve the request, as a plain literal: what policies used without a router are given (LB-10a). */
export interface Candidate {
  /** Distinct among the candidates of a call. */
  readonly id: WorkerId;
  /** Requests dispatched to it that have not ended; an integer ≥ 0. */
  readonly inFlight: number;
  /** Its last load report, when it has a fresh one. A report of another identity resets the credit (LB-10a). */
  readonly report?: LoadReport | undefined;
  /** Distinct routing keys in flight on it (WK-41), read by `min_group`. Absent = as many as `keysInFlight` shows. */
  readonly activeKeys?: number | undefined;
  /** In-flight requests per routing key (WK-42), read by the sticky in-flight cap. Absent = none. */
  readonly keysInFlight?: Readonly<Record<string, number>> | ReadonlyMap<string, number> | undefined;
}

/** The signals a policy reads from a candidate at decision time. Live: read them once per decision. */
export interface WorkerSignals {
  /** Identity (WK-1). */
  readonly id: WorkerId;
  /** Requests dispatched to it that have not ended (WK-30). */
  readonly inFlight: number;
  /** Distinct routing keys in flight (WK-41). */
  readonly activeKeys: number;
  /** The last applied report, summed up. It counts only while `load.expiresAt > now` (LR-30): use `freshLoad`. */
  readonly load: LoadSummary | undefined;
  /** Tokens of the requests it was selected for since its last report (EW-12). */
  readonly creditTokens: number;
  /** How many requests that were; what the waiting cap counts (EW-40). */
  readonly creditRequests: number;
  /** @internal Kept here by `fingerprintOf`: the hash of the id. */
  idLanes?: readonly [number, number] | undefined;
  /** Requests of one pin in flight on this worker (WK-42); `pinKey` is the composed (model, leg, key) string. */
  keyInFlight(pinKey: string): number;
}

/** The fresh report of a worker, or undefined: a report that aged out is no report (LR-30). */
export function freshLoad(worker: WorkerSignals, now: number): LoadSummary | undefined {
  const load = worker.load;
  return load !== undefined && load.expiresAt > now ? load : undefined;
}
