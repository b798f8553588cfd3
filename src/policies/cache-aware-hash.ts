/**
 * The hash index of `cache_aware` (section E of spec 05): for prompts as token ids, who was given the same first tokens,
 * asked at the configured boundaries, the deepest first. A boundary none of whose live holders is a candidate counts as
 * unknown and the next shallower one is tried (CA-74). One pass over the tokens, then O(boundaries).
 */
import { isUnderKvPressure } from '../load/kv-pressure.js';
import { HashIndex, type HashPiece } from '../prefix/hash-index.js';
import type { HeadProbe } from '../prefix/head-probe.js';
import type { RestoreResult } from '../prefix/prefix-tree.js';
import type { RequestView } from '../request.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import type { Affinity, CacheAwareSettings, IndexSurroundings, PartitionOf } from './affinity.js';
import type { PolicyExplanation } from './explanation.js';
import type { LearnedPiece } from './learned-state.js';
import type { Decision, DecisionContext, LearnedPlacement, PolicyEvents } from './policy.js';
import { decideByWait, describeByWait } from './scored-decision.js';

/** The hash index of one policy instance. */
export class HashAffinity {
  readonly #affinity: Affinity;
  readonly #events: PolicyEvents;
  readonly #partitionOf: PartitionOf;
  readonly #index: HashIndex;
  #settings: CacheAwareSettings;
  #swept = 0;
  /** The request that the index's probe was made for, so that `record` need not hash it again. */
  #probed: RequestView | undefined;
  #probe: HeadProbe | undefined;

  constructor(settings: CacheAwareSettings, { affinity, events, partitionOf }: IndexSurroundings) {
    this.#settings = settings;
    this.#affinity = affinity;
    this.#events = events;
    this.#partitionOf = partitionOf;
    this.#index = new HashIndex({ boundaries: settings.cacheBoundaries, ttlMs: settings.cacheTtlMs });
  }

  decide(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision {
    const probe = this.#probeFor(request, ctx);
    if (probe === undefined) return decideUnasked('expected_wait_fallback', candidates, ctx);
    if (probe.count === 0) return decideUnasked('short_request', candidates, ctx);
    if (isUnderKvPressure(candidates, ctx.now, this.#settings)) {
      return decideUnasked('kv_pressure_expected_wait', candidates, ctx);
    }
    const level = this.#findGroup(probe, candidates, ctx);
    const decision = this.#affinity.decide(candidates, this.#settings, ctx);
    decision.level = level;
    if (level === 0) decision.branch = 'expected_wait_fallback';
    else decision.branch = this.#affinity.isInGroup(decision.worker) ? 'hash_hit' : 'hash_spill';
    return decision;
  }

  describe(
    request: RequestView,
    candidates: CandidateSet,
    ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation {
    const probe = this.#probeFor(request, ctx);
    if (probe === undefined || decision.branch === 'kv_pressure_expected_wait') {
      return describeByWait(candidates.workers, ctx);
    }
    const matchedUnits = this.#findGroup(probe, candidates, ctx);
    const requestUnits = request.routingTokens?.length ?? 0;
    const holders = this.#affinity.ranking.workers.map((worker) => worker.id);
    return {
      match: { index: 'hash', matchedUnits, requestUnits, ratio: matchedUnits / requestUnits, holders },
      ...this.#affinity.describe(candidates, this.#settings, ctx, decision),
    };
  }

  /** Remembers the worker at every boundary the request reaches (CA-71). */
  record(request: RequestView, worker: WorkerId, ctx: DecisionContext): void {
    const probe = this.#probeFor(request, ctx);
    if (probe === undefined || probe.count === 0) return;
    const use = this.#index.record(probe, worker, ctx.now);
    this.#forgetProbe();
    // Only the tokens up to the deepest boundary are known to the index.
    this.#events.placement?.({
      kind: 'hash',
      namespace: this.#partitionOf(request, ctx),
      units: Array.from(request.routingTokens ?? []).slice(0, probe.boundary(probe.count - 1)),
      worker,
      use,
    });
  }

  /** Merges a placement of another instance. Its shape was checked (LB-34). */
  applyPlacement({ units, worker, use, namespace }: LearnedPlacement, now: number): boolean {
    this.#forgetProbe();
    const probe = this.#index.probe(units as readonly number[], namespace);
    return this.#index.merge(probe, worker, use, now);
  }

  workerRemoved(worker: WorkerId): void {
    this.#index.removeWorker(worker);
  }

  /** Heads at boundaries that are no longer configured are not found any more and expire. */
  configure(settings: CacheAwareSettings): void {
    this.#forgetProbe();
    this.#settings = settings;
    this.#index.boundaries = settings.cacheBoundaries;
    this.#index.ttlMs = settings.cacheTtlMs;
  }

  /** Frees what has expired (CA-72); returns whether work is left. */
  sweep(now: number, budget: MaintenanceBudget): boolean {
    const heads = this.#index.headCount;
    const left = this.#index.sweep(now, budget);
    this.#swept += heads - this.#index.headCount;
    return left;
  }

  /** Tells the number of heads at the end of a sweep (OB-24); holders are not counted. */
  reportSize(): void {
    this.#events.treeEvicted?.({ tree: 'hash', evictedUnits: this.#swept, size: this.#index.headCount, tenants: 0 });
    this.#swept = 0;
  }

  *pieces(now: number): Generator<LearnedPiece, void, undefined> {
    for (const data of this.#index.pieces(now)) yield { kind: 'hash', data };
  }

  restore(piece: LearnedPiece, accepts: (worker: WorkerId) => boolean, now: number): RestoreResult {
    return this.#index.restore(piece.data as HashPiece, accepts, now);
  }

  /** The heads of the request, or undefined without token ids. */
  #probeFor(request: RequestView, ctx: DecisionContext): HeadProbe | undefined {
    const tokens = request.routingTokens;
    if (tokens === undefined) return undefined;
    if (this.#probed !== request) {
      this.#forgetProbe();
      this.#probe = this.#index.probe(tokens, this.#partitionOf(request, ctx));
      this.#probed = request;
    }
    return this.#probe;
  }

  #forgetProbe(): void {
    this.#probed = undefined;
    this.#probe = undefined;
  }

  /** Ranks the candidates among the live holders of the deepest boundary that has any; returns it, or 0. */
  #findGroup(probe: HeadProbe, candidates: CandidateSet, ctx: DecisionContext): number {
    const { ranking } = this.#affinity;
    ranking.clear();
    for (let i = probe.count - 1; i >= 0; i--) {
      for (const holder of this.#index.holders(probe, i, ctx.now)) {
        const worker = candidates.get(holder);
        if (worker !== undefined) ranking.add(worker, 1);
      }
      if (ranking.workers.length > 0) return probe.boundary(i);
    }
    return 0;
  }
}

/** Decides by expected wait over the whole fleet, where nobody is asked who holds the head (CA-71). */
function decideUnasked(branch: string, candidates: CandidateSet, ctx: DecisionContext): Decision {
  const decision = decideByWait(candidates.workers, ctx);
  decision.branch = branch;
  decision.level = 0;
  return decision;
}
