/**
 * The cached list of available workers of one scope: all workers of a pool, or the decode partners of one prefill
 * signature. It is rebuilt when somebody says `changed()`, or when the earliest moment has come at which time alone may
 * make a member available; never per request (WK-21, PO-6).
 *
 * Invariant: `current(now).inFlight` is the sum over its workers at every moment. Reading is O(1), a rebuild O(members).
 */

import type { WorkerId } from './candidate.js';
import { CandidateSet, noCandidates } from './candidate-set.js';
import type { WorkerState } from './worker.js';

/** A worker's place in one list. It is in the list's current set, at `position`, when both have the same build number. */
export class Membership {
  readonly worker: WorkerState;
  readonly list: AvailableList;
  build = -1;
  position = -1;

  constructor(worker: WorkerState, list: AvailableList) {
    this.worker = worker;
    this.list = list;
  }
}

/** Members of one scope, and the set of those that are available. */
export class AvailableList {
  readonly #memberships = new Map<WorkerId, Membership>();
  #set: CandidateSet = noCandidates;
  #build = 0;
  #stale = false;
  #lookAgainAt = Infinity;

  get size(): number {
    return this.#memberships.size;
  }

  /** Registered members, available or not, in registration order (WK-23). */
  *members(): IterableIterator<WorkerState> {
    for (const membership of this.#memberships.values()) yield membership.worker;
  }

  has(id: WorkerId): boolean {
    return this.#memberships.has(id);
  }

  add(worker: WorkerState): void {
    const membership = new Membership(worker, this);
    this.#memberships.set(worker.id, membership);
    worker.memberships.push(membership);
    this.#stale = true;
  }

  remove(worker: WorkerState): void {
    if (!this.#memberships.delete(worker.id)) return;
    worker.memberships = worker.memberships.filter((membership) => membership.list !== this);
    // Not merely stale: after a removal nothing reachable may mention the worker (LB-30).
    this.#adopt(noCandidates);
    this.#stale = true;
  }

  /** Takes every member out, when the list itself is given up. */
  dissolve(): void {
    for (const { worker } of [...this.#memberships.values()]) this.remove(worker);
  }

  /** Says that a member's status, breaker, veto or report changed. */
  changed(): void {
    this.#stale = true;
  }

  /** The available members at `now`. The same object until something changes. */
  current(now: number): CandidateSet {
    if (this.#stale || now >= this.#lookAgainAt) this.#rebuild(now);
    return this.#set;
  }

  /** Keeps the running sum when a member's in-flight count changes. */
  addInFlight(membership: Membership, change: 1 | -1): void {
    if (membership.build === this.#build) this.#set.inFlight += change;
  }

  #rebuild(now: number): void {
    const workers: WorkerState[] = [];
    const build = this.#build + 1;
    let lookAgainAt = Infinity;
    let inFlight = 0;
    for (const membership of this.#memberships.values()) {
      const worker = membership.worker;
      if (worker.isAvailable(now)) {
        membership.build = build;
        membership.position = workers.push(worker) - 1;
        inFlight += worker.inFlight;
      } else {
        lookAgainAt = Math.min(lookAgainAt, worker.availableAt);
      }
    }
    this.#adopt(new CandidateSet(workers, inFlight, (id) => this.#positionIn(build, id)));
    this.#lookAgainAt = lookAgainAt;
    this.#stale = false;
  }

  #positionIn(build: number, id: WorkerId): number | undefined {
    if (build !== this.#build) return undefined;
    const membership = this.#memberships.get(id);
    return membership?.build === build ? membership.position : -1;
  }

  #adopt(set: CandidateSet): void {
    this.#set = set;
    this.#build += 1;
  }
}
