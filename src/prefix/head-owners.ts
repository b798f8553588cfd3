/**
 * The workers of a hash index as numbers, so that heads store no strings. No number is given twice: that of a removed
 * worker leads nowhere from then on, at every head at once (CA-75).
 */
import { refuse } from '../errors.js';
import type { WorkerId } from '../workers/candidate.js';

export class HeadOwners {
  readonly #numbers = new Map<WorkerId, number>();
  readonly #workers = new Map<number, WorkerId>();
  #given = 0;

  /** The worker's number, 1 or above; gives it one when it has none. @throws TypeError for an id that is no string */
  numberOf(worker: WorkerId): number {
    return this.#numbers.get(worker) ?? this.#give(worker);
  }

  /** Undefined for the number of a removed worker. */
  workerOf(owner: number): WorkerId | undefined {
    return this.#workers.get(owner);
  }

  /** Unknown ids are ignored. */
  remove(worker: WorkerId): void {
    const owner = this.#numbers.get(worker);
    if (owner === undefined) return;
    this.#numbers.delete(worker);
    this.#workers.delete(owner);
  }

  #give(worker: WorkerId): number {
    if (typeof worker !== 'string') throw refuse('worker', 'a string', worker);
    const owner = ++this.#given;
    this.#numbers.set(worker, owner);
    this.#workers.set(owner, worker);
    return owner;
  }
}
