/**
 * `power_of_two`: compares two candidates sampled without replacement, every pair equally likely (P2-2, B68), by
 * expected wait or by requests in flight; `least_requests` compares the whole fleet by requests in flight instead. Who
 * is left goes to the expected-wait score with its default tuning (P2-5, P2-6). O(1); `least_requests` O(n).
 */
import { compareWaits } from '../load/expected-wait.js';
import type { PowerOfTwoOptions } from '../options/policy-options.js';
import type { Resolved } from '../options/spec.js';
import { powerOfTwoTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';
import { type RandomSource, randomIndex } from '../runtime/random.js';
import type { WorkerId, WorkerSignals } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import type { Decision, DecisionContext, Policy } from './policy.js';
import { type RuntimeOptions, runtimeTable } from './runtime-options.js';
import { decideByWait, describeByWait } from './scored-decision.js';
import { type StandalonePolicy, standalone } from './standalone.js';

/** The policy of one pool (P2-1 to P2-6). */
export function createPowerOfTwo({ loadMetric }: Resolved<typeof powerOfTwoTable>): Policy {
  return {
    name: 'power_of_two',
    needs: { reports: true },
    decide(_request, candidates, ctx): Decision {
      let compared = loadMetric === 'least_requests' ? candidates.workers : sampledPair(candidates, ctx.random);
      if (loadMetric !== 'expected_wait') compared = fewestInFlight(compared);
      const decision = decideByWait(compared, ctx);
      decision.note = compared;
      return decision;
    },
    describe(_request, { workers }, ctx, decision) {
      const comparison = describeByWait(decision.note as readonly WorkerSignals[], ctx);
      if (loadMetric === 'least_requests') return comparison;
      const tieSet = loadMetric === 'requests' ? winnersByRequests(workers, ctx) : winnersByWait(workers, ctx);
      return { ...comparison, tieSet };
    },
  };
}

/**
 * `power_of_two` without a router: the better of two random candidates, by `loadMetric` (P2-1 to P2-5).
 *
 * @throws RoutingConfigError for an unknown or invalid option
 */
export function powerOfTwo(options?: PowerOfTwoOptions & RuntimeOptions): StandalonePolicy {
  const resolved = resolveOptions({ ...powerOfTwoTable, ...runtimeTable }, options);
  return standalone(createPowerOfTwo(resolved), resolved);
}

function sampledPair(candidates: CandidateSet, random: RandomSource): readonly WorkerSignals[] {
  const { size } = candidates;
  if (size <= 2) return candidates.workers;
  const first = randomIndex(random, size);
  const other = randomIndex(random, size - 1);
  const second = other < first ? other : other + 1;
  return [candidates.at(first) as WorkerSignals, candidates.at(second) as WorkerSignals];
}

/** All with the fewest requests in flight, each count read once (P2-5). */
function fewestInFlight(workers: readonly WorkerSignals[]): readonly WorkerSignals[] {
  const kept: WorkerSignals[] = [];
  let fewest = Infinity;
  for (let i = 0; i < workers.length; i++) {
    const worker = workers[i] as WorkerSignals;
    const { inFlight } = worker;
    if (inFlight > fewest) continue;
    if (inFlight < fewest) kept.length = 0;
    fewest = inFlight;
    kept.push(worker);
  }
  return kept;
}

/**
 * Everybody who wins at least one pair by requests in flight (P2-3): all but the busiest, and of those whoever wins a pair
 * of them by the score. A sole busiest worker has no such pair and loses them all, unless it is the whole fleet. O(n).
 */
function winnersByRequests(workers: readonly WorkerSignals[], ctx: DecisionContext): WorkerId[] {
  let most = 0;
  for (const { inFlight } of workers) if (inFlight > most) most = inFlight;
  const busiest = workers.filter(({ inFlight }) => inFlight === most);
  const alwaysLoses = busiest.length === 1 && workers.length > 1;
  const winners = new Set(alwaysLoses ? [] : winnersByWait(busiest, ctx));
  return workers.filter(({ id, inFlight }) => inFlight < most || winners.has(id)).map(({ id }) => id);
}

/**
 * Everybody who wins at least one pair by expected wait (P2-2). Against a worker without a report a reporting one never
 * loses, and an idle one without a report ties with any reporting one (EW-25); among their like all win but a sole
 * worst. O(n).
 */
function winnersByWait(workers: readonly WorkerSignals[], ctx: DecisionContext): WorkerId[] {
  const { scores } = compareWaits(workers, ctx.now);
  const missing = scores.filter(({ basis }) => basis !== 'report');
  const worstScore = soleWorst(scores.map(({ score }) => score));
  const worstInFlight = soleWorst(missing.map(({ inFlight }) => inFlight));
  return scores
    .filter(({ basis, score, inFlight }) => {
      if (scores.length === 1) return true;
      if (basis === 'report') return missing.length > 0 || score !== worstScore;
      return inFlight === 0 || inFlight !== worstInFlight;
    })
    .map(({ worker }) => worker);
}

/** The highest value when exactly one has it. */
function soleWorst(values: readonly number[]): number | undefined {
  let worst = -Infinity;
  let count = 0;
  for (const value of values) {
    if (value > worst) {
      worst = value;
      count = 1;
    } else if (value === worst) count += 1;
  }
  return count === 1 ? worst : undefined;
}
