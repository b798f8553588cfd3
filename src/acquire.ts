/** Selecting and beginning in one call (LB-20). */
import { type BeginOptions, beginLease, checkBeginOptions } from './begin.js';
import type { RouterCore } from './core.js';
import { decide, emptyOutcome, recordOfAttempt, workerOf } from './decide.js';
import type { Lease } from './lease.js';
import { RequestView, type RouteRequest } from './request.js';
import { forkOf } from './runtime/random.js';
import { selectWorker } from './select.js';
import type { DecisionRecord, NotSelected } from './selection.js';
import type { Worker } from './workers/worker.js';

/** A worker with a lease that has begun. */
export interface Acquired {
  /** Tells it from a `NotSelected`. */
  readonly ok: true;
  /** Live: its properties go on changing. */
  readonly worker: Worker;
  /** How the decision came about. */
  readonly record: DecisionRecord;
  /** Counts in flight, unless the signal was aborted already: then it has ended (B29). */
  readonly lease: Lease;
}

/** @throws TypeError for a request or options of the wrong type; nothing changed then */
export function acquire(core: RouterCore, request: RouteRequest, options: BeginOptions): Acquired | NotSelected {
  checkBeginOptions(core, options);
  if (options.signal?.aborted) return acquireAborted(core, request, options);
  const selection = selectWorker(core, request);
  if (!selection.ok) return selection;
  return { ok: true, worker: selection.worker, record: selection.record, lease: selection.begin(options) };
}

/** The client is gone already: decides as ever, commits nothing, and hands out a lease that has ended (B29). */
function acquireAborted(core: RouterCore, request: RouteRequest, options: BeginOptions): Acquired | NotSelected {
  const view = new RequestView(request);
  const attempt = decide(core, view, core.advance(), forkOf(core.random, core.spareRandom), {});
  const worker = workerOf(attempt.decision);
  if (worker === undefined) return emptyOutcome(core, attempt);
  const lease = beginLease(core, worker, undefined, options);
  return { ok: true, worker, record: recordOfAttempt(attempt), lease };
}
