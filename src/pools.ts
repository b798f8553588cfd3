/**
 * All pools of a router: which exist, which policy each runs, and which list of workers a request draws from.
 *
 * Pools exist for registered models and for `unknown`, so request data creates none (WK-13a). A model keeps its policy
 * until its last worker leaves; then the pool and all it learned is dropped (LM-24).
 */
import { parsePolicyName } from './policies/names.js';
import type { Leg, Policy, PolicyName } from './policies/policy.js';
import { Pool } from './pool.js';
import type { PolicyPlan, RouterPlan } from './router-options.js';
import type { Hash64 } from './runtime/hash.js';
import type { AvailableList } from './workers/available-list.js';
import { LegPairs } from './workers/leg-pairs.js';
import type { PairingWorker } from './workers/pairing.js';
import type { Worker, WorkerState } from './workers/worker.js';
import { type CheckedWorkerSpec, unknownModel, type WorkerKind } from './workers/worker-spec.js';

/** Where a request draws from. */
export interface Scope {
  readonly pool: Pool;
  readonly list: AvailableList;
}

/** What the set needs of its router. */
export interface PoolHost {
  readonly plan: RouterPlan;
  readonly hash: Hash64;
  /** Makes the policy of one pool. */
  makePolicy(plan: PolicyPlan, model: string, leg: Leg): Policy;
  /** The pool's policy with the plan's options; undefined when the plan wants another one. */
  reshapePolicy(pool: Pool, plan: PolicyPlan): Policy | undefined;
  /** A label that cannot be followed (LM-22). */
  labelIgnored(worker: Worker, label: string, code: 'unknownPolicyLabel' | 'bucketWithoutRanges'): void;
}

/** The leg that workers of a kind serve (LM-1). */
export const legOfKind: Readonly<Record<WorkerKind, Leg>> = {
  regular: 'single',
  prefill: 'prefill',
  decode: 'decode',
  encode: 'encode',
};

export class PoolSet {
  readonly #host: PoolHost;
  readonly #byLeg = new Map<Leg, Map<string, Pool>>();
  readonly #pairs = new Map<AvailableList, Map<AvailableList, LegPairs>>();

  constructor(host: PoolHost) {
    this.#host = host;
    for (const leg of host.plan.legs) {
      this.#byLeg.set(leg, new Map());
      this.#open(unknownModel, leg, host.plan.policies[leg]);
    }
  }

  *[Symbol.iterator](): IterableIterator<Pool> {
    for (const pools of this.#byLeg.values()) yield* pools.values();
  }

  /** The pool of a registered model, or of `unknown`. */
  find(model: string, leg: Leg): Pool | undefined {
    return this.#byLeg.get(leg)?.get(model);
  }

  /**
   * The pool and the list for a request (WK-13, WK-13a); undefined when the router has no such leg.
   *
   * @param model as requested, undefined when none was named
   */
  scope(model: string | undefined, leg: Leg): Scope | undefined {
    const pools = this.#byLeg.get(leg);
    const unknown = pools?.get(unknownModel);
    if (pools === undefined || unknown === undefined) return undefined;
    if (model !== undefined && model !== unknownModel) {
      const pool = pools.get(model) ?? pools.get(this.#host.plan.modelAliases.get(model) ?? unknownModel) ?? unknown;
      if (pool !== unknown) return { pool, list: pool.all };
      return { pool: unknown, list: unknown.unnamed as AvailableList };
    }
    // With legs, all workers answer only when none was registered without a model (WK-13).
    const unnamed = unknown.unnamed as AvailableList;
    const list = leg !== 'single' && unnamed.size > 0 ? unnamed : unknown.all;
    return { pool: unknown, list };
  }

  /** The pools a worker belongs to: one a model, and `unknown`, which knows them all. */
  poolsOf(worker: WorkerState): readonly Pool[] {
    const pools = this.#byLeg.get(legOfKind[worker.kind]);
    if (pools === undefined) return [];
    return [...new Set([...worker.models, unknownModel])].flatMap((model) => pools.get(model) ?? []);
  }

  /** Registers a worker in its pools and opens those that do not exist yet (WK-65). */
  add(worker: WorkerState, now: number): void {
    this.#openFor(worker, now);
    for (const pool of this.poolsOf(worker)) pool.add(worker, now);
    this.#forgetPairs();
  }

  /** Takes a worker out of its pools; a model without workers loses its pool (LM-24). */
  remove(worker: WorkerState, now: number): void {
    for (const pool of this.poolsOf(worker)) this.#leave(pool, worker, worker.spec.unnamed, now);
    this.#forgetPairs();
  }

  /**
   * Gives a worker another spec: it keeps its place in the pools it stays in, joins new ones and leaves others, new ones
   * first, so that a model whose only worker is replaced keeps its policy (LM-25).
   */
  move(worker: WorkerState, spec: CheckedWorkerSpec, now: number): void {
    const before = new Set(this.poolsOf(worker));
    const old = worker.spec;
    worker.spec = spec;
    this.#openFor(worker, now);
    const after = new Set(this.poolsOf(worker));
    for (const pool of after) {
      if (!before.has(pool)) pool.add(worker, now);
      else if (spec.unnamed !== old.unnamed) pool.rescope(worker);
    }
    for (const pool of before) if (!after.has(pool)) this.#leave(pool, worker, old.unnamed, now);
    this.#forgetPairs();
  }

  /** The pairs between two legs' lists; kept until a worker joins, leaves or changes. */
  pairs(prefill: Scope, decode: Scope): LegPairs {
    const byDecode = this.#pairs.get(prefill.list) ?? new Map<AvailableList, LegPairs>();
    this.#pairs.set(prefill.list, byDecode);
    const known = byDecode.get(decode.list);
    if (known !== undefined) return known;
    const { mode, pdPairingMode } = this.#host.plan.options;
    // With an encode leg only the runtime counts, whatever the pairing mode (LM-34).
    const pairs =
      mode === 'epd'
        ? new LegPairs(prefill.list, decode.list, 'off', runtimeOnly)
        : new LegPairs(prefill.list, decode.list, pdPairingMode, (worker) => worker);
    byDecode.set(decode.list, pairs);
    return pairs;
  }

  /** A replaced worker may pair differently. */
  pairingChanged(): void {
    this.#forgetPairs();
  }

  /** Runs every pool by the host's current plan: learned state is kept where the policy stays the same (LB-35). */
  reconfigure(now: number): void {
    for (const pool of this) {
      const plan = pool.plan.fromLabel ? this.#host.plan.labelled(pool.plan.name) : this.#host.plan.policies[pool.leg];
      const kept = this.#host.reshapePolicy(pool, plan);
      if (kept === undefined) this.#replacePolicy(pool, plan, now);
      else pool.keepPolicy(plan, kept);
    }
  }

  #openFor(worker: WorkerState, now: number): void {
    const leg = legOfKind[worker.kind];
    const pools = this.#byLeg.get(leg);
    if (pools === undefined) return;
    for (const model of worker.models) {
      const pool = pools.get(model);
      if (pool === undefined) this.#open(model, leg, this.#planFor(worker, leg));
      else if (pool.unnamed?.size === 0) this.#switch(pool, this.#planFor(worker, leg), now);
    }
  }

  #leave(pool: Pool, worker: WorkerState, wasUnnamed: boolean, now: number): void {
    pool.remove(worker, now);
    if (pool.model !== unknownModel && pool.all.size === 0) this.#byLeg.get(pool.leg)?.delete(pool.model);
    // The next worker without a model decides anew (LM-25).
    if (wasUnnamed && pool.unnamed?.size === 0) this.#switch(pool, this.#host.plan.policies[pool.leg], now);
  }

  #open(model: string, leg: Leg, plan: PolicyPlan): void {
    const policy = this.#host.makePolicy(plan, model, leg);
    this.#byLeg.get(leg)?.set(model, new Pool(model, leg, plan, policy, this.#host.hash));
  }

  #switch(pool: Pool, plan: PolicyPlan, now: number): void {
    if (plan !== pool.plan) this.#replacePolicy(pool, plan, now);
  }

  #replacePolicy(pool: Pool, plan: PolicyPlan, now: number): void {
    pool.usePolicy(plan, this.#host.makePolicy(plan, pool.model, pool.leg), now);
  }

  /** The policy that a model's first worker decides (LM-20 to LM-22). Legs of their own ignore labels (LM-5). */
  #planFor(worker: WorkerState, leg: Leg): PolicyPlan {
    const configured = this.#host.plan.policies[leg];
    const label = worker.labels.get('policy');
    if (label === undefined || leg !== 'single') return configured;
    const name = parsePolicyName(label);
    const plan = name === undefined ? undefined : this.#host.plan.labelled(name);
    if (plan === undefined || lacksRanges(plan, name)) {
      const code = plan === undefined ? 'unknownPolicyLabel' : 'bucketWithoutRanges';
      this.#host.labelIgnored(worker, label, code);
      return configured;
    }
    return plan;
  }

  #forgetPairs(): void {
    for (const pairs of this.#pairs.values()) for (const legPairs of pairs.values()) legPairs.dissolve();
    this.#pairs.clear();
  }
}

function runtimeOnly({ labels, runtime }: WorkerState): PairingWorker {
  const label = labels.get('runtime');
  return { labels: new Map(label === undefined ? [] : [['runtime', label]]), connectionMode: 'grpc', runtime };
}

function lacksRanges(plan: PolicyPlan, name: PolicyName | undefined): boolean {
  return name === 'bucket' && (plan.options as { readonly legs?: string }).legs !== 'any';
}
