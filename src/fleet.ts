/**
 * Membership: adding, replacing, removing and reconciling workers, their status, and the one removal routine that
 * informs every holder (LB-30, WK-64). Every change is checked whole before anything of it happens.
 */
import type { RouterCore } from './core.js';
import { RoutingConfigError, refuse } from './errors.js';
import type { ReportLoss } from './events.js';
import { legOfKind } from './pools.js';
import { resolveBreakerConfig } from './workers/breaker.js';
import type { WorkerId } from './workers/candidate.js';
import { type WorkerStatus, workerStatuses } from './workers/health.js';
import { resolveOutcomeCodes } from './workers/outcome-class.js';
import { resolveOverloadThresholds } from './workers/overload.js';
import { sameList, sameSpec } from './workers/same-spec.js';
import { type WorkerSettings, WorkerState } from './workers/worker.js';
import { type CheckedWorkerSpec, checkWorkerSpec, type WorkerSpec } from './workers/worker-spec.js';

/** What `reconcile` did, by id. */
export interface ReconcileResult {
  /** In the order of the list. */
  readonly added: readonly WorkerId[];
  /** Those whose spec changed; they kept their counts (WK-3). */
  readonly replaced: readonly WorkerId[];
  /** Those that the list left out, in registration order. */
  readonly removed: readonly WorkerId[];
  /** How many were left alone, since their spec is the same. */
  readonly unchanged: number;
}

/** Registers a worker. @throws RoutingConfigError when the spec is wrong or the id is taken (WK-3) */
export function addWorker(core: RouterCore, spec: WorkerSpec): WorkerState {
  const checked = checkWorkerSpec(spec);
  if (core.workers.has(checked.id)) {
    throw new RoutingConfigError('worker.id', checked.id, 'is registered already; use replaceWorker');
  }
  return register(core, checked);
}

/** Registers a worker, or replaces the one under its id, which keeps its counts and its breaker (WK-3). */
export function replaceWorker(core: RouterCore, spec: WorkerSpec): WorkerState {
  const checked = checkWorkerSpec(spec);
  const worker = core.workers.get(checked.id);
  if (worker === undefined) return register(core, checked);
  replace(core, worker, checked, spec.status === undefined ? undefined : checked.status);
  return worker;
}

/**
 * Takes a worker out. Its running leases stay with the host and touch nothing any more (LB-21).
 *
 * @param at router time of the removal: when it was due, which may be before now (LB-5)
 */
export function removeWorker(core: RouterCore, id: WorkerId, at: number = core.time.now): boolean {
  const worker = core.workers.get(id);
  if (worker === undefined) return false;
  core.hub.afterwards(() => {
    detach(core, worker, at);
    core.leases.releaseRemoved(worker.inFlight);
  });
  return true;
}

/** The removal routine, but for the leases of the worker, which the caller has to release (LB-30). */
function detach(core: RouterCore, worker: WorkerState, at: number): void {
  core.pools.remove(worker, at);
  loseReport(core, worker, 'removed');
  core.kvEvents.removeWorker(worker.id);
  core.forgetWarnings(worker.id);
  worker.removed = true;
  worker.removeAt = Infinity;
  core.workers.delete(worker.id);
  core.upkeep.workerGone(worker);
  if (core.hub.heard('workerRemoved')) core.hub.emit('workerRemoved', { worker });
}

/**
 * Makes the fleet equal to the list: additions, replacements and removals by id; unchanged workers are left alone (WK-66).
 *
 * @throws RoutingConfigError, nothing changed then; or what a host's own policy factory throws, after what came before it
 */
export function reconcile(core: RouterCore, specs: readonly WorkerSpec[]): ReconcileResult {
  if (!Array.isArray(specs)) throw new RoutingConfigError('workers', specs, 'must be an array of worker specs');
  const wanted = new Map<WorkerId, CheckedWorkerSpec>();
  for (const spec of specs) {
    const checked = checkWorkerSpec(spec);
    if (wanted.has(checked.id)) throw new RoutingConfigError('worker.id', checked.id, 'appears twice in the list');
    const running = core.workers.get(checked.id)?.spec;
    // The spec that runs stands for an equal one: what does not change costs no memory.
    wanted.set(checked.id, running !== undefined && sameSpec(running, checked) ? running : checked);
  }
  return core.hub.afterwards(() => reconcileTo(core, wanted));
}

function reconcileTo(core: RouterCore, wanted: ReadonlyMap<WorkerId, CheckedWorkerSpec>): ReconcileResult {
  const leaving = [...core.workers.values()].filter(({ id }) => !wanted.has(id));
  for (const worker of leaving) detach(core, worker, core.time.now);
  core.leases.releaseRemoved(leaving.reduce((sum, { inFlight }) => sum + inFlight, 0));
  const removed = leaving.map(({ id }) => id);
  const added: WorkerId[] = [];
  const replaced: WorkerId[] = [];
  for (const [id, checked] of wanted) {
    const worker = core.workers.get(id);
    if (worker === undefined) {
      register(core, checked);
      added.push(id);
    } else if (worker.spec !== checked) {
      replace(core, worker, checked, undefined);
      replaced.push(id);
    }
  }
  return { added, replaced, removed, unchanged: wanted.size - added.length - replaced.length };
}

/** Sets a worker's status (WK-18). `draining` starts the settle time after which it is removed (WK-19). */
export function setStatus(core: RouterCore, id: WorkerId, status: WorkerStatus): boolean {
  if (!workerStatuses.includes(status)) throw refuse('status', `one of ${workerStatuses.join(', ')}`, status);
  const worker = core.workers.get(id);
  if (worker === undefined) return false;
  const from = worker.status;
  if (worker.health.setStatus(status)) statusChanged(core, worker, from);
  return true;
}

/** Applies one health probe by the table of WK-19; false when the worker is unknown. */
export function recordProbe(core: RouterCore, id: WorkerId, ok: boolean): boolean {
  const worker = core.workers.get(id);
  if (worker === undefined) return false;
  const from = worker.status;
  if (worker.health.recordProbe(ok) !== undefined) statusChanged(core, worker, from);
  return true;
}

/** Forgets a worker's report and the veto that rests on it; credit stays (LR-30, OV-9). */
export function loseReport(core: RouterCore, worker: WorkerState, reason: ReportLoss): void {
  if (worker.load === undefined) return;
  const wasVetoed = worker.verdict !== undefined;
  worker.load = undefined;
  worker.verdict = undefined;
  if (wasVetoed) core.availabilityChanged(worker);
  if (core.hub.heard('reportLost')) core.hub.emit('reportLost', { worker, reason });
  if (wasVetoed && core.hub.heard('overloadChanged')) core.hub.emit('overloadChanged', { worker, overload: undefined });
}

/** What the router's options and the worker's own blocks make together (OV-4, CB-40). */
function settingsOf(core: RouterCore, spec: CheckedWorkerSpec): WorkerSettings {
  const { options } = core.plan;
  return {
    breaker: resolveBreakerConfig(options, spec.resilience),
    health: options.health,
    // Workers of external providers never get the router's thresholds (OV-4).
    overload: resolveOverloadThresholds(spec.runtime === 'external' ? undefined : options, spec.overload),
    codes: resolveOutcomeCodes(spec.resilience),
  };
}

/** Gives a worker the settings that its spec and the router's options now make; its state stays (CB-41). */
export function applySettings(core: RouterCore, worker: WorkerState): void {
  const settings = settingsOf(core, worker.spec);
  worker.settings = settings;
  worker.health.configure(settings.health);
  core.breakerMoved(worker, worker.breaker.configure(settings.breaker, core.time.now));
  // An open breaker may turn half-open at another moment now.
  core.upkeep.workerDue(worker);
  core.availabilityChanged(worker);
}

function register(core: RouterCore, spec: CheckedWorkerSpec): WorkerState {
  const worker = new WorkerState(spec, settingsOf(core, spec), core.time);
  core.hub.afterwards(() => {
    core.pools.add(worker, core.time.now);
    core.workers.set(worker.id, worker);
    core.kvEvents.addWorker(worker.id, spec.models, spec.kvBlockSize);
    if (core.hub.heard('workerAdded')) core.hub.emit('workerAdded', { worker });
    warnWithoutLeg(core, worker);
    if (spec.status === 'draining') startDraining(core, worker);
  });
  return worker;
}

function replace(
  core: RouterCore,
  worker: WorkerState,
  spec: CheckedWorkerSpec,
  status: WorkerStatus | undefined,
): void {
  core.hub.afterwards(() => {
    const { kind } = worker;
    const isMoved = kind !== spec.kind || !sameList(worker.spec.models, spec.models);
    // The worker keeps its place in pools it stays in (WK-23); a replacement is no removal (LM-25).
    if (isMoved) core.pools.move(worker, spec, core.time.now);
    else worker.spec = spec;
    loseReport(core, worker, 'replaced');
    core.pools.pairingChanged();
    worker.revision += 1;
    applySettings(core, worker);
    core.kvEvents.addWorker(worker.id, spec.models, spec.kvBlockSize);
    if (core.hub.heard('workerReplaced')) core.hub.emit('workerReplaced', { worker, revision: worker.revision });
    if (kind !== spec.kind) warnWithoutLeg(core, worker);
    if (status !== undefined) setStatus(core, worker.id, status);
  });
}

/** A worker of a kind that no leg of the mode is served by takes no request (LB-41). */
function warnWithoutLeg(core: RouterCore, { id, kind }: WorkerState): void {
  const { options, legs } = core.plan;
  if (legs.includes(legOfKind[kind])) return;
  const message = `worker ${id} is of kind ${kind}, which mode ${options.mode} never selects`;
  core.warn({ code: 'kindWithoutLeg', message, fields: ['kind', 'mode'], worker: id });
}

function statusChanged(core: RouterCore, worker: WorkerState, from: WorkerStatus): void {
  const { status } = worker;
  core.hub.afterwards(() => {
    worker.removeAt = Infinity;
    core.availabilityChanged(worker);
    if (from === 'ready') loseReport(core, worker, 'not_ready');
    if (core.hub.heard('workerStatus')) core.hub.emit('workerStatus', { worker, from, to: status });
    if (status === 'draining') startDraining(core, worker);
  });
}

function startDraining(core: RouterCore, worker: WorkerState): void {
  const { drainSettleMs } = core.plan.options;
  if (drainSettleMs === 0) {
    removeWorker(core, worker.id);
    return;
  }
  worker.removeAt = core.time.now + drainSettleMs;
  core.upkeep.workerDue(worker);
}
