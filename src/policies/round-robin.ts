/**
 * `round_robin`: one rotation for each ordered set of candidates, so that a set whose membership changes and returns
 * resumes where it stopped, and interleaved sets are each covered evenly (RR-1, RR-2, RR-6, B70). O(1) while a set lasts.
 *
 * Invariants: at most 4096 rotations, the least recently used goes first (RR-4, B80); sets are kept as fingerprints, so
 * no worker id outlives its worker (LB-30).
 */
import { resolveOptions } from '../options/validate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import { fingerprintOf } from '../workers/fingerprint.js';
import type { PolicyExplanation } from './explanation.js';
import { Decision, type Policy, type PolicyNeeds } from './policy.js';
import { type RuntimeOptions, runtimeTable } from './runtime-options.js';
import { type StandalonePolicy, standalone } from './standalone.js';

/** Sets remembered (CF-110). */
const maxRotations = 4096;

/** The policy of one pool (RR-1). */
export function createRoundRobin(): Policy {
  return new RoundRobin();
}

/**
 * `round_robin` without a router: the candidates in turn, one rotation for each list of ids (RR-1).
 *
 * @throws RoutingConfigError for an unknown or invalid option
 */
export function roundRobin(options?: RuntimeOptions): StandalonePolicy {
  return standalone(createRoundRobin(), resolveOptions(runtimeTable, options));
}

/** Where a set's rotation stands: what `record` advances. */
interface Turn {
  readonly set: string;
  readonly position: number;
}

class RoundRobin implements Policy {
  readonly name = 'round_robin';
  readonly needs: PolicyNeeds = {};
  /** Next position by fingerprint, least recently used first. */
  readonly #rotations = new Map<string, number>();
  #latestSet: string | undefined;
  /** Where the next new set starts: moving on keeps changing fleets from leaning on index 0 (RR-3). */
  #sharedStart = 0;

  decide(_request: unknown, candidates: CandidateSet): Decision {
    if (candidates.size === 0) return new Decision(undefined);
    const set = fingerprintOf(candidates);
    const position = (this.#rotations.get(set) ?? this.#sharedStart) % candidates.size;
    const decision = new Decision(candidates.at(position));
    decision.note = { set, position } satisfies Turn;
    return decision;
  }

  record(_request: unknown, decision: Decision): void {
    if (decision.worker === undefined) return;
    const { set, position } = decision.note as Turn;
    // Deleting first moves the set to the end of the order of use, where the set of the last call is already.
    if (set !== this.#latestSet && !this.#rotations.delete(set)) {
      this.#sharedStart += 1;
      if (this.#rotations.size >= maxRotations) this.#dropOldest();
    }
    this.#latestSet = set;
    this.#rotations.set(set, position + 1);
  }

  describe(_request: unknown, _candidates: CandidateSet, _ctx: unknown, decision: Decision): PolicyExplanation {
    return { tieSet: decision.worker === undefined ? [] : [decision.worker.id] };
  }

  /** Nothing to replace; the instance and its rotations stay (LB-35). */
  configure(): void {}

  #dropOldest(): void {
    for (const oldest of this.#rotations.keys()) {
      this.#rotations.delete(oldest);
      return;
    }
  }
}
