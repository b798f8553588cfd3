/**
 * Metrics of workers: OB-11 to OB-14, OB-40 and OB-50 to OB-53. A worker's gauges are set when it is registered or
 * the metrics are bound, follow its events, and take the values of OB-81 when it is removed; then nothing here mentions
 * it any more (B58).
 */
import type { WorkerId } from '../workers/candidate.js';
import type { Worker } from '../workers/worker.js';
import type { MetricSink } from './adapter.js';
import type { Subscribe } from './metrics-source.js';
import type { ModelLabels } from './model-labels.js';
import { SummedGauge } from './summed-gauge.js';

const stateNumbers = { closed: 0, open: 1, half_open: 2 } as const;
/** A worker that is not registered any more (OB-81). */
const removed = -1;

/** @returns whether a worker is still the registered one */
export function bindWorkerMetrics(
  registered: readonly Worker[],
  on: Subscribe,
  sink: MetricSink,
  models: ModelLabels,
): (worker: Worker) => boolean {
  const poolSize = new SummedGauge('smg_worker_pool_size', sink);
  const overloaded = new SummedGauge('smg_workers_overloaded', sink);
  // A listener called before ours may have removed the worker an event is about, even one that was only just added, or
  // put another in its place.
  const current = new Map<WorkerId, Worker>();
  const gone = new WeakSet<Worker>();
  const isCurrent = (worker: Worker): boolean => current.get(worker.id) === worker;

  const tellHealth = (worker: Worker): void =>
    sink.set('smg_worker_health', { worker: worker.id }, worker.status === 'ready' ? 1 : 0);
  const tellRequests = ({ id: worker }: Worker, requests: number, keys: number): void => {
    sink.set('smg_worker_requests_active', { worker }, requests);
    sink.set('smg_worker_routing_keys_active', { worker }, keys);
  };
  const tellBreaker = ({ id: worker }: Worker, state: number, failures: number, successes: number): void => {
    sink.set('smg_worker_cb_state', { worker }, state);
    tellStreaks(worker, failures, successes);
  };
  const tellStreaks = (worker: WorkerId, failures: number, successes: number): void => {
    sink.set('smg_worker_cb_consecutive_failures', { worker }, failures);
    sink.set('smg_worker_cb_consecutive_successes', { worker }, successes);
  };
  const tellPools = (worker: Worker): void => {
    const common = { worker_type: worker.kind, connection_mode: worker.connectionMode };
    poolSize.put(
      worker.id,
      worker.models.map((model) => [{ ...common, model: models.of(model) }, 1]),
    );
  };
  const tellOverload = (worker: Worker, vetoed: boolean): void =>
    overloaded.put(worker.id, vetoed ? worker.models.map((model) => [{ model: models.of(model) }, 1]) : []);

  const added = (worker: Worker): void => {
    if (gone.has(worker)) return;
    current.set(worker.id, worker);
    tellHealth(worker);
    tellRequests(worker, worker.inFlight, worker.activeKeys);
    tellBreaker(worker, stateNumbers[worker.breakerState], worker.consecutiveFailures, worker.consecutiveSuccesses);
    tellPools(worker);
    if (worker.overload !== undefined) tellOverload(worker, true);
  };

  on('workerAdded', ({ worker }) => added(worker));
  on('workerReplaced', ({ worker }) => {
    if (isCurrent(worker)) tellPools(worker);
  });
  on('workerRemoved', ({ worker }) => {
    gone.add(worker);
    if (!isCurrent(worker)) return;
    current.delete(worker.id);
    sink.set('smg_worker_health', { worker: worker.id }, removed);
    tellRequests(worker, 0, 0);
    tellBreaker(worker, removed, 0, 0);
    poolSize.put(worker.id, []);
    overloaded.put(worker.id, []);
  });
  on('workerStatus', ({ worker }) => {
    if (isCurrent(worker)) tellHealth(worker);
  });
  on('leaseBegan', ({ worker, inFlight }) => {
    if (isCurrent(worker)) tellRequests(worker, inFlight, worker.activeKeys);
  });
  on('leaseEnded', ({ worker, inFlight }) => {
    if (isCurrent(worker)) tellRequests(worker, inFlight, worker.activeKeys);
  });
  on('overloadChanged', ({ worker, overload }) => {
    if (isCurrent(worker)) tellOverload(worker, overload !== undefined);
  });
  on('breakerTransition', ({ worker, from, to }) => {
    if (!isCurrent(worker)) return;
    sink.count('smg_worker_cb_transitions_total', { worker: worker.id, from, to });
    tellBreaker(worker, stateNumbers[to], worker.consecutiveFailures, worker.consecutiveSuccesses);
  });
  on('breakerOutcome', ({ worker, outcome, consecutiveFailures, consecutiveSuccesses }) => {
    if (!isCurrent(worker)) return;
    sink.count('smg_worker_cb_outcomes_total', { worker: worker.id, outcome });
    tellStreaks(worker.id, consecutiveFailures, consecutiveSuccesses);
  });
  for (const worker of registered) added(worker);
  return isCurrent;
}
