/** A worker as the router keeps it, without a router. */
import { ElapsedTime } from '../../src/runtime/clock.js';
import { type WorkerSettings, WorkerState } from '../../src/workers/worker.js';
import { checkWorkerSpec, type WorkerSpec } from '../../src/workers/worker-spec.js';

const defaults: WorkerSettings = {
  breaker: { failureThreshold: 10, successThreshold: 3, timeoutDurationMs: 60_000 },
  health: { failureThreshold: 3, successThreshold: 2 },
  overload: { waitingRequests: undefined, tokenUsage: undefined },
  codes: { capacity: new Set(), retryable: new Set() },
};

export function workerState(
  spec: WorkerSpec,
  settings: Partial<WorkerSettings> = {},
  time = new ElapsedTime(() => 0),
): WorkerState {
  return new WorkerState(checkWorkerSpec(spec), { ...defaults, ...settings }, time);
}
