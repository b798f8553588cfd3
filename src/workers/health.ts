/**
 * Worker status and the optional helper that derives it from health probes (WK-18, WK-19).
 *
 * A host may set the status itself, feed probe results, or do both: every change of status starts the counters anew.
 * O(1) a probe.
 */

/** Only `ready` workers receive new requests (WK-18). */
export type WorkerStatus = 'pending' | 'ready' | 'not_ready' | 'failed' | 'draining';

/** All statuses; the position is the number used on the wire, 0 to 4 (WK-18). */
export const workerStatuses: readonly WorkerStatus[] = ['pending', 'ready', 'not_ready', 'failed', 'draining'];

/** The thresholds of WK-19; integers ≥ 1. */
export interface HealthConfig {
  /** Consecutive failed probes that make a ready worker not ready. */
  readonly failureThreshold: number;
  /** Consecutive successful probes that make it ready. */
  readonly successThreshold: number;
}

/** Probes, in failure thresholds, after which a pending worker that never got ready counts as failed. */
const pendingPatience = 10;
/** Further failures, in failure thresholds, that turn a not-ready worker into a failed one. */
const notReadyPatience = 3;

/** Status of one worker with the probe counters behind it. */
export class HealthState {
  #config: HealthConfig;
  #status: WorkerStatus;
  #successes = 0;
  #failures = 0;
  /** Since the status was entered. */
  #probes = 0;

  constructor(config: HealthConfig, status: WorkerStatus) {
    this.#config = config;
    this.#status = status;
  }

  get status(): WorkerStatus {
    return this.#status;
  }

  /** Sets the status; returns whether it changed. The same status again keeps the counters. */
  setStatus(status: WorkerStatus): boolean {
    if (status === this.#status) return false;
    this.#status = status;
    this.#successes = 0;
    this.#failures = 0;
    this.#probes = 0;
    return true;
  }

  /** Applies one probe result (WK-19); returns the new status when it changed. Ignored while draining. */
  recordProbe(ok: boolean): WorkerStatus | undefined {
    if (this.#status === 'draining') return undefined;
    this.#probes += 1;
    this.#successes = ok ? this.#successes + 1 : 0;
    this.#failures = ok ? 0 : this.#failures + 1;
    const next = this.#next();
    return this.setStatus(next) ? next : undefined;
  }

  /** Applies other thresholds from the next probe on; status and counters stay. */
  configure(config: HealthConfig): void {
    this.#config = config;
  }

  #next(): WorkerStatus {
    const { failureThreshold, successThreshold } = this.#config;
    const status = this.#status;
    if (status === 'ready') return this.#failures >= failureThreshold ? 'not_ready' : status;
    if (this.#successes >= successThreshold) return 'ready';
    if (status === 'pending' && this.#probes >= pendingPatience * failureThreshold) return 'failed';
    if (status === 'not_ready' && this.#failures >= notReadyPatience * failureThreshold) return 'failed';
    return status;
  }
}
