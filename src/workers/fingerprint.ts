/** Fingerprints of candidate sets, for policies that remember sets without keeping ids (RR-5, LB-30). */
import { avalanche, hashText } from '../runtime/mix.js';
import type { CandidateSet } from './candidate-set.js';

/** Identifies the ordered set of ids: equal lists, equal fingerprints. O(n) on first use, then kept with the set. */
export function fingerprintOf(candidates: CandidateSet): string {
  candidates.fingerprint ??= hashIds(candidates);
  return candidates.fingerprint;
}

function hashIds({ workers }: CandidateSet): string {
  let high = workers.length;
  let low = 0x9e3779b1;
  for (const { id } of workers) {
    const hash = hashText(id);
    high = avalanche(high ^ Number.parseInt(hash.slice(0, 8), 16));
    low = Math.imul(avalanche(low ^ Number.parseInt(hash.slice(8), 16)), 0x85ebca6b) + high;
  }
  return `${workers.length}:${high >>> 0}:${low >>> 0}`;
}
