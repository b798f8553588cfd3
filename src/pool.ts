/**
 * One (model, leg): its registered workers, their cached available lists, one policy instance and, when the policy
 * hashes, one ring (LM-20, WK-61). Pools share nothing but the workers' signals (LM-26).
 *
 * The pool `unknown` answers requests that name no model with all workers of its leg, and requests for a model nobody
 * registered with the workers registered without one (WK-13, WK-13a): two lists, one policy.
 */

import { Ring } from './hashing/ring.js';
import type { Leg, Policy } from './policies/policy.js';
import type { PolicyPlan } from './router-options.js';
import type { Hash64 } from './runtime/hash.js';
import { AvailableList } from './workers/available-list.js';
import type { WorkerState } from './workers/worker.js';
import { unknownModel } from './workers/worker-spec.js';

export class Pool {
  readonly model: string;
  readonly leg: Leg;
  /** All registered workers of the pool. */
  readonly all: AvailableList = new AvailableList();
  /** The workers registered without a model; only in the pool `unknown`. */
  readonly unnamed: AvailableList | undefined;
  /** Members at the last look for warnings about the size of the fleet. */
  inspectedSize = -1;
  readonly #hash: Hash64;
  #plan: PolicyPlan;
  #policy: Policy;
  #ring: Ring | undefined;

  constructor(model: string, leg: Leg, plan: PolicyPlan, policy: Policy, hash: Hash64) {
    this.model = model;
    this.leg = leg;
    this.unnamed = model === unknownModel ? new AvailableList() : undefined;
    this.#hash = hash;
    this.#plan = plan;
    this.#policy = policy;
    this.#ring = policy.needs.ring ? new Ring(hash) : undefined;
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
    this.#policy.workerAdded?.(worker.id, now);
  }

  remove(worker: WorkerState, now: number): void {
    this.all.remove(worker);
    this.unnamed?.remove(worker);
    this.#ring?.remove(worker.id);
    this.#policy.workerRemoved?.(worker.id, now);
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
    this.#ring = policy.needs.ring ? new Ring(this.#hash) : undefined;
    for (const worker of this.all.members()) {
      this.#ring?.add(worker.id);
      policy.workerAdded?.(worker.id, now);
    }
  }

  /** Goes on with the same policy in another shape: other options, or the override put around it (LB-35). */
  keepPolicy(plan: PolicyPlan, policy: Policy): void {
    this.#plan = plan;
    this.#policy = policy;
  }
}
