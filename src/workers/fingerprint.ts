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
  for (const worker of workers) {
    // A fleet changes by a worker or two: the others have been hashed before.
    worker.idLanes ??= lanesOf(worker.id);
    high = avalanche(high ^ worker.idLanes[0]);
    low = Math.imul(avalanche(low ^ worker.idLanes[1]), 0x85ebca6b) + high;
  }
  return `${workers.length}:${high >>> 0}:${low >>> 0}`;
}

function lanesOf(id: string): readonly [number, number] {
  const hash = hashText(id);
  return [Number.parseInt(hash.slice(0, 8), 16), Number.parseInt(hash.slice(8), 16)];
}
