/**
 * The expected-wait comparison as a policy's decision: what `least_load`, `power_of_two` and `cache_aware` end in
 * (CA-5). The set compared may be any part of the candidates (EW-27).
 */
import { compareWaits, leastWait, type WaitTuning } from '../load/expected-wait.js';
import type { WorkerSignals } from '../workers/candidate.js';
import type { PolicyExplanation } from './explanation.js';
import { Decision, type DecisionContext } from './policy.js';

/** Decides by expected wait; without `tuning` by the defaults and without cap (EW-30). */
export function decideByWait(
  workers: readonly WorkerSignals[],
  ctx: DecisionContext,
  tuning?: WaitTuning | undefined,
): Decision {
  const pick = leastWait(workers, ctx.now, ctx.random, tuning);
  const decision = new Decision(pick?.worker);
  if (pick !== undefined) decision.expectedWaitSeconds = pick.expectedWaitSeconds;
  else if (workers.length > 0) decision.reason = 'waiting_cap';
  return decision;
}

/** The scores, the tie set and the margin of that comparison. */
export function describeByWait(
  workers: readonly WorkerSignals[],
  ctx: DecisionContext,
  tuning?: WaitTuning | undefined,
): PolicyExplanation {
  return compareWaits(workers, ctx.now, tuning);
}
