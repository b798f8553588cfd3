/**
 * `consistent_hashing`: a key belongs to the next available worker clockwise on the ring (CH-1..CH-10). No state of its own
 * and no look at load; O(log n).
 *
 * What decides, in this order (CH-2): the worker a header names by position, a routing key, an implicit key (credentials,
 * address or cookie: hashed, never stored and never shown), and without any key chance.
 */
import type { ConsistentHashingOptions } from '../options/policy-options.js';
import type { Resolved } from '../options/spec.js';
import { consistentHashingTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';
import type { RequestView } from '../request.js';
import type { Hash64 } from '../runtime/hash.js';
import { randomIndex } from '../runtime/random.js';
import {
  firstUsable,
  isVisibleAscii,
  type KeyRules,
  keyHash,
  type RoutingKey,
  resolveRoutingKey,
} from '../sticky/routing-key.js';
import type { WorkerSignals } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import type { PolicyExplanation } from './explanation.js';
import { type HashingRuntimeOptions, hashingRuntimeOf } from './hashing-runtime.js';
import { Decision, type DecisionContext, type Policy, type PolicyNeeds } from './policy.js';
import { runtimeTable } from './runtime-options.js';
import { type StandalonePolicy, standalone } from './standalone.js';

/** Its options with their defaults filled in. */
export type ResolvedConsistentHashingOptions = Resolved<typeof consistentHashingTable>;

/** Options of `consistentHashing`: the policy's own and those of its surroundings. */
export type ConsistentHashingAloneOptions = ConsistentHashingOptions & HashingRuntimeOptions;

/**
 * `consistent_hashing` without a router. The ring covers the ids it was given and keeps those that stay away until
 * `forget`, unless `ring` brings another one.
 *
 * @param options its own, and the runtime options; `hash` is required: `await loadHash()`, or a function of your own
 * @throws RoutingConfigError for an option that cannot be used (LB-40)
 */
export function consistentHashing(options: ConsistentHashingAloneOptions): StandalonePolicy {
  const given = resolveOptions({ ...consistentHashingTable, ...runtimeTable }, options);
  const { hash, ring } = hashingRuntimeOf(given);
  return standalone(createConsistentHashing(given, { hash }), given, ring);
}

/** The policy of one pool (CH-2). The ring comes with each decision. */
export function createConsistentHashing(
  options: ResolvedConsistentHashingOptions,
  deps: { readonly hash: Hash64 },
): Policy {
  return new ConsistentHashingPolicy(options, deps.hash);
}

const implicitHeaders = ['authorization', 'x-forwarded-for', 'cookie'];

class ConsistentHashingPolicy implements Policy {
  readonly name = 'consistent_hashing';
  readonly needs: PolicyNeeds = { ring: true };
  readonly #hash: Hash64;
  #rules: KeyRules;

  constructor(options: ResolvedConsistentHashingOptions, hash: Hash64) {
    this.#hash = hash;
    this.#rules = rulesOf(options);
  }

  decide(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision {
    if (candidates.size === 0) return new Decision(undefined, 'no_healthy_workers');
    const target = targetOf(request);
    if (target !== undefined) return decideByTarget(target, candidates, ctx.available);
    const routing = resolveRoutingKey(request, this.#rules);
    const key = routing?.key ?? implicitKey(request);
    if (key === undefined) {
      return new Decision(candidates.at(randomIndex(ctx.random, candidates.size)), 'random_fallback');
    }
    const worker = this.#ownerOf(key, candidates, ctx);
    return withKey(new Decision(worker, worker === undefined ? 'no_healthy_workers' : 'routing_key_hit'), routing);
  }

  describe(
    request: RequestView,
    candidates: CandidateSet,
    ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation {
    if (decision.branch === 'random_fallback') return { tieSet: candidates.workers.map((worker) => worker.id) };
    if (decision.branch !== 'routing_key_hit') return {};
    const key = resolveRoutingKey(request, this.#rules)?.key ?? implicitKey(request);
    if (key === undefined) return {};
    return { ring: [{ level: 0, owner: this.#ownerOf(key, candidates, ctx)?.id }] };
  }

  configure(options: object): void {
    this.#rules = rulesOf(options as ResolvedConsistentHashingOptions);
  }

  #ownerOf(key: string, candidates: CandidateSet, ctx: DecisionContext): WorkerSignals | undefined {
    const hash = this.#hash(key);
    if (ctx.ring === undefined) return candidates.at(Number(hash % BigInt(candidates.size)));
    const owner = ctx.ring.lookup(hash, candidates.has);
    return owner === undefined ? undefined : candidates.get(owner);
  }
}

/** The configured headers, then the standard one (CH-2); values are never stripped (CH-5). */
function rulesOf(options: ResolvedConsistentHashingOptions): KeyRules {
  return {
    rid: options.routingKeyOverride,
    headers: [...new Set([...options.routingKeyHeaders, 'x-smg-routing-key'])],
    stripHeaders: false,
  };
}

/** The target header; empty and non-ASCII values count as absent (CH-3). */
function targetOf(request: RequestView): string | undefined {
  const value = request.hasHeaders ? request.header('x-smg-target-worker') : undefined;
  return value !== undefined && value !== '' && isVisibleAscii(value) ? value : undefined;
}

/** Positions count the available workers before exclusion; naming an excluded one selects nothing (LB-14a). */
function decideByTarget(target: string, candidates: CandidateSet, available: CandidateSet): Decision {
  const named = /^\+?[0-9]+$/.test(target) ? available.at(Number(target)) : undefined;
  const worker = named === undefined ? undefined : candidates.get(named.id);
  if (worker !== undefined) return new Decision(worker, 'target_worker_hit');
  const miss = new Decision(undefined, 'target_worker_miss');
  miss.reason = 'target_worker_invalid';
  return miss;
}

/** The first of the three headers that holds more than spaces and tabs (CH-6). */
function implicitKey(request: RequestView): string | undefined {
  if (!request.hasHeaders) return undefined;
  for (const name of implicitHeaders) {
    const value = firstUsable(request.headerValues(name), (text) => text !== '');
    if (value !== undefined) return value;
  }
  return undefined;
}

/** An implicit key leaves no trace in the record: it may be a credential, and a short one could be guessed from its hash. */
function withKey(decision: Decision, routing: RoutingKey | undefined): Decision {
  if (routing !== undefined) {
    decision.source = routing.source;
    decision.keyHash = keyHash(routing.key);
  }
  return decision;
}
