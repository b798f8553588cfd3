/** What runs, who is registered and what is open, for dashboards and tests (LB-16, LB-23, WK-60). Changes nothing. */
import type { RouterCore } from './core.js';
import { checkObject } from './errors.js';
import type { Leg } from './policies/policy.js';
import type { WorkerId } from './workers/candidate.js';
import type { WorkerStatus } from './workers/health.js';
import type { Worker } from './workers/worker.js';
import type { ConnectionMode, WorkerKind } from './workers/worker-spec.js';

/** One pool as `router.pools()` shows it (LB-16). */
export interface PoolView {
  readonly model: string;
  readonly leg: Leg;
  /** Name of the policy it runs. */
  readonly policy: string;
  /** The policy's resolved options. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Ids in registration order, available or not. */
  readonly workers: readonly WorkerId[];
}

/** Open leases (LB-23). */
export interface LeaseView {
  /** How many there are; those of removed workers are their holders' alone (LB-21). */
  readonly open: number;
  /** Age of the oldest in milliseconds; 0 without any. */
  readonly oldestAgeMs: number;
  /** Open leases by worker; workers without any are left out. */
  readonly byWorker: ReadonlyMap<WorkerId, number>;
}

/** Which workers `workers()` lists; every condition given must hold (WK-60). */
export interface WorkerFilter {
  readonly model?: string | undefined;
  readonly kind?: WorkerKind | undefined;
  readonly connectionMode?: ConnectionMode | undefined;
  readonly status?: WorkerStatus | undefined;
}

/** Every pool, in the order of the legs and of registration. */
export function poolViews(core: RouterCore): PoolView[] {
  return [...core.pools].map(({ model, leg, policy, plan, all }) => ({
    model,
    leg,
    policy: policy.name,
    options: { ...plan.options },
    workers: [...all.members()].map((worker) => worker.id),
  }));
}

/** O(open leases). */
export function leaseView({ leases, time }: RouterCore): LeaseView {
  const byWorker = new Map<WorkerId, number>();
  for (const { worker } of leases) byWorker.set(worker.id, (byWorker.get(worker.id) ?? 0) + 1);
  const { oldest } = leases;
  return { open: leases.size, oldestAgeMs: oldest === undefined ? 0 : time.now - oldest.terms.begunAt, byWorker };
}

/** In registration order. @throws TypeError for a filter that is none */
export function listWorkers(core: RouterCore, filter: WorkerFilter): Worker[] {
  const { model, kind, connectionMode, status } = checkObject(filter, 'filter');
  return [...core.workers.values()].filter(
    (worker) =>
      (model === undefined || worker.models.includes(model)) &&
      (kind === undefined || worker.kind === kind) &&
      (connectionMode === undefined || worker.connectionMode === connectionMode) &&
      (status === undefined || worker.status === status),
  );
}
