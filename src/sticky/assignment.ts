/**
 * How a key without a usable pin is placed (ST-50): at random, by in-flight requests, or by active routing keys. Ties
 * are broken at random, every tied worker with equal chance and one draw. O(1) for random, else O(n), and only when placing.
 */
import { type RandomSource, randomIndex } from '../runtime/random.js';
import type { WorkerId, WorkerSignals } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';

/** How a key without a usable pin is placed; `delegate` leaves it to the policy underneath (ST-50). */
export type AssignmentMode = 'random' | 'min_load' | 'min_group' | 'delegate';

/** A mode that picks by itself. */
export type OwnAssignmentMode = Exclude<AssignmentMode, 'delegate'>;

/** Picks one of the candidates; undefined only when there is none. */
export function assign(
  mode: OwnAssignmentMode,
  candidates: CandidateSet,
  random: RandomSource,
): WorkerSignals | undefined {
  if (mode === 'random') return candidates.at(randomIndex(random, candidates.size));
  const { workers } = candidates;
  let minimum = Infinity;
  let tied = 0;
  let least: WorkerSignals | undefined;
  for (const worker of workers) {
    const load = loadOf(mode, worker);
    if (load === minimum) tied += 1;
    else if (load < minimum) {
      minimum = load;
      tied = 1;
      least = worker;
    }
  }
  if (tied <= 1) return least;
  let skip = randomIndex(random, tied);
  return workers.find((worker) => loadOf(mode, worker) === minimum && skip-- === 0);
}

/** Every worker the mode could pick. */
export function assignable(mode: OwnAssignmentMode, candidates: CandidateSet): readonly WorkerId[] {
  const { workers } = candidates;
  if (mode === 'random') return workers.map((worker) => worker.id);
  const minimum = workers.reduce((least, worker) => Math.min(least, loadOf(mode, worker)), Infinity);
  return workers.filter((worker) => loadOf(mode, worker) === minimum).map((worker) => worker.id);
}

/** What the mode looks for the least of. */
function loadOf(mode: OwnAssignmentMode, worker: WorkerSignals): number {
  return mode === 'min_group' ? worker.activeKeys : worker.inFlight;
}
