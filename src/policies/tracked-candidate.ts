/**
 * A candidate literal as policies see it, with what has to outlast the literal: its credit and when its report was
 * first seen (LB-10a). One is kept per id.
 */
import { type LoadSummary, type RefusedReport, summarizeReport } from '../load/load-summary.js';
import type { LoadReport } from '../load/report.js';
import type { ElapsedTime } from '../runtime/clock.js';
import { keyOfPin } from '../sticky/pin-key.js';
import type { Candidate, WorkerId, WorkerSignals } from '../workers/candidate.js';

/** One worker of a policy used alone. */
export class TrackedCandidate implements WorkerSignals {
  readonly id: WorkerId;
  inFlight = 0;
  activeKeys = 0;
  load: LoadSummary | undefined = undefined;
  creditTokens = 0;
  creditRequests = 0;
  /** Where the literal stands in the list of this call. */
  position = 0;
  #keys: Candidate['keysInFlight'];
  /** The last report that could be read. */
  #summary: LoadSummary | undefined;

  constructor(id: WorkerId) {
    this.id = id;
  }

  /** Keys of literals are plain: they count for whatever model and leg the pin belongs to. */
  keyInFlight(pinKey: string): number {
    const keys = this.#keys;
    if (keys === undefined) return 0;
    const key = keyOfPin(pinKey);
    try {
      const count: unknown = keys instanceof Map ? keys.get(key) : Object.hasOwn(keys, key) && Reflect.get(keys, key);
      return isPositive(count) ? count : 0;
    } catch {
      return 0;
    }
  }

  /**
   * Takes over what the literal says. A report of another identity is read once, ages from its `observedAt` or from
   * now, and resets the credit; a report that cannot be read is none and resets nothing (EW-14, EW-15, LR-11a). Counts
   * that cannot be read are none either: nothing throws here, where other literals were taken over already (LB-42).
   */
  update(candidate: Candidate, position: number, time: ElapsedTime, reportMaxAgeMs: number): void {
    this.position = position;
    this.inFlight = candidate.inFlight;
    this.#keys = candidate.keysInFlight;
    this.activeKeys = candidate.activeKeys ?? countKeys(candidate.keysInFlight);
    const report = candidate.report ?? undefined;
    if (report === undefined) this.load = undefined;
    else this.load = report === this.#summary?.report ? this.#summary : this.#read(report, time, reportMaxAgeMs);
  }

  /** A copy to decide on without consequences. */
  clone(): TrackedCandidate {
    const copy = new TrackedCandidate(this.id);
    copy.creditTokens = this.creditTokens;
    copy.creditRequests = this.creditRequests;
    copy.#summary = this.#summary;
    return copy;
  }

  #read(report: LoadReport, time: ElapsedTime, reportMaxAgeMs: number): LoadSummary | undefined {
    const summary = summaryOf(report, time, reportMaxAgeMs);
    if (typeof summary === 'string') return undefined;
    this.#summary = summary;
    this.creditTokens = 0;
    this.creditRequests = 0;
    return summary;
  }
}

function summaryOf(report: LoadReport, time: ElapsedTime, reportMaxAgeMs: number): LoadSummary | RefusedReport {
  try {
    const ageMs = report.observedAt === undefined ? 0 : time.ageOfReading(report.observedAt);
    const observedAt = time.now - ageMs;
    return summarizeReport(report, observedAt, observedAt + reportMaxAgeMs);
  } catch {
    return 'invalid';
  }
}

function countKeys(keys: Candidate['keysInFlight']): number {
  if (keys === undefined) return 0;
  try {
    let active = 0;
    for (const count of keys instanceof Map ? keys.values() : Object.values(keys)) if (isPositive(count)) active += 1;
    return active;
  } catch {
    return 0;
  }
}

function isPositive(count: unknown): count is number {
  return typeof count === 'number' && count > 0;
}
