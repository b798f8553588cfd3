/**
 * The obligation to report the end of one dispatched request. It is counted in flight when it begins and released
 * exactly once: the first of `end`, `Symbol.dispose`, the abort of its signal, the end of a followed body and the age
 * limit wins, the rest are no-ops (LB-20, WK-31). The count it holds is that of the worker instance it began on (LB-21).
 *
 * Open leases form a list in order of their begin, so the oldest is known and expiry is O(1) a lease.
 */
import type { AbortSignalLike } from './abort-signal.js';
import type { LeaseEnd } from './events.js';
import { type FollowedBody, followBody } from './lease-body.js';
import type { LeaseOutcome } from './lease-outcome.js';
import type { RequestScope } from './workers/outcome-class.js';
import type { Worker, WorkerState } from './workers/worker.js';

/** What the book tells its owner when a lease ends. */
export type LeaseEnded = (lease: Lease, end: LeaseEnd, outcome: LeaseOutcome | undefined) => void;

/** What a lease was begun with. */
export interface LeaseTerms {
  readonly pinKey: string | undefined;
  readonly signal: AbortSignalLike | undefined;
  readonly scope: RequestScope | undefined;
  readonly begunAt: number;
  /** The breaker's epoch at the begin (CB-26). */
  readonly epoch: number;
}

/** One dispatched request, counted in flight until it ends. Made by `begin` and `acquire`. */
export class Lease {
  /** Tells a lease from a refusal of `begin({ ifOverloaded: 'refuse' })`. */
  readonly ok = true;
  /** @internal */
  readonly state: WorkerState;
  /** @internal */
  readonly terms: LeaseTerms;
  /** @internal */
  older: Lease | undefined = undefined;
  /** @internal */
  newer: Lease | undefined = undefined;
  readonly #book: LeaseBook;
  #open = true;
  #followed: Pick<FollowedBody<unknown>, 'cancel' | 'unhook'> | undefined = undefined;
  #onAbort: (() => void) | undefined = undefined;

  /** @internal */
  constructor(book: LeaseBook, worker: WorkerState, terms: LeaseTerms) {
    this.#book = book;
    this.state = worker;
    this.terms = terms;
  }

  get worker(): Worker {
    return this.state;
  }

  /** False once it has ended, whichever way. */
  get open(): boolean {
    return this.#open;
  }

  /** Whether a body is being followed: its end will end the lease. */
  get following(): boolean {
    return this.#followed !== undefined;
  }

  /**
   * Ends the lease. The outcome feeds the worker's breaker (CB-20 to CB-25); without one nothing is recorded there.
   * A lease that has ended already ignores the call.
   */
  end(outcome?: LeaseOutcome): void {
    this.#endNow('ended', outcome);
  }

  /**
   * Ends the lease when the body ends, fails or is abandoned, and returns the body to hand on.
   *
   * A web `ReadableStream` and an async iterable come back wrapped: relay the returned one. A Node stream comes back
   * itself; of a writable one (a server's response) the end of writing counts, and a close before that is an abort. No
   * body (`null`, `undefined`) and a body that is over already end the lease at once (B30).
   *
   * @param outcome what to record when the body ends well; default `{ status: 200 }`. A body that fails records
   * `{ error: 'body' }`, an abandoned one nothing (CB-25).
   */
  follow<B>(body: B, outcome: LeaseOutcome = { status: 200 }): B {
    const followed = followBody(body, {
      ended: () => this.#endNow('body', outcome),
      failed: () => this.#endNow('body', { error: 'body' }),
      abandoned: () => this.#endNow('aborted', { aborted: true }),
    });
    if (this.#open) this.#followed = followed;
    else followed.unhook();
    return followed.body;
  }

  /** Ends the lease without an outcome: for `using lease = selection.begin()`. */
  [Symbol.dispose](): void {
    this.#endNow('disposed', undefined);
  }

  /** @internal Begins to listen to the signal; one that is aborted already ends the lease now (B32). */
  watchSignal(): void {
    const signal = this.terms.signal;
    if (signal === undefined) return;
    const onAbort = (): void => this.#endNow('aborted', { aborted: true });
    try {
      if (signal.aborted) {
        onAbort();
      } else {
        this.#onAbort = onAbort;
        signal.addEventListener('abort', onAbort);
      }
    } catch (error) {
      // A signal that cannot be listened to must not leave a count behind: nobody gets to hold this lease.
      this.finish('disposed', undefined);
      throw error;
    }
  }

  /** What is due comes first, as in every call: this lease may be past its age already (LB-5, LB-23). */
  #endNow(end: LeaseEnd, outcome: LeaseOutcome | undefined): void {
    if (!this.#open) return;
    this.#book.settle(this);
    this.finish(end, outcome);
  }

  /** @internal The one way a lease ends. */
  finish(end: LeaseEnd, outcome: LeaseOutcome | undefined): void {
    if (!this.#open) return;
    this.#open = false;
    this.#letGo();
    this.#book.close(this, end, outcome);
    // Nobody will read on: stop the source now instead of at its next chunk (B33).
    if (end === 'aborted' || end === 'expired') this.#followed?.cancel();
  }

  /** A long-lived signal must not gather a listener a request (LB-24, B35). */
  #letGo(): void {
    this.#followed?.unhook();
    try {
      if (this.#onAbort !== undefined) this.terms.signal?.removeEventListener('abort', this.#onAbort);
    } catch {
      // A signal of the host's own that fails here keeps a listener that does nothing, and no count (LB-15).
    }
  }
}

/** The open leases of one router. */
export class LeaseBook {
  /** @internal Does what time has made due, the expiry of a lease that is about to end first of all. */
  readonly settle: (ending: Lease) => void;
  readonly #ended: LeaseEnded;
  #oldest: Lease | undefined = undefined;
  #newest: Lease | undefined = undefined;
  #size = 0;

  constructor(ended: LeaseEnded, settle: (ending: Lease) => void) {
    this.#ended = ended;
    this.settle = settle;
  }

  /** Number of open leases. */
  get size(): number {
    return this.#size;
  }

  get oldest(): Lease | undefined {
    return this.#oldest;
  }

  /** Open leases, oldest first. */
  *[Symbol.iterator](): IterableIterator<Lease> {
    for (let lease = this.#oldest; lease !== undefined; lease = lease.newer) yield lease;
  }

  /**
   * Counts the request in flight. The caller then announces the lease and lets it watch its signal. One begun after its
   * worker was removed is like one that was open then: its holder's alone (LB-21).
   */
  open(worker: WorkerState, terms: LeaseTerms): Lease {
    const lease = new Lease(this, worker, terms);
    if (!worker.removed) this.#link(lease);
    worker.countBegin(terms.pinKey);
    return lease;
  }

  /**
   * Lets go of the leases of workers that were removed: they stay with their holders, whose late ends touch nothing
   * here (LB-21, LB-30). O(open leases), once for any number of workers; O(1) when they have none.
   *
   * @param count how many they are
   */
  releaseRemoved(count: number): void {
    let left = count;
    for (let lease = this.#newest; lease !== undefined && left > 0; ) {
      const { older } = lease;
      if (lease.state.removed) {
        this.#unlink(lease);
        left -= 1;
      }
      lease = older;
    }
  }

  /** @internal */
  close(lease: Lease, end: LeaseEnd, outcome: LeaseOutcome | undefined): void {
    // One whose worker was removed is in no list any more.
    if (!lease.state.removed) this.#unlink(lease);
    lease.state.countEnd(lease.terms.pinKey);
    this.#ended(lease, end, outcome);
  }

  #link(lease: Lease): void {
    lease.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = lease;
    else this.#newest.newer = lease;
    this.#newest = lease;
    this.#size += 1;
  }

  #unlink(lease: Lease): void {
    const { older, newer } = lease;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    lease.older = undefined;
    lease.newer = undefined;
    this.#size -= 1;
  }
}
