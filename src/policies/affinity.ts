/**
 * From holders of a prefix to the chosen worker (CA-5, CA-10, CA-11): expected wait decides among the group of the best
 * holders that are not hot; when all of them are hot, among whoever in the fleet is not; when nobody holds the prefix,
 * or everybody is hot, among everybody.
 *
 * The lists are reused from decision to decision: a hit costs O(holders), only a spill or a miss looks at the fleet.
 */
import { gateTerms, isHot, type SpillLimits, spillLimits } from '../load/spill-gate.js';
import type { Resolved } from '../options/spec.js';
import type { cacheAwareTable } from '../options/table.js';
import { OverlapRanking } from '../prefix/overlap-ranking.js';
import type { RequestView } from '../request.js';
import type { WorkerId, WorkerSignals } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import type { PolicyExplanation } from './explanation.js';
import type { Decision, DecisionContext, PolicyEvents } from './policy.js';
import { decideByWait, describeByWait } from './scored-decision.js';

/** The options of `cache_aware` with their defaults filled in. */
export type CacheAwareSettings = Resolved<typeof cacheAwareTable>;

/** What separates a request from others in the index of one policy instance. */
export type PartitionOf = (request: RequestView, ctx: DecisionContext) => string | undefined;

/** What the indexes of one policy instance work with. */
export interface IndexSurroundings {
  readonly affinity: Affinity;
  readonly events: PolicyEvents;
  readonly partitionOf: PartitionOf;
  /** Salt of the token tree's page hash: random, so that clients cannot make pages collide. Absent: 0. */
  readonly salt?: number | undefined;
}

/** The choice among the holders of one request at a time. */
export class Affinity {
  /** The holders of the request at hand: whoever looked them up fills it, `decide` reduces it to the group. */
  readonly ranking: OverlapRanking = new OverlapRanking();
  readonly #cool: WorkerSignals[] = [];

  /** Forgets the workers of the last decision (LB-30). */
  clear(): void {
    this.ranking.clear();
    this.#cool.length = 0;
  }

  /** Chooses. With an empty ranking this is a miss. */
  decide(candidates: CandidateSet, settings: CacheAwareSettings, ctx: DecisionContext): Decision {
    this.ranking.keepGroup(settings.selectionTemperature, ctx.random);
    return decideByWait(this.#contenders(this.ranking.workers, candidates, settings), ctx);
  }

  /** Whether a worker is of the group that the last decision was made for; one that is not was chosen by load alone. */
  isInGroup(worker: WorkerSignals | undefined): boolean {
    return worker !== undefined && this.ranking.workers.includes(worker);
  }

  /**
   * The comparison behind a decision, without a draw. Above temperature 0 any score could have been sampled: the tie set
   * is the union over the groups, the scores are those of the group that decided (LB-13).
   */
  describe(
    candidates: CandidateSet,
    settings: CacheAwareSettings,
    ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation {
    const tieSet = new Set<WorkerId>();
    let shown: PolicyExplanation | undefined;
    for (const group of this.ranking.groups(settings.selectionTemperature)) {
      const comparison = describeByWait(this.#contenders(group, candidates, settings), ctx);
      for (const id of comparison.tieSet ?? []) tieSet.add(id);
      if (shown === undefined || group.includes(decision.worker as WorkerSignals)) shown = comparison;
    }
    const gate = gateTerms(candidates.workers, limitsOf(candidates, settings));
    if (shown === undefined) return { gate, ...describeByWait(candidates.workers, ctx) };
    return { gate, ...shown, tieSet: [...tieSet] };
  }

  #contenders(
    group: readonly WorkerSignals[],
    candidates: CandidateSet,
    settings: CacheAwareSettings,
  ): readonly WorkerSignals[] {
    if (group.length === 0) return candidates.workers;
    const limits = limitsOf(candidates, settings);
    // Whoever has the fewest requests is never above the mean: of all candidates some are cool.
    if (!this.#keepCool(group, limits)) this.#keepCool(candidates.workers, limits);
    return this.#cool;
  }

  #keepCool(workers: readonly WorkerSignals[], limits: SpillLimits): boolean {
    const cool = this.#cool;
    cool.length = 0;
    for (let i = 0; i < workers.length; i++) {
      const worker = workers[i] as WorkerSignals;
      if (!isHot(worker.inFlight, limits)) cool.push(worker);
    }
    return cool.length > 0;
  }
}

/** The gate's limits for this call: the mean is that of all its candidates, not only of the holders (CA-1). */
function limitsOf(candidates: CandidateSet, settings: CacheAwareSettings): SpillLimits {
  const mean = candidates.inFlight / candidates.size;
  return spillLimits(mean, settings.balanceRelThreshold, settings.balanceAbsThreshold);
}
