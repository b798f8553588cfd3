/**
 * For hosts that discover workers in a cluster: which members of a serving group may answer, whether a group is
 * qualified, and what the routers in front of it are known to serve (LM-40 to LM-42). Pure functions over observations.
 *
 * A serving group is one role of a deployment: replicas of one or more members each; member 0 leads its replica.
 */
import { checkList, checkNumber, checkOptions, RoutingConfigError, refuse } from '../errors.js';
import type { WorkerKind } from './worker-spec.js';

/** What the workers of a group do. */
export type ServingRole = 'server' | 'prefill' | 'decode' | 'encode';

/** One process of a replica. */
export interface GroupMember {
  /** 0-based within its replica. */
  readonly index: number;
  /** Host name or address, without a port. IPv6 without brackets. */
  readonly host: string;
  /** False takes one member of a qualified group out of the answer. Absent = true. */
  readonly qualified?: boolean | undefined;
}

/** One role of a deployment. */
export interface ServingGroup {
  readonly role: ServingRole;
  /** The engine's load-balancing mode, such as `internal`, `external` or `hybrid`. Absent or another word: unknown. */
  readonly mode?: string | undefined;
  /** Whether the whole group is qualified now, see `qualify`. Absent = not verified. */
  readonly qualified?: boolean | undefined;
  readonly replicas: readonly { readonly members: readonly GroupMember[] }[];
}

/** What is the same for all groups. */
export interface EndpointOptions {
  /** The one port of all routed roles, 1–65535. Default 8000. */
  readonly port?: number | undefined;
  /** Further words for modes that follow the external rule. */
  readonly externalModes?: readonly string[] | undefined;
}

/** A member that may answer. `url` and `kind` fit a worker spec. */
export interface Endpoint {
  readonly url: string;
  readonly kind: WorkerKind;
  /** The data-parallel rank it serves; absent when it answers for its whole replica. */
  readonly dpRank?: number | undefined;
}

/**
 * The endpoints that may answer, in the order given (LM-40). A qualified group whose mode is not internal answers with
 * every qualified member, each one rank; prefill and decode roles, internal, unknown and unverified groups with member
 * 0 of each replica; an encode role never answers.
 *
 * @throws RoutingConfigError for a port out of range, TypeError naming the field for groups of another shape
 */
export function eligibleEndpoints(groups: readonly ServingGroup[], options: EndpointOptions = {}): readonly Endpoint[] {
  const { port = 8000, externalModes: furtherModes = [] } = checkOptions(options);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new RoutingConfigError('port', port, 'must be an integer between 1 and 65535');
  }
  const externalModes = new Set(['external', 'hybrid', ...checkList(furtherModes, 'externalModes')]);
  const endpoints: Endpoint[] = [];
  for (const [i, group] of checkList(groups, 'groups').entries()) {
    const { role, mode, qualified, replicas } = checkOptions(group, `groups[${i}]`);
    if (role === 'encode') continue;
    const kind = role === 'server' ? 'regular' : role;
    const everyMember = role === 'server' && qualified === true && mode !== undefined && externalModes.has(mode);
    for (const replica of checkList(replicas, `groups[${i}].replicas`)) {
      for (const member of checkList(checkOptions(replica, 'replica').members, 'members')) {
        const { host, index, qualified: isOwnQualified } = checkOptions(member, 'member');
        if (typeof host !== 'string') throw refuse('host', 'a string', host);
        const url = urlOf(host, port);
        if (!everyMember) {
          if (index === 0) endpoints.push({ url, kind });
        } else if (isOwnQualified !== false) endpoints.push({ url, kind, dpRank: index });
      }
    }
  }
  return endpoints;
}

function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** One leg of the evidence: what was observed, and of which members. */
export interface QualificationLeg {
  readonly state: 'verified' | 'failed' | 'unknown';
  /** The members the observation was made of, in any order; null = never observed, empty = observed to be none. */
  readonly members: readonly string[] | null;
}

/** The five legs of a group's qualification (LM-41). */
export interface QualificationLegs {
  readonly membersComplete: QualificationLeg;
  readonly membersReady: QualificationLeg;
  readonly groupForwards: QualificationLeg;
  readonly noPlannedRetirement: QualificationLeg;
  readonly noPendingReplacement: QualificationLeg;
}

/** Where a group stands. */
export interface Qualification {
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
  const all = legNames.map((name) => checkOptions(checkOptions(legs, 'legs')[name], name));
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
    const { complete, observedAt } = checkOptions(view, 'view');
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
