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

/** Decides by the overlaps of `tokens`; a miss is a miss, the trees are not asked (CA-6). */
export function decideByEvents(
  index: KvEventIndex,
  tokens: TokenIds,
  affinity: Affinity,
  candidates: CandidateSet,
  settings: CacheAwareSettings,
  ctx: DecisionContext,
): Decision {
  const match = index.overlaps(tokens, ctx.now);
  rankHolders(match, affinity, candidates, settings, ctx);
  const held = affinity.ranking.workers.length > 0;
  const decision = affinity.decide(candidates, settings, ctx);
  if (!held) decision.branch = 'event_miss';
  else {
    const inGroup = affinity.ranking.workers.some((holder) => holder === decision.worker);
    decision.branch = inGroup ? 'event_hit' : 'event_spill';
  }
  decision.note = new EventRead(index, match);
  return decision;
}

/** What a decision read of the index; `record` marks it as used. */
export class EventRead {
  readonly #index: KvEventIndex;
  readonly #match: KvMatch;

  constructor(index: KvEventIndex, match: KvMatch) {
    this.#index = index;
    this.#match = match;
  }

  commit(now: number): void {
    this.#index.touch(this.#match, now);
  }
}

export function describeByEvents(
  index: KvEventIndex,
  tokens: TokenIds,
  affinity: Affinity,
  candidates: CandidateSet,
  settings: CacheAwareSettings,
  ctx: DecisionContext,
  decision: Decision,
): PolicyExplanation {
  const match = index.overlaps(tokens, ctx.now);
  rankHolders(match, affinity, candidates, settings, ctx);
  const { count, requestBlocks } = match;
  const matchedUnits = count === 0 ? 0 : match.overlap(count - 1);
  const held = Array.from({ length: count }, (_, i) => ({ worker: match.worker(i), overlap: match.overlap(i) }));
  held.sort((a, b) => b.overlap - a.overlap || (a.worker < b.worker ? -1 : 1));
  const holders = held.map(({ worker }) => worker);
  const ratio = requestBlocks === 0 ? 0 : matchedUnits / requestBlocks;
  return {
    match: { index: 'kv_events', matchedUnits, requestUnits: requestBlocks, ratio, holders },
    ...affinity.describe(candidates, settings, ctx, decision),
  };
}

/** Ranks the candidates that hold block 0 by their overlap, the best first (CA-82). */
function rankHolders(
  match: KvMatch,
  affinity: Affinity,
  candidates: CandidateSet,
  settings: CacheAwareSettings,
  ctx: DecisionContext,
): void {
  const { overlapDecay: decay, selectionTemperature } = settings;
  const { ranking } = affinity;
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
