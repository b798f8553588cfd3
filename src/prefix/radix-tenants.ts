/**
 * The tenants of one tree. A worker id stands for a small integer, so that nodes store no strings. A removed worker's
 * number stays taken, as dead, until its last holding is reclaimed; a worker that comes back gets a fresh one and
 * starts at size 0 (CA-44). Any number of workers (B23).
 */
import { refuse } from '../errors.js';
import type { WorkerId } from '../workers/candidate.js';

export class Tenants {
  readonly #numbers = new Map<WorkerId, number>();
  /** Per number; undefined once the worker was removed. */
  readonly #workers: (WorkerId | undefined)[] = [];
  readonly #sizes: number[] = [];
  readonly #holdings: number[] = [];
  readonly #free: number[] = [];
  /** Numbers of removed workers that still have holdings. */
  readonly #dead: number[] = [];
  /** Units held, summed over the living (CA-39). */
  size = 0;
  /** Holdings of the living, and of the dead. */
  liveHoldings = 0;
  deadHoldings = 0;

  get count(): number {
    return this.#numbers.size;
  }

  ids(): WorkerId[] {
    return [...this.#numbers.keys()];
  }

  has(worker: WorkerId): boolean {
    return this.#numbers.has(worker);
  }

  /** The worker's number; registers it when it is new. @throws TypeError for an id that is no string */
  numberOf(worker: WorkerId): number {
    return this.#numbers.get(worker) ?? this.#register(worker);
  }

  /** Undefined for the number of a removed worker. */
  workerOf(tenant: number): WorkerId | undefined {
    return this.#workers[tenant];
  }

  /** The order of tenants whose uses are equal: that of their ids, so that merges commute (LB-34). */
  precedes(a: number, b: number): boolean {
    return (this.#workers[a] ?? '') < (this.#workers[b] ?? '');
  }

  sizeOf(worker: WorkerId): number {
    const tenant = this.#numbers.get(worker);
    return tenant === undefined ? 0 : (this.#sizes[tenant] as number);
  }

  /** Counts one more holding of `units`. */
  grow(tenant: number, units: number): void {
    this.#holdings[tenant] = (this.#holdings[tenant] as number) + 1;
    this.#sizes[tenant] = (this.#sizes[tenant] as number) + units;
    this.size += units;
    this.liveHoldings++;
  }

  /** Counts one holding of `units` less. */
  shrink(tenant: number, units: number): void {
    const left = (this.#holdings[tenant] as number) - 1;
    this.#holdings[tenant] = left;
    if (this.#workers[tenant] !== undefined) {
      this.#sizes[tenant] = (this.#sizes[tenant] as number) - units;
      this.size -= units;
      this.liveHoldings--;
      return;
    }
    this.deadHoldings--;
    if (left === 0) this.#free.push(tenant);
  }

  /** The number of a dead tenant that has holdings left; undefined when there is none. */
  someDead(): number | undefined {
    while (this.#dead.length > 0) {
      const tenant = this.#dead[this.#dead.length - 1] as number;
      if ((this.#holdings[tenant] as number) > 0 && this.#workers[tenant] === undefined) return tenant;
      this.#dead.pop();
    }
    return undefined;
  }

  /** Makes a worker unreadable at once. Returns false when it is not registered. */
  remove(worker: WorkerId): boolean {
    const tenant = this.#numbers.get(worker);
    if (tenant === undefined) return false;
    this.#numbers.delete(worker);
    this.#workers[tenant] = undefined;
    this.size -= this.#sizes[tenant] as number;
    this.#sizes[tenant] = 0;
    const holdings = this.#holdings[tenant] as number;
    if (holdings === 0) {
      this.#free.push(tenant);
    } else {
      this.liveHoldings -= holdings;
      this.deadHoldings += holdings;
      this.#dead.push(tenant);
    }
    return true;
  }

  #register(worker: WorkerId): number {
    if (typeof worker !== 'string') throw refuse('worker', 'a string', worker);
    const tenant = this.#free.pop() ?? this.#workers.length;
    this.#numbers.set(worker, tenant);
    this.#workers[tenant] = worker;
    this.#sizes[tenant] = 0;
    this.#holdings[tenant] = 0;
    return tenant;
  }
}
