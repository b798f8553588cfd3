/**
 * `cache_aware`: sends a request where the longest part of its prompt is probably cached, unless the workers that hold
 * it are hot (spec 05). What knows the holders is a prefix tree (cache-aware-tree.ts), an index at fixed token positions
 * (cache-aware-hash.ts) or the engines' own KV events (cache-aware-events.ts); who is chosen among them is the same for
 * all three (affinity.ts).
 *
 * Order of a decision (CA-3): the hash index when configured; else KV pressure, KV events for token ids once there are
 * any, the trees. Deciding changes nothing; recording remembers the chosen worker as a holder. A hit is O(prefix).
 */
import { isUnderKvPressure } from '../load/kv-pressure.js';
import type { RestoreResult } from '../prefix/prefix-tree.js';
import { type RequestView, refuse } from '../request.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import { Affinity, type CacheAwareSettings } from './affinity.js';
import { TreeIndex } from './cache-aware-tree.js';
import type { PolicyExplanation } from './explanation.js';
import type { LearnedPiece, LearnedState } from './learned-state.js';
import {
  Decision,
  type DecisionContext,
  type LearnedPlacement,
  noEvents,
  type Policy,
  type PolicyEvents,
  type PolicyNeeds,
} from './policy.js';
import { decideByWait, describeByWait } from './scored-decision.js';

/** What the policy reads beside requests and candidates. */
export interface CacheAwareDeps {
  readonly events?: PolicyEvents | undefined;
}

/** The policy of one pool. */
export function createCacheAware(options: CacheAwareSettings, deps: CacheAwareDeps = {}): Policy & LearnedState {
  return new CacheAwarePolicy(options, deps);
}

class CacheAwarePolicy implements Policy, LearnedState {
  readonly name = 'cache_aware';
  readonly needs: PolicyNeeds = { text: true, reports: true };
  readonly #affinity = new Affinity();
  readonly #trees: TreeIndex;
  #settings: CacheAwareSettings;
  #nextPassAt: number | undefined;

  constructor(settings: CacheAwareSettings, deps: CacheAwareDeps) {
    const events = deps.events ?? noEvents;
    this.#settings = settings;
    this.#trees = new TreeIndex(settings, this.#affinity, events);
  }

  decide(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision {
    if (candidates.size === 0) return new Decision(undefined);
    if (isUnderKvPressure(candidates.workers, ctx.now, this.#settings)) {
      const decision = decideByWait(candidates.workers, ctx);
      decision.branch = 'kv_pressure_expected_wait';
      return decision;
    }
    return this.#trees.decide(request, candidates, ctx);
  }

  record(request: RequestView, decision: Decision): void {
    if (decision.worker === undefined) return;
    this.#trees.record(request, decision.worker.id);
  }

  describe(
    request: RequestView,
    candidates: CandidateSet,
    ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation {
    if (decision.worker === undefined) return {};
    if (decision.branch === 'kv_pressure_expected_wait') return describeByWait(candidates.workers, ctx);
    return this.#trees.describe(request, candidates, ctx, decision);
  }

  configure(options: object): void {
    this.#settings = options as CacheAwareSettings;
    this.#trees.configure(this.#settings);
  }

  workerAdded(id: WorkerId): void {
    this.#trees.workerAdded(id);
  }

  workerRemoved(id: WorkerId): void {
    this.#affinity.clear();
    this.#trees.workerRemoved(id);
  }

  maintain(now: number, budget: MaintenanceBudget): boolean {
    const left = this.#trees.maintain(budget);
    const interval = this.#settings.evictionIntervalMs;
    if (interval === 0 || left) return left;
    this.#nextPassAt ??= now + interval;
    if (now < this.#nextPassAt) return false;
    this.#nextPassAt = now + interval;
    this.#trees.reportSizes();
    return false;
  }

  *snapshotPieces(): Generator<LearnedPiece, void, undefined> {
    yield* this.#trees.pieces();
  }

  restorePiece(piece: LearnedPiece, accepts: (worker: WorkerId) => boolean): RestoreResult {
    if (piece.kind === 'text' || piece.kind === 'tokens') return this.#trees.restore(piece, accepts);
    return { restored: 0, skipped: 1 };
  }

  applyPlacement(placement: LearnedPlacement): boolean {
    checkPlacement(placement);
    return this.#trees.applyPlacement(placement);
  }
}

/** Placements come from other instances: what is malformed is refused before anything changes (LB-42). */
function checkPlacement({ kind, units, worker, use, namespace }: LearnedPlacement): void {
  if (kind !== 'text' && kind !== 'tokens' && kind !== 'hash') throw refuse('kind', 'text, tokens or hash', kind);
  if (kind === 'text') {
    if (typeof units !== 'string') throw refuse('units', 'a string', units);
  } else if (!Array.isArray(units)) {
    throw refuse('units', 'an array of token ids', units);
  }
  if (typeof worker !== 'string' || worker === '') throw refuse('worker', 'a worker id', worker);
  if (!Number.isSafeInteger(use) || use < 1) throw refuse('use', 'a positive integer', use);
  if (namespace !== undefined && namespace !== null && typeof namespace !== 'string') {
    throw refuse('namespace', 'a string', namespace);
  }
}
