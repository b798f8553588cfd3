/**
 * What is known of a deployment from several observations of it: whether a group of workers is qualified to answer, and
 * what the routers in front of it serve (LM-41, LM-42). Observations agree on a set of members or say too little. Pure
 * functions.
 */
import { checkList, checkNumber, checkObject, refuse } from '../errors.js';

/** One leg of the evidence: what was observed, and of which members. */
export interface QualificationLeg {
  /** `unknown`: the observation says too little to change anything. */
  readonly state: 'verified' | 'failed' | 'unknown';
  /** The members the observation was made of, in any order; null = never observed, empty = observed to be none. */
  readonly members: readonly string[] | null;
}

/** The five legs of a group's qualification (LM-41). */
export interface QualificationLegs {
  /** No member is missing. */
  readonly membersComplete: QualificationLeg;
  /** Every member is ready. */
  readonly membersReady: QualificationLeg;
  /** The group passes requests on to its members. */
  readonly groupForwards: QualificationLeg;
  /** No member is about to be taken away. */
  readonly noPlannedRetirement: QualificationLeg;
  /** No member is about to be replaced. */
  readonly noPendingReplacement: QualificationLeg;
}

/** Where a group stands. */
export interface Qualification {
  /** Whether every member may answer: `qualified` of a serving group (LM-40). */
  readonly qualified: boolean;
  /** The members that are qualified, sorted. Null = never decided; empty = decided, and there is none. */
  readonly members: readonly string[] | null;
}

/** Before the first decision. */
export const neverQualified: Qualification = { qualified: false, members: null };

const legNames = [
  'membersComplete',
  'membersReady',
  'groupForwards',
  'noPlannedRetirement',
  'noPendingReplacement',
] as const;

/**
 * The next standing of a group (LM-41). Any failed leg revokes at once; all five verified of the same members qualify
 * those; anything else says too little and holds what was.
 *
 * @throws TypeError naming the leg that is missing or has no list of members
 */
export function qualify(previous: Qualification, legs: QualificationLegs): Qualification {
  const all = legNames.map((name) => checkObject(checkObject(legs, 'legs')[name], name));
  if (all.some((leg) => leg.state === 'failed')) return { qualified: false, members: [] };
  if (!all.every((leg) => leg.state === 'verified')) return previous;
  const members = agreed(all.map((leg) => leg.members));
  return members === undefined ? previous : { qualified: true, members };
}

/** What one router said it serves. */
export interface ServingView {
  /** When it was collected, on the same clock as `now`, milliseconds. */
  readonly observedAt: number;
  /** Workers it serves, in any order. */
  readonly workers: readonly string[];
  /** False when the router could not list all of them. Absent = true. */
  readonly complete?: boolean | undefined;
}

/** What is known to be served. There is a value only when it is confirmed (LM-42). */
export type ServingObservation =
  | { readonly state: 'Confirmed'; readonly workers: readonly string[] }
  | { readonly state: 'NotConverged' | 'Unknown' | 'NotConfigured' };

/**
 * Joins the views of all routers, one entry each, null where none was collected (LM-42): `NotConfigured` without
 * routers, `Unknown` when a view is missing, incomplete or older than `maxAgeMs`, `NotConverged` when they disagree.
 *
 * @param now on the clock of the views, milliseconds; a view from the future is 0 old
 * @param maxAgeMs how long a view counts
 * @throws TypeError when the views or the workers of one are no list, or a time is no number
 */
export function observeServing(
  views: readonly (ServingView | null)[],
  now: number,
  maxAgeMs = 15_000,
): ServingObservation {
  checkNumber(now, 'now');
  checkNumber(maxAgeMs, 'maxAgeMs');
  if (checkList(views, 'views').length === 0) return { state: 'NotConfigured' };
  const counts = (view: ServingView | null): boolean => {
    if (view === null) return false;
    const { complete, observedAt } = checkObject(view, 'view');
    checkNumber(observedAt, 'observedAt');
    return complete !== false && now - observedAt <= maxAgeMs;
  };
  if (!views.every(counts)) return { state: 'Unknown' };
  const workers = agreed(views.map((view) => view?.workers ?? null));
  return workers === undefined ? { state: 'NotConverged' } : { state: 'Confirmed', workers };
}

/** The one set all lists name, sorted and without repetition; undefined when they differ or one is null. */
function agreed(lists: readonly (readonly string[] | null)[]): readonly string[] | undefined {
  const sets = lists.map((list) => (list === null ? undefined : [...new Set(checkNames(list))].sort()));
  const [first] = sets;
  if (first === undefined) return undefined;
  const same = sets.every((set) => set?.length === first.length && set.every((name, i) => name === first[i]));
  return same ? first : undefined;
}

function checkNames(names: readonly string[]): readonly string[] {
  for (const name of checkList(names, 'members'))
    if (typeof name !== 'string') throw refuse('members', 'strings', name);
  return names;
}
