/**
 * The whole loop for a host that wants it (LB-25): select, begin, let the host attempt, end, classify, and try again
 * elsewhere. Waiting is the host's: without a `sleep` there is none. Sheds are not retried.
 */
import type { AbortSignalLike } from './abort-signal.js';
import { retryDelayMs } from './backoff.js';
import { checkBeginOptions } from './begin.js';
import type { RouterCore } from './core.js';
import { type CandidateFilter, checkCandidates, decide } from './decide.js';
import { checkObject, refuse } from './errors.js';
import type { Lease } from './lease.js';
import type { LeaseOutcome } from './lease-outcome.js';
import type { OptionsOf } from './options/spec.js';
import { retryTable } from './options/table.js';
import { resolveOptions } from './options/validate.js';
import { RequestView, type RouteRequest } from './request.js';
import { finish } from './select.js';
import type { DecisionRecord, NotSelected } from './selection.js';
import type { WorkerId } from './workers/candidate.js';
import { classifyOutcome, RequestScope } from './workers/outcome-class.js';
import type { Worker, WorkerState } from './workers/worker.js';

/** What one attempt is told. */
export interface AttemptContext {
  /** 1 for the first. */
  readonly attempt: number;
  /**
   * The attempt's lease. `route` ends it when the attempt settles, unless the attempt follows a body with it
   * (`lease.follow`): then the body's end does.
   */
  readonly lease: Lease;
  readonly record: DecisionRecord;
}

/** Sends the request to `worker` and returns the answer, or throws when there is none. */
export type RouteAttempt<T> = (worker: Worker, context: AttemptContext) => Promise<T> | T;

/** How `router.route` runs its loop; every option may be left out. */
export interface RouteOptions<T> {
  /** Ends the loop: the running attempt's lease ends as aborted, no further one begins. */
  readonly signal?: AbortSignalLike | undefined;
  /** Narrows the pool (LB-10). */
  readonly candidates?: CandidateFilter | undefined;
  /** Waits; absent = no waiting. */
  readonly sleep?: ((ms: number) => Promise<void>) | undefined;
  /** Limits and backoff for this call; what is left out comes from the router's `retry`. */
  readonly retry?: OptionsOf<typeof retryTable> | undefined;
  /**
   * What an answer means. Default: the number in its `status` or `statusCode`, else 200. When this or the next one
   * throws or returns no outcome (`TypeError`), `route` rejects with that; the lease ends and nothing is recorded.
   */
  readonly outcomeOf?: ((answer: T) => LeaseOutcome) | undefined;
  /** What a thrown error means. Default: an `AbortError` is an abort, a `TimeoutError` a timeout, else `connect`. */
  readonly outcomeOfError?: ((error: unknown) => LeaseOutcome) | undefined;
}

/** An answer came, good or bad; or no worker could be selected. `attempts` = how often `attempt` was called. */
export type RouteResult<T> =
  | { readonly ok: true; readonly value: T; readonly worker: Worker; readonly attempts: number }
  | (NotSelected & { readonly attempts: number });

/**
 * Statuses that are worth another worker. They are the gateway's own and no option: a worker's `retryableStatusCodes`
 * concern its breaker (CB-22).
 */
const retryableStatus: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** @throws whatever the last attempt threw, or the signal's reason when no attempt could begin; TypeError and RoutingConfigError for wrong arguments, before anything begins */
export async function route<T>(
  core: RouterCore,
  request: RouteRequest,
  attempt: RouteAttempt<T>,
  options: RouteOptions<T>,
): Promise<RouteResult<T>> {
  if (typeof attempt !== 'function') throw refuse('attempt', 'a function', attempt);
  const { outcomeOf, outcomeOfError, sleep } = checkObject(options);
  for (const [name, hook] of Object.entries({ outcomeOf, outcomeOfError, sleep })) {
    if (hook !== undefined && typeof hook !== 'function') throw refuse(name, 'a function', hook);
  }
  const retry = resolveOptions(retryTable, { ...core.plan.options.retry, ...options.retry }, 'retry.');
  const view = new RequestView(request);
  const narrowed = checkCandidates(options.candidates);
  const scope = new RequestScope();
  checkBeginOptions(core, { signal: options.signal });
  const failed: WorkerId[] = [];
  let attempts = 0;
  for (let number = 1; ; number++) {
    if (options.signal?.aborted) throw options.signal.reason;
    const isLast = number >= retry.maxAttempts;
    const selection = selectAvoiding(core, view, narrowed, failed);
    if (!selection.ok) {
      if (isLast || !selection.retryable) return { ...selection, attempts };
    } else {
      const { worker, record } = selection;
      const lease = selection.begin({ signal: options.signal, scope });
      attempts += 1;
      const settled = await settle(attempt, worker, { attempt: attempts, lease, record }, options).catch((error) => {
        // Even when the host's reading of an outcome fails, nothing stays counted (LB-15).
        lease.end();
        throw error;
      });
      const isOver = isLast || options.signal?.aborted || !isWorthRetrying(settled.outcome, worker as WorkerState);
      // A body that is followed ends the lease of an answer that is handed on; nobody reads one that is retried (WK-34).
      if (!isOver || !lease.following || settled.error !== undefined) lease.end(settled.outcome);
      if (isOver) {
        if (settled.error !== undefined) throw settled.error.thrown;
        return { ok: true, value: settled.value as T, worker, attempts };
      }
      failed.push(worker.id);
    }
    await options.sleep?.(retryDelayMs(number, retry, core.random));
  }
}

/** Selects without the workers that failed already; when that leaves nobody, with them (LB-25). */
function selectAvoiding(
  core: RouterCore,
  view: RequestView,
  narrowed: ReadonlySet<WorkerId> | undefined,
  failed: readonly WorkerId[],
): ReturnType<typeof finish> {
  const now = core.advance();
  const own = view.exclude ?? [];
  const exclude = [...own, ...failed];
  const avoiding = decide(core, view, now, core.random, { narrowed, exclude });
  // Also when others are left of which none may be chosen: the client has named the worker, or they are at their cap.
  const leavesNobody = avoiding.decision.worker === undefined && avoiding.available.size > 0 && failed.length > 0;
  return finish(core, leavesNobody ? decide(core, view, now, core.random, { narrowed, exclude: own }) : avoiding);
}

interface Settled<T> {
  readonly value?: T;
  readonly error?: { readonly thrown: unknown } | undefined;
  readonly outcome: LeaseOutcome;
}

async function settle<T>(
  attempt: RouteAttempt<T>,
  worker: Worker,
  context: AttemptContext,
  options: RouteOptions<T>,
): Promise<Settled<T>> {
  let value: T;
  try {
    value = await attempt(worker, context);
  } catch (thrown) {
    const outcome = (options.outcomeOfError ?? outcomeOfError)(thrown);
    return { error: { thrown }, outcome: checkOutcome(outcome, 'outcomeOfError') };
  }
  return { value, outcome: checkOutcome((options.outcomeOf ?? outcomeOfAnswer)(value), 'outcomeOf') };
}

/** A hook in plain JavaScript may forget its outcome on some path. @throws TypeError on the hook's name */
function checkOutcome(outcome: LeaseOutcome, hook: string): LeaseOutcome {
  if (typeof outcome !== 'object' || outcome === null) throw refuse(hook, 'to return an outcome', outcome);
  return outcome;
}

function outcomeOfAnswer(answer: unknown): LeaseOutcome {
  const { status, statusCode } = (answer ?? {}) as { readonly status?: unknown; readonly statusCode?: unknown };
  const code = status ?? statusCode;
  return { status: typeof code === 'number' ? code : 200 };
}

function outcomeOfError(error: unknown): LeaseOutcome {
  const name = (error as { readonly name?: unknown } | null | undefined)?.name;
  if (name === 'AbortError') return { aborted: true };
  return { error: name === 'TimeoutError' ? 'timeout' : 'connect' };
}

/** No answer, or a status that another worker may not give. A body that broke off was already being relayed. */
function isWorthRetrying(outcome: LeaseOutcome, worker: WorkerState): boolean {
  if ('aborted' in outcome) return false;
  if ('error' in outcome) return outcome.error !== 'body';
  return retryableStatus.has(outcome.status) || classifyOutcome(outcome, worker.settings.codes) === 'failure';
}
