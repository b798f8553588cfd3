/**
 * The candidates of one decision: available workers in registration order with what the policies need of the whole
 * set. A pool keeps one set until its membership changes, so nothing here is computed per request: positions are the
 * pool's, or made on first use, the in-flight sum is kept running by the pool (PO-6). A request that excludes a few
 * sees what is left of that set, which costs as much as was excluded (LB-14a).
 */
import type { WorkerId, WorkerSignals } from './candidate.js';
import type { Fingerprint } from './fingerprint.js';
import { Gaps } from './gaps.js';

/** The set that another is left of, for the length of one decision. */
interface Part {
  readonly whole: CandidateSet;
  readonly gaps: Gaps;
}

/** The candidates of one decision, in registration order. */
export class CandidateSet {
  /** Sum of the in-flight counts. Kept by whoever owns the set. */
  inFlight: number;
  /** @internal Kept here by `fingerprintOf`. */
  fingerprint: Fingerprint | undefined = undefined;
  /** @internal Set once, by `without`. */
  part: Part | undefined = undefined;
  #workers: readonly WorkerSignals[] | undefined;
  readonly #positionOf: ((id: WorkerId) => number | undefined) | undefined;
  #positions: Map<WorkerId, number> | undefined;

  /**
   * O(n) when `inFlight` is not given. `positionOf`, where the owner of the set keeps positions, tells the one of a
   * worker: -1 for nobody in the set, undefined once the owner has gone on to another set.
   */
  constructor(workers: readonly WorkerSignals[], inFlight?: number, positionOf?: (id: WorkerId) => number | undefined) {
    this.#workers = workers;
    this.inFlight = inFlight ?? sumInFlight(workers);
    this.#positionOf = positionOf;
  }

  /** In registration order (WK-23). For one of them ask `at`: with `exclude` the list is made on first use, in O(n). */
  get workers(): readonly WorkerSignals[] {
    this.#workers ??= this.part?.gaps.leftOf(this.part.whole.workers) ?? [];
    return this.#workers;
  }

  get size(): number {
    const { part } = this;
    return part === undefined ? this.workers.length : part.whole.size - part.gaps.positions.length;
  }

  /** The candidate at a position; undefined where there is none. O(1), with `exclude` O(excluded). */
  at(position: number): WorkerSignals | undefined {
    const { part } = this;
    return part === undefined ? this.workers[position] : part.whole.at(part.gaps.toWhole(position));
  }

  /** Position of a worker, or -1. O(1) after the first call, with `exclude` O(excluded). */
  indexOf(id: WorkerId): number {
    const { part } = this;
    if (part !== undefined) return part.gaps.fromWhole(part.whole.indexOf(id));
    if (this.#positions === undefined) {
      const known = this.#positionOf?.(id);
      if (known !== undefined) return known;
      this.#positions = positionsOf(this.workers);
    }
    return this.#positions.get(id) ?? -1;
  }

  /** A candidate by id; undefined when it is none. As `indexOf`. */
  get(id: WorkerId): WorkerSignals | undefined {
    return this.at(this.indexOf(id));
  }

  /** `has(id)` as a value, for ring lookups: made once per set. */
  readonly has: (id: WorkerId) => boolean = (id) => this.indexOf(id) >= 0;

  /** The part of the set with these ids, in the order of the set: the set itself when that is all of it. O(ids). */
  only(ids: ReadonlySet<WorkerId>): CandidateSet {
    const positions: number[] = [];
    for (const id of ids) {
      const position = this.indexOf(id);
      if (position >= 0) positions.push(position);
    }
    if (positions.length === this.size) return this;
    positions.sort((a, b) => a - b);
    return new CandidateSet(positions.map((position) => this.at(position) as WorkerSignals));
  }

  /** What is left without some workers: the set itself when none of them is in it. O(excluded). */
  without(ids: readonly WorkerId[]): CandidateSet {
    const positions = new Set<number>();
    let { inFlight } = this;
    for (const id of ids) {
      const position = this.indexOf(id);
      if (position < 0 || positions.has(position)) continue;
      positions.add(position);
      inFlight -= (this.at(position) as WorkerSignals).inFlight;
    }
    if (positions.size === 0) return this;
    const left = new CandidateSet([], inFlight);
    left.#workers = undefined;
    left.part = { whole: this, gaps: new Gaps(positions) };
    return left;
  }
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
