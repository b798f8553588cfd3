/**
 * All pools of a router: which exist, which policy each runs, and which list of workers a request draws from.
 *
 * Pools exist for registered models and for `unknown`, so request data creates none (WK-13a). A model keeps its policy
 * until its last worker leaves; then the pool and all it learned is dropped (LM-24).
 */
import { nodePositions } from './hashing/ring.js';
import { staysUnder } from './policies/create.js';
import { parsePolicyName } from './policies/names.js';
import type { Leg, Policy, PolicyName } from './policies/policy.js';
import { Pool, type PoolOwner } from './pool.js';
import type { PolicyPlan, RouterPlan } from './router-options.js';
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
export interface PoolHost extends PoolOwner {
  readonly plan: RouterPlan;
  /**
   * Makes the policy of one pool, under the host's plan or one that is to come; changes nothing.
   *
   * @throws what a host's own policy factory throws
   */
  makePolicy(plan: PolicyPlan, model: string, leg: Leg, router?: RouterPlan): Policy;
  /** The pool's policy with the options of a plan that it can go on under. */
  reshapePolicy(pool: Pool, plan: PolicyPlan): Policy;
  /** A pool of the model runs by this plan from now on. */
  policyTaken(plan: PolicyPlan, model: string): void;
  /** No leg has a pool of the model any more. */
  modelLeft(model: string): void;
  /** A pool runs another policy instance from now on. */
  policyReplaced(pool: Pool): void;
  /** A label that cannot be followed (LM-22). */
  labelIgnored(worker: Worker, label: string, code: IgnoredLabel['code']): void;
}

/** A label that is not followed. */
interface IgnoredLabel {
  readonly label: string;
  readonly code: 'unknownPolicyLabel' | 'bucketWithoutRanges';
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
      this.#opening(unknownModel, leg, host.plan.policies[leg])();
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

  /**
   * Registers a worker in its pools and opens those that do not exist yet (WK-65).
   *
   * @throws what a host's own policy factory throws; nothing changed then
   */
  add(worker: WorkerState, now: number): void {
    for (const make of this.#openingFor(worker, worker.spec, now)) make();
    this.#join(this.poolsOf(worker), worker, now);
    this.#forgetPairs();
  }

  /** Takes a worker out of its pools; a model without workers loses its pool (LM-24). Never refused. */
  remove(worker: WorkerState, now: number): void {
    const revert = this.#revertingIfMade(worker, now);
    for (const pool of this.poolsOf(worker)) this.#leave(pool, worker, now);
    revert?.();
    this.#forgetPairs();
  }

  /**
   * Gives a worker another spec: it keeps its place in the pools it stays in, joins new ones and leaves others, new ones
   * first, so that a model whose only worker is replaced keeps its policy (LM-25).
   *
   * @throws what a host's own policy factory throws; nothing changed then
   */
  move(worker: WorkerState, spec: CheckedWorkerSpec, now: number): void {
    const old = worker.spec;
    const opening = this.#openingFor(worker, spec, now);
    const staysUnnamed = spec.kind === old.kind && spec.unnamed;
    const revert = staysUnnamed ? undefined : this.#reverting(worker, now);
    const before = new Set(this.poolsOf(worker));
    worker.spec = spec;
    for (const make of opening) make();
    const after = new Set(this.poolsOf(worker));
    if (spec.unnamed !== old.unnamed) for (const pool of after) if (before.has(pool)) pool.rescope(worker);
    this.#join(
      [...after].filter((pool) => !before.has(pool)),
      worker,
      now,
    );
    for (const pool of before) if (!after.has(pool)) this.#leave(pool, worker, now);
    revert?.();
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

  /**
   * Prepares to run every pool by another plan of the router: new policies are made now, and what comes back makes the
   * change, once the plan is the host's. Learned state is kept where the policy stays the same (LB-35).
   *
   * @throws what a host's own policy factory throws; nothing changed then
   */
  reconfiguring(router: RouterPlan, now: number): () => void {
    const changes = [...this].map((pool) => {
      const plan = pool.plan.fromLabel ? router.labelled(pool.plan.name) : router.policies[pool.leg];
      if (!staysUnder(plan, pool.policy, pool.plan)) return this.#replacing(pool, plan, now, router);
      return () => {
        pool.keepPolicy(plan, this.#host.reshapePolicy(pool, plan));
        this.#host.policyTaken(plan, pool.model);
      };
    });
    return () => {
      for (const change of changes) change();
    };
  }

  /** What a worker with this spec makes of its pools before it joins: changes whose policies are made already. */
  #openingFor(worker: WorkerState, spec: CheckedWorkerSpec, now: number): readonly (() => void)[] {
    const leg = legOfKind[spec.kind];
    const pools = this.#byLeg.get(leg);
    const changes: (() => void)[] = [];
    for (const model of pools === undefined ? [] : spec.models) {
      const pool = pools?.get(model);
      // The first worker of a model decides; of the pool `unknown` the first one without a model (LM-20, LM-25).
      if (pool !== undefined && pool.unnamed?.size !== 0) continue;
      const { plan, ignored } = this.#planFor(spec, leg);
      if (pool === undefined) changes.push(this.#opening(model, leg, plan));
      else if (plan !== pool.plan) changes.push(this.#replacing(pool, plan, now));
      if (ignored !== undefined) changes.push(() => this.#host.labelIgnored(worker, ignored.label, ignored.code));
    }
    return changes;
  }

  /**
   * When the last worker without a model leaves, `unknown` returns to the configured policy: the next one decides anew
   * (LM-25).
   */
  #reverting(worker: WorkerState, now: number): (() => void) | undefined {
    const leg = legOfKind[worker.kind];
    const pool = this.find(unknownModel, leg);
    const configured = this.#host.plan.policies[leg];
    if (!worker.spec.unnamed || pool?.unnamed?.size !== 1 || pool.plan === configured) return undefined;
    return this.#replacing(pool, configured, now);
  }

  /** As `#reverting`; when the host's own factory throws, the policy that runs goes on: a worker that is gone is gone. */
  #revertingIfMade(worker: WorkerState, now: number): (() => void) | undefined {
    try {
      return this.#reverting(worker, now);
    } catch (error) {
      const pool = this.find(unknownModel, legOfKind[worker.kind]) as Pool;
      const message = `the configured policy could not be made; ${pool.policy.name} goes on`;
      this.#host.policyFailed(pool, message, error);
      return undefined;
    }
  }

  /** Its nodes are at the same places on all rings: hashing them is most of the work, and done once. */
  #join(pools: readonly Pool[], worker: WorkerState, now: number): void {
    let positions: Float64Array | undefined;
    const positionsOf = (): Float64Array => (positions ??= nodePositions(this.#host.hash, worker.id));
    for (const pool of pools) pool.add(worker, now, positionsOf);
  }

  #leave(pool: Pool, worker: WorkerState, now: number): void {
    pool.remove(worker, now);
    const { model, leg } = pool;
    if (model === unknownModel || pool.all.size > 0) return;
    this.#byLeg.get(leg)?.delete(model);
    if (![...this.#byLeg.values()].some((pools) => pools.has(model))) this.#host.modelLeft(model);
  }

  #opening(model: string, leg: Leg, plan: PolicyPlan): () => void {
    const policy = this.#host.makePolicy(plan, model, leg);
    return () => {
      this.#byLeg.get(leg)?.set(model, new Pool(model, leg, plan, policy, this.#host));
      this.#host.policyTaken(plan, model);
    };
  }

  #replacing(pool: Pool, plan: PolicyPlan, now: number, router?: RouterPlan): () => void {
    const policy = this.#host.makePolicy(plan, pool.model, pool.leg, router);
    return () => {
      pool.usePolicy(plan, policy, now);
      this.#host.policyTaken(plan, pool.model);
      this.#host.policyReplaced(pool);
    };
  }

  /** The policy that a model's first worker decides (LM-20 to LM-22). Legs of their own ignore labels (LM-5). */
  #planFor(spec: CheckedWorkerSpec, leg: Leg): { readonly plan: PolicyPlan; readonly ignored?: IgnoredLabel } {
    const configured = this.#host.plan.policies[leg];
    const label = spec.labels.get('policy');
    if (label === undefined || leg !== 'single') return { plan: configured };
    const name = parsePolicyName(label);
    if (name === undefined) return { plan: configured, ignored: { label, code: 'unknownPolicyLabel' } };
    const plan = this.#host.plan.labelled(name);
    return lacksRanges(plan, name) ? { plan: configured, ignored: { label, code: 'bucketWithoutRanges' } } : { plan };
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

function lacksRanges(plan: PolicyPlan, name: PolicyName): boolean {
  return name === 'bucket' && (plan.options as { readonly legs?: string }).legs !== 'any';
}
