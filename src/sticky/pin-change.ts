/**
 * What one decision makes of its pin: the stored workers as they will be, worked out while deciding and written only
 * when the decision is recorded (LB-12, ST-35a). At most two workers, the first tried first (ST-33).
 *
 * Workers that left the pool are dropped when their pin is next touched (LB-30); those that are merely unavailable
 * stay (ST-62).
 */
import type { WorkerId, WorkerSignals } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import type { Pin, PinMap } from './pins.js';

/** A pin as a decision found it, and as it leaves it. */
export class PinChange {
  /** Whether the key had a pin. */
  readonly existed: boolean;
  /** The first stored worker that is a candidate (ST-34, MA-5). */
  readonly pinned: WorkerSignals | undefined;
  readonly #pinKey: string;
  #primary: WorkerId | undefined;
  #secondary: WorkerId | undefined;

  /** @param registered workers of the pool; a candidate is one of them without being looked up */
  constructor(pinKey: string, pin: Pin | undefined, candidates: CandidateSet, registered: ReadonlySet<WorkerId>) {
    this.#pinKey = pinKey;
    this.existed = pin !== undefined;
    if (pin === undefined) return;
    const { primary, secondary } = pin;
    const first = candidates.get(primary);
    const second = secondary === undefined ? undefined : candidates.get(secondary);
    this.pinned = first ?? second;
    if (first !== undefined || registered.has(primary)) this.append(primary);
    if (secondary !== undefined && (second !== undefined || registered.has(secondary))) this.append(secondary);
  }

  /** Whether `exclude` keeps the request from a stored worker that is available: the pin then stays put (LB-14a). */
  isBypassed(candidates: CandidateSet, available: CandidateSet): boolean {
    return candidates !== available && this.workers.some((id) => available.has(id) && !candidates.has(id));
  }

  /** The stored workers, the first tried first. */
  get workers(): readonly WorkerId[] {
    if (this.#primary === undefined) return [];
    return this.#secondary === undefined ? [this.#primary] : [this.#primary, this.#secondary];
  }

  /** Puts a worker behind the stored ones and drops the first when there are two (ST-36, MA-5). */
  append(id: WorkerId): void {
    if (this.#primary === undefined) this.#primary = id;
    else {
      if (this.#secondary !== undefined) this.#primary = this.#secondary;
      this.#secondary = id;
    }
  }

  /** Puts a worker first and keeps the former first one second (ST-35, ST-41). */
  promote(id: WorkerId): void {
    if (this.#primary === id) return;
    this.#secondary = this.#primary;
    this.#primary = id;
  }

  /** Writes it down, as used at `now`. */
  commit(pins: PinMap, now: number): void {
    if (this.#primary !== undefined) pins.put(this.#pinKey, this.#primary, this.#secondary, now);
    else if (this.existed) pins.delete(this.#pinKey);
  }
}
