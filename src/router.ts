/**
 * The router: workers and reports come in, requests go to workers. This file is the public face; each method advances
 * time, delegates to the file that does the thing, and holds no state of its own.
 */
import { type Acquired, acquire } from './acquire.js';
import { type BeginOptions, beginElsewhere, type ElsewhereOptions } from './begin.js';
import { RouterCore } from './core.js';
import { type CandidateFilter, checkCandidates } from './decide.js';
import { checkObject, refuse } from './errors.js';
import type { Placement, RouterEventName, RouterListener, Warning } from './events.js';
import { explain, rank } from './explain.js';
import {
  addWorker,
  type ReconcileResult,
  reconcile,
  recordProbe,
  removeWorker,
  replaceWorker,
  setStatus,
} from './fleet.js';
import { type LeaseView, leaseView, listWorkers, type PoolView, poolViews, type WorkerFilter } from './inspect.js';
import { type KvEventPort, kvEventPort } from './kv-event-port.js';
import type { Lease } from './lease.js';
import type { LeaseOutcome } from './lease-outcome.js';
import { type LegOptions, type LegsSelection, selectLegs } from './legs.js';
import type { LoadReport } from './load/report.js';
import { warnAboutOptions } from './option-warnings.js';
import { type PollGroup, type PollOptions, pollGroups } from './poll-groups.js';
import { reconfigure } from './reconfigure.js';
import { applyReports, type ReportEntry, type ReportTick } from './reports.js';
import { RequestView, type RouteRequest } from './request.js';
import { type RouteAttempt, type RouteOptions, type RouteResult, route } from './route.js';
import { planRouter, type RouterOptions } from './router-options.js';
import { type Hash64, loadHash } from './runtime/hash.js';
import { type Selection, selectWorker } from './select.js';
import type { Explanation, NotSelected } from './selection.js';
import {
  applyPlacement,
  type RestoreReport,
  restore,
  restorePiece,
  type Snapshot,
  type SnapshotPiece,
  snapshotPieces,
  snapshotVersion,
} from './snapshot.js';
import type { WorkerId } from './workers/candidate.js';
import type { WorkerStatus } from './workers/health.js';
import type { RequestScope } from './workers/outcome-class.js';
import type { Worker } from './workers/worker.js';
import type { WorkerSpec } from './workers/worker-spec.js';

/**
 * Makes a router. This is the one asynchronous step: it prepares the hash (LB-4). From then on everything is
 * synchronous.
 *
 * @throws RoutingConfigError (as a rejection) naming the field, the value and what was expected
 */
export async function createRouter(options: RouterOptions = {}): Promise<Router> {
  const plan = planRouter(options);
  const hash = (plan.options.hash as Hash64 | undefined) ?? (await loadHash());
  return new Router(new RouterCore(plan, hash));
}

/** Decides which worker serves each request. Made by `createRouter`. */
export class Router {
  readonly #core: RouterCore;
  /** The engines' KV-cache events. */
  readonly kvEvents: KvEventPort;

  /** @internal */
  constructor(core: RouterCore) {
    this.#core = core;
    this.kvEvents = kvEventPort(core);
    warnAboutOptions(core);
  }

  // ——— selecting ———

  /**
   * Selects a worker for a request: decides and records in one synchronous step (LB-10, LB-12). A normal outcome never
   * throws; when nothing can be selected the result says why.
   *
   * @param candidates narrows the pool: ids or workers; others are ignored, availability applies all the same
   * @throws TypeError naming the field, for request data of the wrong type; nothing changed then (LB-42)
   */
  selectWorker(request: RouteRequest, candidates?: CandidateFilter): Selection {
    return selectWorker(this.#core, request, candidates);
  }

  /**
   * Selects and begins in one call (LB-20). With a signal that is aborted already nothing is selected, counted or
   * credited: the lease that comes back has ended (B29).
   */
  acquire(request: RouteRequest, options: BeginOptions = {}): Acquired | NotSelected {
    return acquire(this.#core, request, options);
  }

  /**
   * Counts a dispatch that was decided elsewhere (LB-20).
   *
   * @throws TypeError when the worker is not registered
   */
  begin(workerId: WorkerId, options: ElsewhereOptions = {}): Lease {
    return beginElsewhere(this.#core, workerId, options);
  }

  /** Selects all legs of a disaggregated request, or says which one is missing and why (LM-30 to LM-36). */
  selectLegs(request: RouteRequest, options: LegOptions = {}): LegsSelection {
    return selectLegs(this.#core, request, options);
  }

  /**
   * Runs the whole loop: select, begin, the host's own attempt, end, classify, retry elsewhere (LB-25).
   *
   * @throws (rejects with) what the last attempt threw
   */
  route<T>(request: RouteRequest, attempt: RouteAttempt<T>, options: RouteOptions<T> = {}): Promise<RouteResult<T>> {
    return route(this.#core, request, attempt, options);
  }

  /** What `selectWorker` would do now, and everything it rests on, as typed data (LB-13). Changes nothing (LB-12). */
  explain(request: RouteRequest, candidates?: CandidateFilter): Explanation {
    const view = new RequestView(request);
    const narrowed = checkCandidates(candidates);
    return explain(this.#core, view, this.#core.advance(), narrowed);
  }

  /**
   * The candidates best first: the order of repeated decisions, each excluding those already ranked (LB-14). Records
   * nothing. O(n) decisions for n candidates: give a `limit` in large fleets.
   */
  rank(request: RouteRequest, options: { readonly limit?: number | undefined } = {}): WorkerId[] {
    const limit = checkObject(options).limit ?? Infinity;
    if (typeof limit !== 'number' || !(limit >= 0)) throw refuse('limit', 'a number ≥ 0', limit);
    return rank(this.#core, new RequestView(request), this.#core.advance(), undefined, limit);
  }

  // ——— workers ———

  /**
   * Registers a worker.
   *
   * @throws RoutingConfigError when the spec is wrong or the id is taken, or what a policy factory of your own throws;
   * nothing changed then
   */
  addWorker(spec: WorkerSpec): Worker {
    this.#core.advance();
    return addWorker(this.#core, spec);
  }

  /** Registers a worker, or replaces the one under its id, which keeps its counts, credit and breaker (WK-3). */
  replaceWorker(spec: WorkerSpec): Worker {
    this.#core.advance();
    return replaceWorker(this.#core, spec);
  }

  /** Removes a worker and everything held for it (LB-30); false when it is not registered. Never refused. */
  removeWorker(id: WorkerId): boolean {
    this.#core.advance();
    return removeWorker(this.#core, id);
  }

  /**
   * Makes the fleet equal to a desired list (WK-66).
   *
   * @throws RoutingConfigError before anything changed; or what a policy factory of your own throws: then the removals and
   * what stands before that worker in the list are done, and another call does the rest
   */
  reconcile(specs: readonly WorkerSpec[]): ReconcileResult {
    this.#core.advance();
    return reconcile(this.#core, specs);
  }

  /** Sets a worker's status (WK-18); false when it is not registered. `draining` removes it after `drainSettleMs`. */
  setStatus(id: WorkerId, status: WorkerStatus): boolean {
    this.#core.advance();
    return setStatus(this.#core, id, status);
  }

  /** Applies a health probe's result by the table of WK-19; false when the worker is not registered. */
  recordProbe(id: WorkerId, ok: boolean): boolean {
    this.#core.advance();
    return recordProbe(this.#core, id, ok);
  }

  /**
   * Feeds an outcome to a worker's breaker without a lease, for dispatches counted elsewhere (CB-32); false when the
   * worker is not registered.
   */
  recordOutcome(id: WorkerId, outcome: LeaseOutcome, scope?: RequestScope | string): boolean {
    const shared = this.#core.scopeOf(scope);
    this.#core.advance();
    const worker = this.#core.workers.get(id);
    if (worker === undefined) return false;
    this.#core.recordOutcome(worker, outcome, shared, undefined);
    return true;
  }

  /** A registered worker; undefined for an unknown id. */
  worker(id: WorkerId): Worker | undefined {
    this.#core.advance();
    return this.#core.workers.get(id);
  }

  /** Registered workers in registration order (WK-60). A filter on a model nobody serves gives an empty list. */
  workers(filter: WorkerFilter = {}): Worker[] {
    this.#core.advance();
    return listWorkers(this.#core, filter);
  }

  /** What runs: every pool with its policy, options and workers (LB-16). */
  pools(): PoolView[] {
    return poolViews(this.#core);
  }

  // ——— signals ———

  /** Hands over one worker's load report, or `null` for a failed poll: a batch of one (LR-27). */
  reportLoad(id: WorkerId, report: LoadReport | null): ReportTick {
    return this.reportLoads([[id, report]]);
  }

  /** Hands over one poll tick (LR-22, LR-27). @throws TypeError when it is no list of [id, report] pairs */
  reportLoads(batch: Iterable<ReportEntry>): ReportTick {
    this.#core.advance();
    return applyReports(this.#core, batch);
  }

  /** Whom to poll for load, and how often (LR-20 to LR-25). The host polls and hands each tick to `reportLoads`. */
  pollGroups(options: PollOptions = {}): PollGroup[] {
    this.#core.advance();
    return pollGroups(this.#core, options);
  }

  /** Open leases (LB-23). O(open leases). */
  leases(): LeaseView {
    this.#core.advance();
    return leaseView(this.#core);
  }

  /** Pins held, of all models and legs (OB-33). */
  get pinCount(): number {
    return this.#core.pins.size;
  }

  // ——— learned state ———

  /** The learned state as one plain value (LB-33). For a large one see `snapshotPieces`. */
  snapshot(): Snapshot {
    return { version: snapshotVersion, pieces: [...this.snapshotPieces()] };
  }

  /** The learned state piece by piece: pause between pieces so that a large one never blocks for long. */
  snapshotPieces(): Generator<SnapshotPiece, void, undefined> {
    this.#core.advance();
    return snapshotPieces(this.#core);
  }

  /** Rebuilds learned state; unknown workers in it are skipped and counted. @throws SnapshotError, changing nothing */
  restore(snapshot: Snapshot): RestoreReport {
    this.#core.advance();
    return restore(this.#core, snapshot);
  }

  /** Restores one piece of `snapshotPieces`. Never throws. */
  restorePiece(piece: SnapshotPiece): RestoreReport {
    this.#core.advance();
    return restorePiece(this.#core, piece);
  }

  /** Merges a `placement` of another instance (LB-34); returns whether it changed anything. */
  applyPlacement(placement: Placement): boolean {
    this.#core.advance();
    return applyPlacement(this.#core, placement);
  }

  // ——— running ———

  /**
   * Replaces the options; what is left out goes back to its default. Learned state is kept wherever the policy stays
   * the same. `mode`, `clock`, `random`, `seed` and `hash` stay as they were made (LB-35).
   *
   * @throws RoutingConfigError, or what a policy factory of your own throws; nothing changed then
   */
  reconfigure(options: RouterOptions): void {
    this.#core.advance();
    reconfigure(this.#core, options);
  }

  /**
   * Does periodic work that is due, for at most about `maintenanceBudgetMs`; returns whether work is left (LB-5). A host
   * may call it from an interval of its own; without, the work is done in small steps inside other calls. Results never
   * depend on it.
   */
  maintain(): boolean {
    return this.#core.upkeep.maintain(this.#core.time.advance());
  }

  /**
   * What is probably not meant, oldest first; also told as event `warning` (LB-41). At most the last 256, and none about
   * a worker that was removed (LB-30).
   */
  get warnings(): readonly Warning[] {
    return [...this.#core.warnings];
  }

  /** Subscribes to an event and returns the function that unsubscribes (LB-50). */
  on<E extends RouterEventName>(event: E, listener: RouterListener<E>): () => void {
    return this.#core.hub.on(event, listener);
  }

  /** Subscribes for one event. */
  once<E extends RouterEventName>(event: E, listener: RouterListener<E>): () => void {
    return this.#core.hub.once(event, listener);
  }

  /** Unsubscribes a listener given to `on` or `once`; unknown ones are ignored. */
  off<E extends RouterEventName>(event: E, listener: RouterListener<E>): void {
    this.#core.hub.off(event, listener);
  }
}
