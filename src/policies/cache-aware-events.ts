/**
 * KV events as the index of `cache_aware` (section F of spec 05): the engines themselves say which blocks they hold, so a
 * holder's score is the number of leading blocks of the request it has, and the threshold of the trees does not apply
 * (CA-83). The policy never writes the index (CA-85); a decision only marks what it read as used (CA-96).
 */
import type { KvEventIndex } from '../prefix/kv-event-index.js';
import type { KvMatch } from '../prefix/kv-overlaps.js';
import type { TokenIds } from '../prefix/token-ids.js';
import type { WorkerSignals } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import type { Affinity, CacheAwareSettings } from './affinity.js';
import type { PolicyExplanation } from './explanation.js';
import type { Decision, DecisionContext } from './policy.js';

/** The KV-event index as one policy instance reads it. */
export class EventAffinity {
  readonly #affinity: Affinity;
  readonly #kvIndex: () => KvEventIndex | undefined;
  #settings: CacheAwareSettings;

  constructor(settings: CacheAwareSettings, affinity: Affinity, kvIndex: () => KvEventIndex | undefined) {
    this.#settings = settings;
    this.#affinity = affinity;
    this.#kvIndex = kvIndex;
  }

  /** The index once it holds a block; an empty one leaves token requests to the token tree (CA-80). */
  indexInUse(now: number): KvEventIndex | undefined {
    const index = this.#kvIndex();
    return index === undefined || index.isEmpty(now) ? undefined : index;
  }

  /** Decides by the overlaps of `tokens`; a miss is a miss, the trees are not asked (CA-6). */
  decide(index: KvEventIndex, tokens: TokenIds, candidates: CandidateSet, ctx: DecisionContext): Decision {
    const match = index.overlaps(tokens, ctx.now);
    this.#rank(match, candidates, ctx);
    const isHeld = this.#affinity.ranking.workers.length > 0;
    const decision = this.#affinity.decide(candidates, this.#settings, ctx);
    if (!isHeld) decision.branch = 'event_miss';
    else decision.branch = this.#affinity.isInGroup(decision.worker) ? 'event_hit' : 'event_spill';
    decision.note = new EventRead(index, match);
    return decision;
  }

  describe(
    index: KvEventIndex,
    tokens: TokenIds,
    candidates: CandidateSet,
    ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation {
    const match = index.overlaps(tokens, ctx.now);
    this.#rank(match, candidates, ctx);
    const { count, requestBlocks } = match;
    const matchedUnits = count === 0 ? 0 : match.overlap(count - 1);
    const held = Array.from({ length: count }, (_, i) => ({ worker: match.worker(i), overlap: match.overlap(i) }));
    held.sort((a, b) => b.overlap - a.overlap || (a.worker < b.worker ? -1 : 1));
    const holders = held.map(({ worker }) => worker);
    const ratio = requestBlocks === 0 ? 0 : matchedUnits / requestBlocks;
    return {
      match: { index: 'kv_events', matchedUnits, requestUnits: requestBlocks, ratio, holders },
      ...this.#affinity.describe(candidates, this.#settings, ctx, decision),
    };
  }

  configure(settings: CacheAwareSettings): void {
    this.#settings = settings;
  }

  /** Ranks the candidates that hold block 0 by their overlap, the best first (CA-82). */
  #rank(match: KvMatch, candidates: CandidateSet, ctx: DecisionContext): void {
    const { overlapDecay: decay, selectionTemperature } = this.#settings;
    const { ranking } = this.#affinity;
    ranking.clear();
    const onlyBest = decay === 0 && selectionTemperature === 0;
    let lastPosition = Infinity;
    let isArranged = true;
    for (let i = match.count - 1; i >= 0; i--) {
      // A prompt that all share may be held by the whole fleet: without decay and temperature only the best matter.
      if (onlyBest && ranking.workers.length > 0 && match.overlap(i) < ranking.scoreAt(0)) break;
      const position = candidates.indexOf(match.worker(i));
      if (position < 0) continue;
      ranking.add(candidates.at(position) as WorkerSignals, match.overlap(i));
      isArranged &&= position < lastPosition;
      lastPosition = position;
    }
    // Matches list equal holders as the index numbers them, which depends on when removed ones were cleaned up (LB-5).
    if (!isArranged) ranking.arrange((worker) => candidates.indexOf(worker.id));
    const { blockSize, requestBlocks } = match;
    ranking.discount({ decay, blockSize, requestBlocks: Math.max(1, requestBlocks) }, ctx.now);
  }
}

/** What a decision read of the index; `record` marks it as used. */
export class EventRead {
  readonly #index: KvEventIndex;
  readonly #match: KvMatch;

  constructor(index: KvEventIndex, match: KvMatch) {
    this.#index = index;
    this.#match = match;
  }

  /** Marks the blocks as read at `now`, which keeps them from being pruned (CA-96). */
  commit(now: number): void {
    this.#index.touch(this.#match, now);
  }
}
