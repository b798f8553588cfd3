/**
 * The metrics of spec 09 that only a host can set (OB-15, OB-25, OB-42, OB-70, OB-71): one method each, so that names and
 * labels need not be written twice. Stateless; every call is one sample.
 */
import type { WorkerId } from '../workers/candidate.js';
import type { WorkerKind } from '../workers/worker-spec.js';
import { checkAdapter, type MetricsAdapter } from './adapter.js';

/** What the host has to tell. Errors of the adapter pass through to the caller. */
export interface HostMetrics {
  /** A health probe was answered, or not (OB-15). Beside `router.recordProbe`. */
  healthCheck(workerType: WorkerKind, ok: boolean): void;
  /** A subscription to a worker's KV events failed (OB-25). */
  kvSubscriptionFailed(worker: WorkerId, reason: 'panic' | 'join_error' | 'intern_failed'): void;
  /** A disaggregated request waits for a place on its decode worker (OB-42, LM-33). */
  admissionWait(): void;
  /** It was shed instead: counts as a shed of stage `pd_admission` too (OB-41, OB-42). */
  admissionShed(): void;
  /** An attempt after the first (OB-70). `endpoint` is the route's template, never a path with ids in it. */
  retry(workerType: WorkerKind, endpoint: string): void;
  /** The last attempt failed (OB-70). */
  retriesExhausted(workerType: WorkerKind, endpoint: string): void;
  /** A body was buffered to be read for routing, or streamed (OB-71). `reason` is `policy_needs_text` and the like. */
  bodyPath(path: 'buffered' | 'streamed', reason: string): void;
}

/** The host's own metrics through the adapter of `bindMetrics`. @throws TypeError when it lacks one of its methods */
export function hostMetrics(adapter: MetricsAdapter): HostMetrics {
  checkAdapter(adapter);
  return {
    healthCheck: (workerType, ok) =>
      adapter.counter(
        'smg_worker_health_checks_total',
        { worker_type: workerType, result: ok ? 'success' : 'failure' },
        1,
      ),
    kvSubscriptionFailed: (worker, reason) =>
      adapter.counter('smg_kv_event_subscription_failures_total', { worker, reason }, 1),
    admissionWait: () => adapter.counter('smg_pd_admission_waits_total', {}, 1),
    admissionShed: () => {
      adapter.counter('smg_worker_overload_shed_total', { stage: 'pd_admission' }, 1);
      adapter.counter('smg_pd_admission_sheds_total', {}, 1);
    },
    retry: (workerType, endpoint) =>
      adapter.counter('smg_worker_retries_total', { worker_type: workerType, endpoint }, 1),
    retriesExhausted: (workerType, endpoint) =>
      adapter.counter('smg_worker_retries_exhausted_total', { worker_type: workerType, endpoint }, 1),
    bodyPath: (path, reason) => adapter.counter('smg_router_request_body_path_total', { path, reason }, 1),
  };
}
