/** What a selection returns when it found a worker, and how a decision becomes a result: commit, then tell (LB-12, LB-50). */
import { type BeginOptions, beginLease, pinKeyOf } from './begin.js';
import type { RouterCore } from './core.js';
import {
  type Attempt,
  type CandidateFilter,
  checkCandidates,
  commit,
  decide,
  emptyOutcome,
  recordOfAttempt,
  workerOf,
} from './decide.js';
import { checkObject } from './errors.js';
import type { Lease } from './lease.js';
import { warnAboutUse } from './option-warnings.js';
import type { Pool } from './pool.js';
import { RequestView, type RouteRequest } from './request.js';
import { type DecisionRecord, type NotSelected, notSelected } from './selection.js';
import { shedRetryAfterMs } from './workers/overload.js';
import type { Worker, WorkerState } from './workers/worker.js';

/** Options of `selection.begin`. */
export interface SelectedBeginOptions extends BeginOptions {
  /**
   * `refuse`: when the worker came under overload veto between selection and dispatch, nothing begins and the result is
   * a shed of stage `dispatch` (OV-22). Default `serve`.
   */
  readonly ifOverloaded?: 'serve' | 'refuse' | undefined;
}

/** A worker was selected (LB-11). Nothing is in flight until `begin`. */
export class Selected {
  /** Tells it from a `NotSelected`. */
  readonly ok = true;
  /** Live: its properties go on changing. */
  readonly worker: Worker;
  /** How the decision came about. */
  readonly record: DecisionRecord;
  readonly #core: RouterCore;
  readonly #pool: Pool;
  readonly #view: RequestView;

  /** @internal */
  constructor(core: RouterCore, attempt: Attempt, worker: Worker) {
    this.worker = worker;
    this.record = recordOfAttempt(attempt);
    this.#core = core;
    this.#pool = attempt.scope.pool;
    this.#view = attempt.view;
  }

  /** Counts the request in flight, with its routing key, and gives the lease that ends it (LB-20, WK-30, WK-40). */
  begin(options?: BeginOptions & { readonly ifOverloaded?: 'serve' | undefined }): Lease;
  begin(options: SelectedBeginOptions): Lease | NotSelected;
  begin(options: SelectedBeginOptions = {}): Lease | NotSelected {
    const core = this.#core;
    core.advance();
    const worker = this.worker as WorkerState;
    if (checkObject(options).ifOverloaded === 'refuse' && worker.vetoAt(core.time.now) !== undefined)
      return this.#shed(worker);
    return beginLease(core, worker, pinKeyOf(core, this.#pool, this.#view), options);
  }

  #shed(worker: WorkerState): NotSelected {
    const core = this.#core;
    const retryAfterMs = shedRetryAfterMs([worker], core.plan.options.loadMonitorIntervalMs);
    const shed = notSelected('overloaded', 0, this.record, { stage: 'dispatch', retryAfterMs });
    if (core.hub.heard('notSelected')) core.hub.emit('notSelected', shed);
    return shed;
  }
}

/** Either a worker or a typed reason (LB-11). */
export type Selection = Selected | NotSelected;

/** Decides and records in one synchronous step. @throws TypeError for data of the wrong type; nothing changed then */
export function selectWorker(core: RouterCore, request: RouteRequest, candidates?: CandidateFilter): Selection {
  const view = new RequestView(request);
  const narrowed = checkCandidates(candidates);
  const now = core.advance();
  return finish(core, decide(core, view, now, core.random, { narrowed }));
}

/** Commits an attempt and tells whoever listens. */
export function finish(core: RouterCore, attempt: Attempt): Selection {
  const worker = workerOf(attempt.decision);
  const selection = worker === undefined ? emptyOutcome(core, attempt) : new Selected(core, attempt, worker);
  core.hub.hold();
  try {
    commit(attempt);
  } finally {
    core.hub.release();
  }
  tell(core, selection);
  warnAboutUse(core, attempt.scope.pool, attempt.view);
  return selection;
}

/** Announces an outcome. */
export function tell(core: RouterCore, selection: Selection): void {
  if (selection.ok) {
    const { worker, record } = selection;
    if (core.hub.heard('selected')) core.hub.emit('selected', { worker, record });
  } else if (core.hub.heard('notSelected')) {
    core.hub.emit('notSelected', selection);
  }
}
