/**
 * One (model, leg): its registered workers, their cached available lists, one policy instance and, when the policy
 * hashes, one ring (LM-20, WK-61). Pools share nothing but the workers' signals (LM-26).
 *
 * The pool `unknown` answers requests that name no model with all workers of its leg, and requests for a model nobody
 * registered with the workers registered without one (WK-13, WK-13a): two lists, one policy.
 */

import { Ring } from './hashing/ring.js';
import type { Leg, MaintenanceBudget, Policy } from './policies/policy.js';
import type { PolicyPlan } from './router-options.js';
import type { Hash64 } from './runtime/hash.js';
import { AvailableList } from './workers/available-list.js';
import type { WorkerId } from './workers/candidate.js';
import type { WorkerState } from './workers/worker.js';
import { unknownModel } from './workers/worker-spec.js';

/** What a pool needs of its router. */
export interface PoolOwner {
  readonly hash: Hash64;
  /**
   * The pool's policy, one of the host's own, threw where nobody can be told by an exception.
   *
   * @param worker the registered worker it is about, if any
   */
  policyFailed(pool: Pool, message: string, error: unknown, worker?: WorkerId): void;
}

export class Pool {
  readonly model: string;
  readonly leg: Leg;
  /** All registered workers of the pool. */
  readonly all: AvailableList = new AvailableList();
  /** The workers registered without a model; only in the pool `unknown`. */
  readonly unnamed: AvailableList | undefined;
  /** Members when warnings about the size of the fleet were last looked for (LB-41). */
  inspectedSize = -1;
  readonly #owner: PoolOwner;
  #plan: PolicyPlan;
  #policy: Policy;
  #ring: Ring | undefined;

  constructor(model: string, leg: Leg, plan: PolicyPlan, policy: Policy, owner: PoolOwner) {
    this.model = model;
    this.leg = leg;
    this.unnamed = model === unknownModel ? new AvailableList() : undefined;
    this.#owner = owner;
    this.#plan = plan;
    this.#policy = policy;
    this.#ring = policy.needs.ring ? new Ring(owner.hash) : undefined;
  }

  get plan(): PolicyPlan {
    return this.#plan;
  }
  /** Whether the policy looks up token ids at fixed positions and has nothing to go by without them (CA-71). */
  get needsTokens(): boolean {
    return (this.#plan.options as { readonly cacheIndex?: string }).cacheIndex === 'hash';
  }
  get policy(): Policy {
    return this.#policy;
  }
  get ring(): Ring | undefined {
    return this.#ring;
  }

  /** @param positionsOf the worker's nodes for a ring that may be there */
  add(worker: WorkerState, now: number, positionsOf: () => Float64Array): void {
    this.all.add(worker);
    if (worker.spec.unnamed) this.unnamed?.add(worker);
    this.#ring?.add(worker.id, positionsOf());
    this.#tellAdded(worker.id, now);
  }

  remove(worker: WorkerState, now: number): void {
    this.all.remove(worker);
    this.unnamed?.remove(worker);
    this.#ring?.remove(worker.id);
    this.#guarded('workerRemoved', () => this.#policy.workerRemoved?.(worker.id, now));
  }

  /** A member got or lost its model: it changes lists, not its place in the pool. */
  rescope(worker: WorkerState): void {
    if (worker.spec.unnamed) this.unnamed?.add(worker);
    else this.unnamed?.remove(worker);
  }

  /** Puts another policy instance in place; what the old one learned is gone. */
  usePolicy(plan: PolicyPlan, policy: Policy, now: number): void {
    this.#plan = plan;
    this.#policy = policy;
    this.#ring = policy.needs.ring ? new Ring(this.#owner.hash) : undefined;
    for (const worker of this.all.members()) {
      this.#ring?.add(worker.id);
      this.#tellAdded(worker.id, now);
    }
  }

  /** Goes on with the same policy in another shape: other options, or the override put around it (LB-35). */
  keepPolicy(plan: PolicyPlan, policy: Policy): void {
    this.#plan = plan;
    this.#policy = policy;
  }

  /** Lets the policy do periodic work that is due; returns whether some is left (LB-5). */
  maintain(now: number, budget: MaintenanceBudget): boolean {
    return this.#guarded('maintain', () => this.#policy.maintain?.(now, budget)) ?? false;
  }

  #tellAdded(id: WorkerId, now: number): void {
    this.#guarded('workerAdded', () => this.#policy.workerAdded?.(id, now), id);
  }

  /**
   * Calls a hook. These tell the policy what is so anyway, or come with a call that has nothing to do with it: one that
   * throws leaves no change half done and breaks nobody's call (LB-15).
   */
  #guarded<T>(hook: string, call: () => T, worker?: WorkerId): T | undefined {
    try {
      return call();
    } catch (error) {
      const about = worker === undefined ? '' : ` for ${worker}`;
      this.#owner.policyFailed(this, `policy ${this.#policy.name} threw in ${hook}${about}`, error, worker);
      return undefined;
    }
  }
}
