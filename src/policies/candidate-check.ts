/** Checks the candidates a policy used alone is given (LB-10a, LB-42). Nothing was changed yet when it throws. O(n). */
import { refuse } from '../errors.js';
import type { Candidate, WorkerId } from '../workers/candidate.js';

/**
 * Reports are not checked here: one that cannot be read is no report (LR-11a).
 *
 * @param previous the candidates of the last call: while the ids stay the same they need no look for duplicates
 * @throws TypeError naming the field, for example `candidates[3].inFlight`
 */
export function checkCandidates(candidates: unknown, previous: readonly { readonly id: WorkerId }[]): void {
  if (!Array.isArray(candidates)) throw refuse('candidates', 'an array', candidates);
  let sameIds = candidates.length === previous.length;
  for (let i = 0; i < candidates.length; i++) {
    const candidate: Candidate = candidates[i];
    if (typeof candidate !== 'object' || candidate === null) throw refuse(`candidates[${i}]`, 'an object', candidate);
    // The report is only looked at: a getter that fails does so before anything is taken over.
    const { id, inFlight, activeKeys, keysInFlight, report: _ } = candidate;
    if (typeof id !== 'string' || id === '') throw refuse(`candidates[${i}].id`, 'a non-empty string', id);
    if (!isCount(inFlight)) throw refuse(`candidates[${i}].inFlight`, 'an integer ≥ 0', inFlight);
    if (activeKeys !== undefined && !isCount(activeKeys)) {
      throw refuse(`candidates[${i}].activeKeys`, 'an integer ≥ 0', activeKeys);
    }
    if (keysInFlight !== undefined && (typeof keysInFlight !== 'object' || keysInFlight === null)) {
      throw refuse(`candidates[${i}].keysInFlight`, 'an object or a Map', keysInFlight);
    }
    sameIds &&= id === previous[i]?.id;
  }
  if (!sameIds) checkDistinct(candidates);
}

function checkDistinct(candidates: readonly Candidate[]): void {
  const seen = new Set<WorkerId>();
  for (let i = 0; i < candidates.length; i++) {
    const { id } = candidates[i] as Candidate;
    if (seen.has(id)) throw refuse(`candidates[${i}].id`, 'distinct ids', id);
    seen.add(id);
  }
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
