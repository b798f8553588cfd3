/**
 * Who can win a decision, and how often: the same decision made by a fresh policy under many seeds. With k equally likely
 * winners, `seeds` runs miss one of them with probability below k · (1 − 1/k)^seeds: for k = 10 and 200 seeds that is
 * 10⁻⁸. The seeds are fixed, so a test that passes once passes always.
 */
import { checkList, checkObject, refuse } from '../errors.js';
import type { StandalonePolicy } from '../policies/standalone.js';
import type { RouteRequest } from '../request.js';
import type { Candidate, WorkerId } from '../workers/candidate.js';
import type { ContractRuntime } from './policy-contract.js';

/** The outcomes of one decision under many seeds. */
export interface Distribution {
  /** Workers that won at least once, in the order of the candidates. */
  readonly reachable: readonly WorkerId[];
  /** Wins of every candidate, in their order. */
  readonly counts: ReadonlyMap<WorkerId, number>;
  /** Runs that selected nobody. */
  readonly nobody: number;
}

/** How many runs. */
export interface DistributionOptions {
  /** How many seeds, 0, 1, 2 …, or the seeds themselves. Default 200. */
  readonly seeds?: number | Iterable<number> | undefined;
}

/**
 * Makes the decision once a seed.
 *
 * @param make a fresh policy that passes `seed` and `clock` on, `leastLoad` for instance; one that should know earlier
 * requests is given them here
 * @param candidates literals are read only, so the same serve every run
 * @throws TypeError naming the argument of the wrong type
 */
export function distribution(
  make: (runtime: ContractRuntime) => StandalonePolicy,
  request: RouteRequest,
  candidates: readonly Candidate[],
  options: DistributionOptions = {},
): Distribution {
  const { seeds = 200 } = checkObject(options);
  if (typeof make !== 'function') throw refuse('make', 'a function', make);
  const counts = new Map<WorkerId, number>();
  for (const candidate of checkList(candidates, 'candidates')) counts.set(checkObject(candidate, 'candidate').id, 0);
  let nobody = 0;
  for (const seed of seedsOf(seeds)) {
    const selection = make({ seed, clock: () => 0 }).selectWorker(request, candidates);
    if (selection.ok) counts.set(selection.worker.id, (counts.get(selection.worker.id) ?? 0) + 1);
    else nobody += 1;
  }
  const reachable = [...counts].filter(([, wins]) => wins > 0).map(([id]) => id);
  return { reachable, counts, nobody };
}

function seedsOf(seeds: number | Iterable<number>): Iterable<number> {
  if (Number.isSafeInteger(seeds) && (seeds as number) >= 0) return countTo(seeds as number);
  if (typeof (seeds as Iterable<number> | null)?.[Symbol.iterator] === 'function') return seeds as Iterable<number>;
  throw refuse('seeds', 'an integer ≥ 0 or a list of seeds', seeds);
}

function* countTo(end: number): Generator<number> {
  for (let seed = 0; seed < end; seed++) yield seed;
}
