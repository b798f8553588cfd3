/**
 * The admission window of one decode worker: how many disaggregated requests it may hold at a time (LM-33).
 *
 * The library only answers now; waiting for room is the host's (`pdAdmissionWaitSecs`). Invariant: `inUse` is the sum
 * of the widths of the admissions not yet released, never negative. Every operation is O(1).
 */
import { type LoadReport, ranksOf } from '../load/report.js';

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
   * @throws TypeError for a width that is not an integer ≥ 1
   */
  tryAdmit(limit: number | undefined, width = 1): Admission | AdmissionRefusal {
    if (!Number.isInteger(width) || width < 1) throw new TypeError(`width: expected an integer ≥ 1, got ${width}`);
    if (limit !== undefined) {
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
 * @param report the worker's fresh report, `worker.report`; ranks that do not say count 0
 */
export function admissionLimit(
  labels: ReadonlyMap<string, string>,
  report: LoadReport | undefined,
): number | undefined {
  const label = labels.get('max_running_requests');
  if (label !== undefined && /^[1-9]\d{0,14}$/.test(label)) return Number(label);
  if (report === undefined) return undefined;
  let reported = 0;
  for (const { maxRunningRequests = 0 } of ranksOf(report)) reported += maxRunningRequests;
  return reported >= 1 ? reported : undefined;
}
