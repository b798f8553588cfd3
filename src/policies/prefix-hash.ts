/**
 * `prefix_hash`: the head of a request is hashed onto the ring, so that requests with a common beginning meet at one worker
 * without any memory of past requests (PH-1..PH-13). A worker far above the fleet's mean in-flight count is passed over.
 *
 * No state. O(length of the head + log n); the fleet is scanned only when the least-loaded worker is wanted. The sum of
 * in-flight counts is kept by whoever owns the candidates (PO-6).
 */
import { RoutingConfigError } from '../errors.js';
import { gateTerms, isHot, type SpillLimits, spillLimits } from '../load/spill-gate.js';
import type { PrefixHashOptions } from '../options/policy-options.js';
import type { Resolved } from '../options/spec.js';
import { prefixHashTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';
import { RequestView, type RouteRequest } from '../request.js';
import type { Hash64 } from '../runtime/hash.js';
import type { WorkerSignals } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import type { PolicyExplanation } from './explanation.js';
import { type HashingRuntimeOptions, hashingRuntimeOf } from './hashing-runtime.js';
import { Decision, type DecisionContext, type Policy, type PolicyNeeds } from './policy.js';
import { type PrefixHead, PrefixHeads } from './prefix-heads.js';
import { runtimeTable } from './runtime-options.js';
import { type StandalonePolicy, standalone } from './standalone.js';

/** Its options with their defaults filled in. */
export type ResolvedPrefixHashOptions = Resolved<typeof prefixHashTable>;

/** Options of `prefixHash`: the policy's own and those of its surroundings. */
export type PrefixHashAloneOptions = PrefixHashOptions & HashingRuntimeOptions;

/**
 * `prefix_hash` without a router. The ring covers the ids it was given and keeps those that stay away until `forget`,
 * unless `ring` brings another one; `prefixHeads` tells which hashes it is asked for.
 *
 * @param options its own, and the runtime options; `hash` is required: `await loadHash()`, or a function of your own
 * @throws RoutingConfigError for an option that cannot be used (LB-40)
 */
export function prefixHash(options: PrefixHashAloneOptions): StandalonePolicy {
  const given = resolveOptions({ ...prefixHashTable, ...runtimeTable }, options);
  const { hash, ring } = hashingRuntimeOf(given);
  return standalone(createPrefixHash(given, { hash }), given, ring);
}

/** The policy of one pool (PH-5). The ring comes with each decision. */
export function createPrefixHash(options: ResolvedPrefixHashOptions, deps: { readonly hash: Hash64 }): Policy {
  return new PrefixHashPolicy(options, deps.hash);
}

class PrefixHashPolicy implements Policy {
  readonly name = 'prefix_hash';
  readonly needs: PolicyNeeds = { ring: true };
  readonly #hash: Hash64;
  #options: ResolvedPrefixHashOptions;
  #heads: PrefixHeads;

  constructor(options: ResolvedPrefixHashOptions, hash: Hash64) {
    this.#hash = hash;
    this.#options = options;
    this.#heads = new PrefixHeads(hash, options);
  }

  decide(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision {
    if (candidates.size === 0) return decided(undefined, 'no_healthy_workers', 0);
    const limits = this.#limitsOf(candidates);
    let fallback = 'no_routing_key';
    for (const head of this.#heads.of(request)) {
      const owner = ownerOf(head, candidates, ctx);
      if (owner === undefined) {
        // One overloaded owner is enough to tell that the ring knows the request.
        if (fallback === 'no_routing_key') fallback = 'fallback_least_load';
      } else if (isHot(owner.inFlight, limits)) fallback = 'load_balance_walk';
      else return decided(owner, 'ring_hit', head.level);
    }
    // With loadFactor ≥ 1 the least-loaded worker always passes the load check (PH-6a).
    return decided(leastLoaded(candidates), fallback, 0);
  }

  describe(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): PolicyExplanation {
    if (candidates.size === 0) return {};
    const heads = [...this.#heads.of(request)].map((head) => ({ head, owner: ownerOf(head, candidates, ctx) }));
    const owners = new Set(heads.flatMap(({ owner }) => owner ?? []));
    return {
      ring: heads.map(({ head, owner }) => ({ level: head.level, owner: owner?.id })),
      gate: gateTerms([...owners], this.#limitsOf(candidates)),
    };
  }

  configure(options: object): void {
    this.#options = options as ResolvedPrefixHashOptions;
    this.#heads = new PrefixHeads(this.#hash, this.#options);
  }

  /** The load check (PH-8). The mean counts this request too, so that nobody in an idle fleet is above it. */
  #limitsOf(candidates: CandidateSet): SpillLimits {
    const { loadFactor, balanceAbsThreshold } = this.#options;
    return spillLimits((candidates.inFlight + 1) / candidates.size, loadFactor, balanceAbsThreshold);
  }
}

/**
 * The heads `prefix_hash` looks up on its ring for a request, deepest first: what a `ring` of one's own is asked for.
 * Empty when the request holds nothing to hash.
 *
 * @param options those of the policy
 * @throws RoutingConfigError for an option that cannot be used, TypeError for malformed request data (LB-42)
 */
export function prefixHeads(request: RouteRequest, options: PrefixHashOptions, hash: Hash64): readonly PrefixHead[] {
  if (typeof hash !== 'function') throw new RoutingConfigError('hash', hash, 'must be a function');
  return [...new PrefixHeads(hash, resolveOptions(prefixHashTable, options)).of(new RequestView(request))];
}

function ownerOf(head: PrefixHead, candidates: CandidateSet, ctx: DecisionContext): WorkerSignals | undefined {
  const owner = ctx.ring?.lookup(head.hash, candidates.has);
  return owner === undefined ? undefined : candidates.get(owner);
}

/** Fewest in flight, the first in list order among equals (PH-10). */
function leastLoaded(candidates: CandidateSet): WorkerSignals | undefined {
  let least: WorkerSignals | undefined;
  for (const worker of candidates.workers) if (least === undefined || worker.inFlight < least.inFlight) least = worker;
  return least;
}

function decided(worker: WorkerSignals | undefined, branch: string, level: number): Decision {
  const decision = new Decision(worker, branch);
  decision.level = level;
  return decision;
}
