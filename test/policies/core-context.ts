/** What a router hands to a policy, for tests of members that a policy used alone does not show. */
import type { Decision, DecisionContext, Policy, RingLookup } from '../../src/policies/policy.js';
import { RequestView, type RouteRequest } from '../../src/request.js';
import { seededRandom } from '../../src/runtime/random.js';
import type { WorkerSignals } from '../../src/workers/candidate.js';
import { CandidateSet } from '../../src/workers/candidate-set.js';

/** Workers with nothing but ids and in-flight counts. */
export function signalsOf(...ids: readonly string[]): WorkerSignals[] {
  return ids.map((id) => ({
    id,
    inFlight: 0,
    activeKeys: 0,
    load: undefined,
    creditTokens: 0,
    creditRequests: 0,
    keyInFlight: () => 0,
  }));
}

/** Decides and records once. */
export function decideOn(
  policy: Policy,
  request: RouteRequest,
  workers: readonly WorkerSignals[],
  given: { readonly now?: number; readonly model?: string; readonly ring?: RingLookup } = {},
): Decision {
  const available = new CandidateSet(workers);
  const view = new RequestView(request);
  const ctx: DecisionContext = {
    now: given.now ?? 0,
    random: seededRandom(1),
    model: given.model ?? 'unknown',
    leg: 'single',
    ring: given.ring,
    available,
  };
  const decision = policy.decide(view, available, ctx);
  policy.record?.(view, decision, ctx);
  return decision;
}
