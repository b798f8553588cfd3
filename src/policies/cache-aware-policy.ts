/**
 * The order of a `cache_aware` decision (CA-3): the hash index when configured; else KV pressure, KV events for token ids
 * once there are any, the trees. Deciding changes nothing; recording remembers the chosen worker as a holder. Who is
 * chosen among the holders is the same for all indexes (affinity.ts).
 */
import { refuse } from '../errors.js';
import { isUnderKvPressure } from '../load/kv-pressure.js';
import type { KvEventFeed } from '../prefix/kv-event-feed.js';
import type { KvEventIndex } from '../prefix/kv-event-index.js';
import { namespaceKey } from '../prefix/namespace.js';
import type { RestoreResult } from '../prefix/prefix-tree.js';
import { checkUse } from '../prefix/use.js';
import type { RequestView } from '../request.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import { Affinity, type CacheAwareSettings, type IndexSurroundings, type PartitionOf } from './affinity.js';
import { EventAffinity, EventRead } from './cache-aware-events.js';
import { HashAffinity } from './cache-aware-hash.js';
import { TreeAffinity } from './cache-aware-tree.js';
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
  /** The KV-event index of the pool's model; undefined while no engine of the model has told anything. */
  readonly kvIndex?: (() => KvEventIndex | undefined) | undefined;
  /** Where learned placements and evictions are told. Absent: nobody listens. */
  readonly events?: PolicyEvents | undefined;
  /** Salt of the token tree's page hash: random, so that clients cannot make pages collide. Absent: 0. */
  readonly salt?: number | undefined;
  /** Where the index comes from when nobody else looks after it: forgets workers and cleans up with the policy. */
  readonly ownFeed?: KvEventFeed | undefined;
  /** The partition of a request. Absent: its namespace; the pool keeps models and legs apart. */
  readonly partitionOf?: PartitionOf | undefined;
}

/** The policy of one pool, or of one that is used alone. */
export class CacheAwarePolicy implements Policy, LearnedState {
  readonly name = 'cache_aware';
  readonly needs: PolicyNeeds = { text: true, reports: true };
  readonly #ownFeed: KvEventFeed | undefined;
  readonly #affinity = new Affinity();
  readonly #around: IndexSurroundings;
  readonly #kvEvents: EventAffinity;
  readonly #trees: TreeAffinity;
  /** Made when it is first configured, and kept from then on (LB-35). */
  #hash: HashAffinity | undefined;
  #settings: CacheAwareSettings;
  #lastPassAt: number | undefined;

  constructor(settings: CacheAwareSettings, deps: CacheAwareDeps) {
    this.#settings = settings;
    this.#ownFeed = deps.ownFeed;
    this.#around = {
      affinity: this.#affinity,
      events: deps.events ?? noEvents,
      partitionOf: deps.partitionOf ?? ((request) => namespaceKey(request.namespace)),
      salt: deps.salt,
    };
    this.#kvEvents = new EventAffinity(settings, this.#affinity, deps.kvIndex ?? (() => undefined));
    this.#trees = new TreeAffinity(settings, this.#around);
    this.configure(settings);
  }

  decide(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision {
    if (candidates.size === 0) return new Decision(undefined);
    const hash = this.#hashInUse();
    if (hash !== undefined) return hash.decide(request, candidates, ctx);
    const tokens = request.routingTokens;
    const kvIndex = tokens && this.#kvEvents.indexInUse(ctx.now);
    if (isUnderKvPressure(candidates, ctx.now, this.#settings)) {
      if (kvIndex === undefined) this.#trees.check(request, ctx);
      const pressed = decideByWait(candidates.workers, ctx);
      pressed.branch = 'kv_pressure_expected_wait';
      return pressed;
    }
    if (tokens === undefined || kvIndex === undefined) return this.#trees.decide(request, candidates, ctx);
    return this.#kvEvents.decide(kvIndex, tokens, candidates, ctx);
  }

  record(request: RequestView, decision: Decision, ctx: DecisionContext): void {
    if (decision.worker === undefined) return;
    const worker = decision.worker.id;
    const hash = this.#hashInUse();
    if (hash !== undefined) hash.record(request, worker, ctx);
    else if (decision.note instanceof EventRead) decision.note.commit(ctx.now);
    // Also under KV pressure (CA-21), unless it is the engines that tell who holds what (CA-85).
    else if (request.routingTokens === undefined || this.#kvEvents.indexInUse(ctx.now) === undefined) {
      this.#trees.record(request, worker, ctx);
    }
  }

  describe(
    request: RequestView,
    candidates: CandidateSet,
    ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation {
    if (decision.worker === undefined) return {};
    const hash = this.#hashInUse();
    if (hash !== undefined) return hash.describe(request, candidates, ctx, decision);
    if (decision.branch === 'kv_pressure_expected_wait') return describeByWait(candidates.workers, ctx);
    const tokens = request.routingTokens;
    const kvIndex = tokens && this.#kvEvents.indexInUse(ctx.now);
    if (tokens === undefined || kvIndex === undefined) return this.#trees.describe(request, candidates, ctx, decision);
    return this.#kvEvents.describe(kvIndex, tokens, candidates, ctx, decision);
  }

  configure(options: object): void {
    const settings = options as CacheAwareSettings;
    this.#settings = settings;
    this.#kvEvents.configure(settings);
    this.#trees.configure(settings);
    this.#hash?.configure(settings);
    if (settings.cacheIndex === 'hash') this.#hash ??= new HashAffinity(settings, this.#around);
  }

  workerAdded(id: WorkerId): void {
    this.#trees.workerAdded(id);
  }

  workerRemoved(id: WorkerId): void {
    this.#affinity.clear();
    this.#trees.workerRemoved(id);
    this.#hash?.workerRemoved(id);
    this.#ownFeed?.removeWorker(id);
  }

  maintain(now: number, budget: MaintenanceBudget): boolean {
    if (this.#trees.maintain(budget) || this.#ownFeed?.maintain(now, budget)) return true;
    const { evictionIntervalMs } = this.#settings;
    this.#lastPassAt ??= now;
    if (evictionIntervalMs === 0 || now - this.#lastPassAt < evictionIntervalMs) return false;
    if (this.#hash?.sweep(now, budget)) return true;
    this.#lastPassAt = now;
    this.#trees.reportSizes();
    this.#hash?.reportSize();
    return false;
  }

  *snapshotPieces(now: number): Generator<LearnedPiece, void, undefined> {
    yield* this.#trees.pieces();
    if (this.#hash !== undefined) yield* this.#hash.pieces(now);
  }

  restorePiece(piece: LearnedPiece, accepts: (worker: WorkerId) => boolean, now: number): RestoreResult {
    const hash = this.#hashInUse();
    const { kind } = piece;
    if (hash !== undefined && kind === 'hash') return hash.restore(piece, accepts, now);
    if (hash === undefined && (kind === 'text' || kind === 'tokens')) return this.#trees.restore(piece, accepts);
    // What nobody reads would only take memory (B09).
    return { restored: 0, skipped: 1 };
  }

  applyPlacement(placement: LearnedPlacement, now: number): boolean {
    checkPlacement(placement);
    const hash = this.#hashInUse();
    // A placement for an index that is not in use would only take memory (B09).
    if ((placement.kind === 'hash') !== (hash !== undefined)) return false;
    return hash === undefined ? this.#trees.applyPlacement(placement) : hash.applyPlacement(placement, now);
  }

  #hashInUse(): HashAffinity | undefined {
    return this.#settings.cacheIndex === 'hash' ? this.#hash : undefined;
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
  checkUse(use);
  if (namespace !== undefined && namespace !== null && typeof namespace !== 'string') {
    throw refuse('namespace', 'a string', namespace);
  }
}
