/**
 * The admission window of one decode worker: how many disaggregated requests it may hold at a time (LM-33).
 *
 * The library only answers now; waiting for room is the host's (`pdAdmissionWaitSecs`). Invariant: `inUse` is the sum
 * of the widths of the admissions not yet released, never negative. Every operation is O(1).
 */
import { refuse } from '../errors.js';
import { summarizeReport } from '../load/load-summary.js';
import type { LoadReport } from '../load/report.js';

/** One admitted request; give the room back with `release`, of which only the first call counts. */
export interface Admission {
  /** Gives the places back; later calls do nothing. */
  release(): void;
}

/** `full`: try again when somebody released. `too_wide`: it never fits, shed at once. */
export type AdmissionRefusal = 'full' | 'too_wide';

/** Admissions of one worker. It belongs to the worker instance, so a release after its removal touches nothing else. */
export class AdmissionWindow {
  #inUse = 0;

  get inUse(): number {
    return this.#inUse;
  }

  /**
   * Takes `width` places when there is room.
   *
   * @param limit places of the worker, see `admissionLimit`; undefined = no gate. The request is counted all the same,
   * so a limit that becomes known later starts from the truth.
   * @param width places the request needs, an integer ≥ 1: the number of sequences it asks for
   * @throws TypeError for a width that is not an integer ≥ 1, or a limit that is no number
   */
  tryAdmit(limit: number | undefined, width = 1): Admission | AdmissionRefusal {
    if (!Number.isInteger(width) || width < 1) throw refuse('width', 'an integer ≥ 1', width);
    if (limit !== undefined) {
      if (typeof limit !== 'number' || Number.isNaN(limit)) throw refuse('limit', 'a number', limit);
      if (width > limit) return 'too_wide';
      if (this.#inUse + width > limit) return 'full';
    }
    this.#inUse += width;
    let held = width;
    return {
      release: () => {
        this.#inUse -= held;
        held = 0;
      },
    };
  }
}

/**
 * The window of a decode worker in requests: its label `max_running_requests`, else what its engine reports, summed over
 * its ranks. A label that is no positive integer counts as absent; undefined = no window, hence no gate.
 *
 * @param report the worker's fresh report, `worker.report`; ranks that do not say count 0, one that cannot be read is none
 * @throws TypeError when `labels` is no Map
 */
export function admissionLimit(
  labels: ReadonlyMap<string, string>,
  report: LoadReport | undefined,
): number | undefined {
  if (typeof labels?.get !== 'function') throw refuse('labels', 'a Map', labels);
  const label = labels.get('max_running_requests');
  if (typeof label === 'string' && /^[1-9]\d{0,14}$/.test(label)) return Number(label);
  if (report === undefined) return undefined;
  const load = summarizeReport(report, 0, 0);
  const reported = typeof load === 'string' ? 0 : (load.maxRunningRequests ?? 0);
  return reported >= 1 ? reported : undefined;
}
