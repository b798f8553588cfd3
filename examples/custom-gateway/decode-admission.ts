/**
 * Waiting for a place on a decode worker: a window of kvroute for each worker, and the queue in front of it, which is the
 * host's part. First come, first served; a request leaves the queue when it is admitted, when it has waited too long, or
 * when its client leaves.
 */
import { type Admission, type AdmissionRefusal, AdmissionWindow, admissionLimit, type Worker } from 'kvroute';
import type { HostMetrics } from 'kvroute/metrics';

/** What a request that is not admitted becomes. */
export type NotAdmitted = 'shed' | 'client_left';

interface Gate {
  readonly window: AdmissionWindow;
  /** Each tries to enter and tells whether it is gone from the queue. */
  readonly queue: Set<() => boolean>;
}

export class DecodeAdmission {
  readonly #waitMs: number;
  readonly #metrics: HostMetrics;
  /** Belongs to the worker instance, so it goes with it. */
  readonly #gates = new WeakMap<Worker, Gate>();

  /** @param waitMs longest wait; 0 sheds at once */
  constructor(waitMs: number, metrics: HostMetrics) {
    this.#waitMs = waitMs;
    this.#metrics = metrics;
  }

  /** @param width how many places the request needs: the number of sequences it asks for */
  async admit(worker: Worker, width: number, signal: AbortSignal): Promise<Admission | NotAdmitted> {
    const gate = this.#gateOf(worker);
    const limit = admissionLimit(worker.labels, worker.report);
    let admission: Admission | AdmissionRefusal = limit !== undefined && width > limit ? 'too_wide' : 'full';
    if (gate.queue.size === 0) admission = tryEnter(gate, worker, width);
    if (admission === 'full' && this.#waitMs > 0) {
      this.#metrics.admissionWait();
      admission = await this.#wait(gate, worker, width, signal);
    }
    if (typeof admission === 'object') return admission;
    if (signal.aborted) return 'client_left';
    this.#metrics.admissionShed();
    return 'shed';
  }

  #wait(gate: Gate, worker: Worker, width: number, signal: AbortSignal): Promise<Admission | AdmissionRefusal> {
    return new Promise((resolve) => {
      const leave = (result: Admission | AdmissionRefusal) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
        gate.queue.delete(enter);
        resolve(result);
      };
      const enter = () => {
        const admission = tryEnter(gate, worker, width);
        if (admission === 'full') return false;
        leave(admission);
        return true;
      };
      const giveUp = () => {
        leave('full');
        // A wide request may have stood before a narrow one that fits.
        callNext(gate);
      };
      const timer = setTimeout(giveUp, this.#waitMs);
      signal.addEventListener('abort', giveUp);
      gate.queue.add(enter);
      if (signal.aborted) giveUp();
    });
  }

  #gateOf(worker: Worker): Gate {
    let gate = this.#gates.get(worker);
    if (gate === undefined) {
      gate = { window: new AdmissionWindow(), queue: new Set() };
      this.#gates.set(worker, gate);
    }
    return gate;
  }
}

function tryEnter(gate: Gate, worker: Worker, width: number): Admission | AdmissionRefusal {
  const admission = gate.window.tryAdmit(admissionLimit(worker.labels, worker.report), width);
  if (typeof admission === 'string') return admission;
  return {
    release() {
      admission.release();
      callNext(gate);
    },
  };
}

/** Lets in from the front of the queue for as long as there is room. */
function callNext(gate: Gate): void {
  for (const enter of gate.queue) if (!enter()) return;
}
