/**
 * Fingerprints of candidate sets, for policies that remember sets without keeping ids (RR-5, LB-30): the sum of the
 * hashes of all neighbours. Neighbours tell the order of distinct ids, and a sum can be corrected where a few ids are
 * left out.
 */
import { avalanche, hashText } from '../runtime/hash-text.js';
import type { WorkerSignals } from './candidate.js';
import type { CandidateSet } from './candidate-set.js';
import type { Gaps } from './gaps.js';

/** Two 32-bit halves of a hash. */
type Lanes = readonly [number, number];

/** Kept with a set. */
export interface Fingerprint {
  /** What the fingerprint of a part is corrected from. */
  readonly sum: Lanes;
  /** The fingerprint: the number of ids and the sum. */
  readonly text: string;
}

/** What stands before the first and behind the last. */
const edge: Lanes = [0x9e3779b1, 0x85ebca6b];

/**
 * Identifies the ordered set of ids: equal lists, equal fingerprints. O(n) on first use, O(excluded) for what `exclude`
 * left.
 */
export function fingerprintOf(candidates: CandidateSet): string {
  return cached(candidates).text;
}

function cached(candidates: CandidateSet): Fingerprint {
  candidates.fingerprint ??= computed(candidates);
  return candidates.fingerprint;
}

function computed(candidates: CandidateSet): Fingerprint {
  const sum =
    candidates.part === undefined ? wholeSum(candidates) : correctedSum(candidates.part.whole, candidates.part.gaps);
  return { sum, text: `${candidates.size}:${sum[0] >>> 0}:${sum[1] >>> 0}` };
}

function wholeSum({ workers }: CandidateSet): Lanes {
  const sum: [number, number] = [0, 0];
  for (let i = 0; i <= workers.length; i++) addPair(sum, lanesOf(workers[i - 1]), lanesOf(workers[i]), 1);
  return sum;
}

/** Each gap takes the pairs across it away, and makes neighbours of those on its sides. */
function correctedSum(whole: CandidateSet, { positions }: Gaps): Lanes {
  const [high, low] = cached(whole).sum;
  const sum: [number, number] = [high, low];
  for (let first = 0; first < positions.length; ) {
    const start = positions[first] as number;
    let end = start;
    while (positions[first] === end) {
      addPair(sum, lanesOf(whole.at(end - 1)), lanesOf(whole.at(end)), -1);
      first += 1;
      end += 1;
    }
    addPair(sum, lanesOf(whole.at(end - 1)), lanesOf(whole.at(end)), -1);
    addPair(sum, lanesOf(whole.at(start - 1)), lanesOf(whole.at(end)), 1);
  }
  return sum;
}

/** Adds a pair of neighbours, or takes it away. In place: a set of ten thousand is summed up in one go. */
function addPair(sum: [number, number], left: Lanes, right: Lanes, sign: 1 | -1): void {
  sum[0] = (sum[0] + sign * avalanche(Math.imul(left[0], 0xcc9e2d51) + right[1])) | 0;
  sum[1] = (sum[1] + sign * avalanche(Math.imul(left[1], 0x1b873593) + right[0])) | 0;
}

function lanesOf(worker: WorkerSignals | undefined): Lanes {
  if (worker === undefined) return edge;
  // A fleet changes by a worker or two: the others have been hashed before.
  worker.idLanes ??= lanesOfId(worker.id);
  return worker.idLanes;
}

function lanesOfId(id: string): Lanes {
  const hash = hashText(id);
  return [Number.parseInt(hash.slice(0, 8), 16), Number.parseInt(hash.slice(8), 16)];
}
