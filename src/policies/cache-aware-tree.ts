/**
 * The tree index of `cache_aware` (section D of spec 05): a string tree for text and a token tree for token ids, the
 * latter made when it is first needed. Text and token requests never match each other (CA-4).
 *
 * `decide` only matches; `record` inserts for the worker finally chosen and continues from that match, so a request
 * costs one descent, O(prefix).
 */
import type { RestoreResult, TreeMatch, TreePiece } from '../prefix/prefix-tree.js';
import { StringTree } from '../prefix/string-tree.js';
import { TokenTree } from '../prefix/token-tree.js';
import type { RequestView } from '../request.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import type { Affinity, CacheAwareSettings, IndexSurroundings, PartitionOf } from './affinity.js';
import type { PolicyExplanation } from './explanation.js';
import type { LearnedPiece } from './learned-state.js';
import type { Decision, DecisionContext, LearnedPlacement, PolicyEvents } from './policy.js';

/** The prefix trees of one policy instance. */
export class TreeAffinity {
  readonly #affinity: Affinity;
  readonly #events: PolicyEvents;
  readonly #partitionOf: PartitionOf;
  readonly #salt: number | undefined;
  #settings: CacheAwareSettings;
  /** Its tenants are the registered workers from the start (CA-40): a fleet is not to be registered by a request. */
  readonly #text: StringTree;
  /** Sizes of a tree that nobody uses are not told. */
  #textIsUsed = false;
  #tokens: TokenTree | undefined;
  #evictedText = 0;
  #evictedTokens = 0;

  constructor(settings: CacheAwareSettings, { affinity, events, partitionOf, salt }: IndexSurroundings) {
    this.#settings = settings;
    this.#affinity = affinity;
    this.#events = events;
    this.#partitionOf = partitionOf;
    this.#salt = salt;
    this.#text = new StringTree(settings);
  }

  decide(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision {
    const settings = this.#settings;
    const match = this.#match(request, ctx);
    const ratio = ratioOf(match);
    this.#rank(match, candidates, ctx);
    const decision = this.#affinity.decide(candidates, settings, ctx);
    decision.matchedRatio = ratio;
    decision.threshold = settings.cacheThreshold;
    if (ratio <= settings.cacheThreshold) decision.branch = 'expected_wait_fallback';
    else decision.branch = match.tenants.includes(decision.worker?.id as WorkerId) ? 'tree_match' : 'spill';
    return decision;
  }

  describe(
    request: RequestView,
    candidates: CandidateSet,
    ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation {
    const match = this.#match(request, ctx);
    this.#rank(match, candidates, ctx);
    const { matchedUnits, requestUnits, tenants } = match;
    const index = request.routingTokens === undefined ? 'string_tree' : 'token_tree';
    return {
      match: { index, matchedUnits, requestUnits, ratio: ratioOf(match), holders: tenants },
      ...this.#affinity.describe(candidates, this.#settings, ctx, decision),
    };
  }

  /** Reads the request as `decide` does, so that malformed tokens are refused before anything is recorded (LB-42). */
  check(request: RequestView, ctx: DecisionContext): void {
    this.#match(request, ctx);
  }

  /** Remembers that the worker was given the request (CA-38). */
  record(request: RequestView, worker: WorkerId, ctx: DecisionContext): void {
    const tokens = request.routingTokens;
    const namespace = this.#partitionOf(request, ctx);
    if (tokens === undefined) {
      const units = request.text ?? '';
      const use = this.#usedText().insert(units, worker, namespace);
      if (use > 0) this.#events.placement?.({ kind: 'text', namespace, units, worker, use });
    } else {
      const use = this.#tokenTree().insert(tokens, worker, namespace);
      if (use > 0) this.#events.placement?.({ kind: 'tokens', namespace, units: Array.from(tokens), worker, use });
    }
  }

  /** Merges a placement of another instance. Its shape was checked (LB-34). */
  applyPlacement({ units, worker, use, namespace }: LearnedPlacement): boolean {
    return typeof units === 'string'
      ? this.#usedText().insertPlacement(units, worker, use, namespace)
      : this.#tokenTree().insertPlacement(units, worker, use, namespace);
  }

  workerAdded(worker: WorkerId): void {
    this.#text.addTenant(worker);
  }

  workerRemoved(worker: WorkerId): void {
    this.#text.removeTenant(worker);
    this.#tokens?.removeTenant(worker);
  }

  /** A token tree of another page size cannot be converted: it starts anew. Everything else is kept (LB-35). */
  configure(settings: CacheAwareSettings): void {
    if (settings.blockSize !== this.#settings.blockSize) this.#dropTokens();
    this.#settings = settings;
    this.#text.maxTreeSize = settings.maxTreeSize;
    if (this.#tokens !== undefined) this.#tokens.maxTreeSize = settings.maxTreeSize;
  }

  #dropTokens(): void {
    if (this.#tokens === undefined) return;
    const evictedUnits = this.#evictedTokens + this.#tokens.size;
    this.#tokens = undefined;
    this.#evictedTokens = 0;
    this.#events.treeEvicted?.({ tree: 'token', evictedUnits, size: 0, tenants: 0 });
  }

  /** Frees what removed workers held and evicts what is over the budget; returns whether work is left. */
  maintain(budget: MaintenanceBudget): boolean {
    const [textSize, tokensSize] = [this.#text.size, this.#tokens?.size ?? 0];
    const textLeft = this.#text.maintain(budget);
    const tokensLeft = this.#tokens?.maintain(budget) ?? false;
    this.#evictedText += textSize - this.#text.size;
    this.#evictedTokens += tokensSize - (this.#tokens?.size ?? 0);
    return textLeft || tokensLeft;
  }

  /** Tells the sizes at the end of an eviction pass, and what the calls since the last one evicted (OB-22, OB-23). */
  reportSizes(): void {
    if (this.#textIsUsed) {
      const { size, tenantCount: tenants } = this.#text;
      this.#events.treeEvicted?.({ tree: 'string', evictedUnits: this.#evictedText, size, tenants });
    }
    if (this.#tokens !== undefined) {
      const { size, tenantCount: tenants } = this.#tokens;
      this.#events.treeEvicted?.({ tree: 'token', evictedUnits: this.#evictedTokens, size, tenants });
    }
    this.#evictedText = 0;
    this.#evictedTokens = 0;
  }

  *pieces(): Generator<LearnedPiece, void, undefined> {
    for (const data of this.#text.pieces()) yield { kind: 'text', data };
    for (const data of this.#tokens?.pieces() ?? []) yield { kind: 'tokens', data };
  }

  restore(piece: LearnedPiece, accepts: (worker: WorkerId) => boolean): RestoreResult {
    return piece.kind === 'text'
      ? this.#usedText().restore(piece.data as TreePiece<string>, accepts)
      : this.#tokenTree().restore(piece.data as TreePiece<number[]>, accepts);
  }

  #match(request: RequestView, ctx: DecisionContext): TreeMatch {
    const tokens = request.routingTokens;
    const namespace = this.#partitionOf(request, ctx);
    return tokens === undefined
      ? this.#text.match(request.text ?? '', namespace)
      : this.#tokenTree().match(tokens, namespace);
  }

  /** Ranks the candidates among the tenants, when enough of the request matched (CA-34, CA-36). */
  #rank(match: TreeMatch, candidates: CandidateSet, ctx: DecisionContext): void {
    const { cacheThreshold, overlapDecay: decay, blockSize } = this.#settings;
    const { ranking } = this.#affinity;
    ranking.clear();
    if (ratioOf(match) <= cacheThreshold) return;
    for (const tenant of match.tenants) {
      const worker = candidates.get(tenant);
      if (worker !== undefined) ranking.add(worker, 1);
    }
    if (decay > 0) {
      const requestBlocks = Math.max(1, Math.floor(match.requestUnits / blockSize));
      ranking.discount({ decay, blockSize, requestBlocks }, ctx.now);
    }
  }

  #usedText(): StringTree {
    this.#textIsUsed = true;
    return this.#text;
  }

  #tokenTree(): TokenTree {
    this.#tokens ??= new TokenTree({ ...this.#settings, salt: this.#salt });
    return this.#tokens;
  }
}

/** Matched share of the request; 0 for an empty one (CA-33). */
function ratioOf(match: TreeMatch): number {
  return match.requestUnits === 0 ? 0 : match.matchedUnits / match.requestUnits;
}
