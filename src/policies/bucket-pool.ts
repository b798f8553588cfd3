/**
 * The workers of one `bucket` pool: the size range each owns, the units routed to each within the last five seconds,
 * and the checks that move the ranges after the traffic (BU-2, BU-9).
 *
 * A check is due every five seconds from the first worker on. Whichever call comes first makes it, as of the instant it
 * was due: `settle` brings everything to the state of `now`, and doing so twice or in two steps changes nothing, so
 * results never depend on when maintenance ran (LB-5). A change of membership starts an even split with nothing routed
 * (BU-5, LM-37); the split is made by the next read, so that n registrations cost O(n).
 */
import type { WorkerId } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import { type BucketRange, bucketRecompute, initialBucketRanges } from './bucket-boundaries.js';
import { BucketWindow, type RoutedShare } from './bucket-window.js';

/** Interval of the checks, milliseconds (BU-9, CF-110). */
const checkIntervalMs = 5000;

/** A worker of the pool, the lower end of its range and the units routed to it within the window. */
export interface BucketMember extends RoutedShare {
  /** Of the worker it stands for. */
  readonly id: WorkerId;
  /** Ranges ascend in member order without gaps: each ends below the next one's lower end, the last is open. */
  low: number;
}

/** The members, and which of them stands for each candidate. */
export interface BucketView {
  /** What it is the view of. */
  readonly candidates: CandidateSet;
  /** All of the pool, available or not, in registration order. */
  readonly members: readonly BucketMember[];
  /** Position by position those of the candidates. */
  readonly ofCandidates: readonly BucketMember[];
}

/** The members with their ranges, and the traffic that moves these. */
export class BucketPool {
  /** In registration order. */
  #members: BucketMember[] = [];
  readonly #byId = new Map<WorkerId, BucketMember>();
  readonly #window = new BucketWindow();
  #view: BucketView | undefined;
  #splitDue = false;
  /** Share of a worker at the last adjustment, 0 before the first (BU-9b). */
  #share = 0;
  /** Router time of the first registration, and how many check instants have passed since. */
  #startedAt = Infinity;
  #checks = 0;

  add(id: WorkerId, now: number): void {
    this.settle(now);
    if (this.#byId.has(id)) return;
    if (this.#startedAt === Infinity) this.#startedAt = now;
    const member: BucketMember = { id, low: 0, routed: 0 };
    this.#byId.set(id, member);
    this.#members.push(member);
    this.#startAnew();
  }

  remove(id: WorkerId, now: number): void {
    this.settle(now);
    if (!this.#byId.delete(id)) return;
    this.#members = this.#members.filter((member) => member.id !== id);
    this.#startAnew();
  }

  /** Accounts a request that was routed to a worker (BU-7). */
  account(id: WorkerId, size: number, now: number): void {
    this.#window.push(size, now, this.#byId.get(id));
  }

  /** Makes the checks that were due until `now` and drops what is older than five seconds. */
  settle(now: number): void {
    for (;;) {
      const dueAt = this.#startedAt + (this.#checks + 1) * checkIntervalMs;
      if (dueAt > now) break;
      this.#window.expire(dueAt);
      if (this.#window.length > 0) {
        this.#check();
        this.#checks += 1;
      } else {
        // Nothing to see before the next request: pass over the instants until now. Rounding must not stop the count.
        this.#checks = Math.max(this.#checks + 1, Math.floor((now - this.#startedAt) / checkIntervalMs));
      }
    }
    this.#window.expire(now);
  }

  /** The pool as one decision sees it: made once while candidates and members stay the same. */
  viewOf(candidates: CandidateSet): BucketView {
    if (this.#splitDue) {
      this.#splitDue = false;
      giveRanges(this.#members, initialBucketRanges(this.#members.length));
    }
    if (this.#view?.candidates === candidates) return this.#view;
    const ofCandidates: BucketMember[] = [];
    const members = this.#members;
    let at = 0;
    for (const { id } of candidates.workers) {
      // Both lists are in registration order, so it is mostly the next one.
      while (at < members.length && members[at]?.id !== id) at++;
      const member = members[at++] ?? this.#byId.get(id);
      if (member === undefined) return this.#viewWithStrangers(candidates);
      ofCandidates.push(member);
    }
    this.#view = { candidates, members: this.#members, ofCandidates };
    return this.#view;
  }

  /** What the pool would be with candidates that were never registered, as `explain` may bring them. */
  #viewWithStrangers(candidates: CandidateSet): BucketView {
    const byId = new Map<WorkerId, BucketMember>();
    for (const id of this.#byId.keys()) byId.set(id, { id, low: 0, routed: 0 });
    const ofCandidates = candidates.workers.map(({ id }) => {
      const member = byId.get(id) ?? { id, low: 0, routed: 0 };
      byId.set(id, member);
      return member;
    });
    const members = [...byId.values()];
    giveRanges(members, initialBucketRanges(members.length));
    return { candidates, members, ofCandidates };
  }

  #startAnew(): void {
    this.#window.forgetOwners();
    this.#view = undefined;
    this.#splitDue = true;
  }

  #check(): void {
    const adjustment = bucketRecompute(this.#members.length, this.#window.sizes(), this.#share);
    if (adjustment === undefined) return;
    this.#share = adjustment.share;
    this.#splitDue = false;
    giveRanges(this.#members, adjustment.ranges);
  }
}

/** One range a member, in order. */
function giveRanges(members: readonly BucketMember[], ranges: readonly BucketRange[]): void {
  for (let i = 0; i < members.length; i++) (members[i] as BucketMember).low = (ranges[i] as BucketRange).low;
}
