/**
 * The candidates of one decision: available workers in registration order with what the policies need of the whole
 * set. A pool keeps one set until its membership changes, so nothing here is computed per request: positions are the
 * pool's, or made on first use, the in-flight sum is kept running by the pool (PO-6).
 */
import type { WorkerId, WorkerSignals } from './candidate.js';

/** The candidates of one decision, in registration order. */
export class CandidateSet {
  /** In registration order (WK-23). */
  readonly workers: readonly WorkerSignals[];
  /** Sum of the in-flight counts. Kept by whoever owns the set. */
  inFlight: number;
  /** @internal Kept here by `fingerprintOf`. */
  fingerprint: string | undefined = undefined;
  readonly #positionOf: ((id: WorkerId) => number | undefined) | undefined;
  #positions: Map<WorkerId, number> | undefined;

  /**
   * O(n) when `inFlight` is not given. `positionOf`, where the owner of the set keeps positions, tells the one of a
   * worker: -1 for nobody in the set, undefined once the owner has gone on to another set.
   */
  constructor(workers: readonly WorkerSignals[], inFlight?: number, positionOf?: (id: WorkerId) => number | undefined) {
    this.workers = workers;
    this.inFlight = inFlight ?? sumInFlight(workers);
    this.#positionOf = positionOf;
  }

  get size(): number {
    return this.workers.length;
  }

  /** Position of a worker, or -1. O(1) after the first call. */
  indexOf(id: WorkerId): number {
    if (this.#positions === undefined) {
      const known = this.#positionOf?.(id);
      if (known !== undefined) return known;
      this.#positions = positionsOf(this.workers);
    }
    return this.#positions.get(id) ?? -1;
  }

  /** A candidate by id; undefined when it is none. O(1) after the first call. */
  get(id: WorkerId): WorkerSignals | undefined {
    return this.workers[this.indexOf(id)];
  }

  /** `has(id)` as a value, for ring lookups: made once per set. */
  readonly has: (id: WorkerId) => boolean = (id) => this.indexOf(id) >= 0;
}

/** The set with nobody in it. */
export const noCandidates: CandidateSet = new CandidateSet([], 0);

function sumInFlight(workers: readonly WorkerSignals[]): number {
  let sum = 0;
  for (let i = 0; i < workers.length; i++) sum += (workers[i] as WorkerSignals).inFlight;
  return sum;
}

function positionsOf(workers: readonly WorkerSignals[]): Map<WorkerId, number> {
  const positions = new Map<WorkerId, number>();
  for (let i = 0; i < workers.length; i++) positions.set((workers[i] as WorkerSignals).id, i);
  return positions;
}
