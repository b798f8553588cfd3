/**
 * For hosts that discover workers in a cluster: which members of its serving groups may answer (LM-40). A serving group is
 * one role of a deployment: replicas of one or more members each; member 0 leads its replica.
 */
import { checkList, checkObject, RoutingConfigError, refuse } from '../errors.js';
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
  /** Encode groups have no endpoint. */
  readonly role: ServingRole;
  /** The engine's load-balancing mode, such as `internal`, `external` or `hybrid`. Absent or another word: unknown. */
  readonly mode?: string | undefined;
  /** Whether the whole group is qualified now, see `qualify`. Absent = not verified. */
  readonly qualified?: boolean | undefined;
  /** In the order in which their endpoints are wanted. */
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
  /** `http://host:port`. */
  readonly url: string;
  /** What it does: a `server` is a regular worker. */
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
  const { port = 8000, externalModes: furtherModes = [] } = checkObject(options);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new RoutingConfigError('port', port, 'must be an integer between 1 and 65535');
  }
  const externalModes = new Set(['external', 'hybrid', ...checkList(furtherModes, 'externalModes')]);
  const endpoints: Endpoint[] = [];
  for (const [i, group] of checkList(groups, 'groups').entries()) {
    const { role, mode, qualified, replicas } = checkObject(group, `groups[${i}]`);
    if (role === 'encode') continue;
    const kind = role === 'server' ? 'regular' : role;
    const isExternal = role === 'server' && qualified === true && mode !== undefined && externalModes.has(mode);
    for (const member of membersOf(checkList(replicas, `groups[${i}].replicas`))) {
      const url = urlOf(member.host, port);
      if (!isExternal && member.index === 0) endpoints.push({ url, kind });
      if (isExternal && member.qualified !== false) endpoints.push({ url, kind, dpRank: member.index });
    }
  }
  return endpoints;
}

/** The members of all replicas, checked and read once. */
function* membersOf(replicas: ServingGroup['replicas']): Generator<GroupMember, void, undefined> {
  for (const replica of replicas) {
    for (const member of checkList(checkObject(replica, 'replica').members, 'members')) {
      const { host, index, qualified } = checkObject(member, 'member');
      if (typeof host !== 'string') throw refuse('host', 'a string', host);
      yield { host, index, qualified };
    }
  }
}

function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
