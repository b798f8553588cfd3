/** Whom a host should poll for load, and how often: the rules are the library's, the polling is the host's (LR-20 to LR-25). */
import type { RouterCore } from './core.js';
import { checkObject } from './errors.js';
import type { WorkerId } from './workers/candidate.js';
import type { WorkerState } from './workers/worker.js';
import type { ConnectionMode, WorkerKind } from './workers/worker-spec.js';

/** Workers that are polled together: hand one tick of a group over as one batch (LR-21). */
export interface PollGroup {
  readonly model: string;
  readonly kind: WorkerKind;
  readonly connectionMode: ConnectionMode;
  /** The shortest interval a member asks for, at least 1 000 ms; else the router's `loadMonitorIntervalMs` (LR-20). */
  readonly intervalMs: number;
  /** Its ready workers in registration order; others are not polled (LR-21). May be empty. */
  readonly workers: readonly WorkerId[];
}

/** What the host wants reports for, beside selection. */
export interface PollOptions {
  /** Poll only groups whose reports somebody needs (LR-25). Default false: every group. */
  readonly disableLoadMonitoring?: boolean | undefined;
  /** The host exports engine metrics, so every group is needed. Default false. */
  readonly engineMetrics?: boolean | undefined;
}

/** Groups by model, kind and connection mode, in registration order of their first worker. O(workers). */
export function pollGroups(core: RouterCore, options: PollOptions): PollGroup[] {
  const members = new Map<string, { readonly model: string; readonly workers: WorkerState[] }>();
  for (const worker of core.workers.values()) {
    for (const model of worker.models) {
      const key = `${worker.kind} ${worker.connectionMode} ${model}`;
      const group = members.get(key) ?? { model, workers: [] };
      members.set(key, group);
      group.workers.push(worker);
    }
  }
  const all = !checkObject(options).disableLoadMonitoring || options.engineMetrics === true || isLoadAware(core);
  return [...members.values()]
    .filter(({ workers }) => all || workers.some(isProtected))
    .map(({ model, workers }) => groupOf(core, model, workers));
}

function groupOf(core: RouterCore, model: string, workers: readonly WorkerState[]): PollGroup {
  const { kind, connectionMode } = workers[0] as WorkerState;
  let own = Infinity;
  for (const worker of workers) own = Math.min(own, worker.loadMonitorIntervalMs ?? Infinity);
  const intervalMs = own === Infinity ? core.plan.options.loadMonitorIntervalMs : own;
  const ready = workers.filter((worker) => worker.status === 'ready').map((worker) => worker.id);
  return { model, kind, connectionMode, intervalMs, workers: ready };
}

/** Whether any pool runs a policy that reads reports (LR-26). */
function isLoadAware(core: RouterCore): boolean {
  for (const pool of core.pools) if (pool.policy.needs.reports) return true;
  return false;
}

function isProtected({ settings }: WorkerState): boolean {
  return settings.overload.waitingRequests !== undefined || settings.overload.tokenUsage !== undefined;
}
