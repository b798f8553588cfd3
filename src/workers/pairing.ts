/**
 * Which prefill and decode workers may serve one request together (LM-31, LM-32a).
 *
 * Whether two workers pair depends on their pairing facts alone, so workers with equal facts form a group and groups
 * are compared, not workers: a fleet has a handful. Joining costs one comparison for each group of the other leg,
 * nothing is compared per request. Invariants: no group is empty; partnership is symmetric.
 */
import type { WorkerId } from './candidate.js';
import type { ConnectionMode, RuntimeType } from './worker-spec.js';

export type PairingMode = 'off' | 'lenient' | 'strict';

/** Labels that describe how an engine lays out its KV cache; a known difference in one of them forbids a pair. */
const layoutLabels = ['kv_cache_dtype', 'page_size', 'attention_backend', 'model_dtype'] as const;

/** The part of a worker that pairing reads. */
export interface PairingWorker {
  readonly labels: ReadonlyMap<string, string>;
  readonly connectionMode: ConnectionMode;
  /** Wins over the label `runtime`. */
  readonly runtime: RuntimeType | undefined;
}

/** What decides about pairs; undefined = unknown. An empty label counts as unknown. */
export interface PairingFacts {
  readonly grpc: boolean;
  readonly protocol: string | undefined;
  readonly runtime: string | undefined;
  readonly transport: string | undefined;
  readonly engineVersion: string | undefined;
  /** Values of `kv_cache_dtype`, `page_size`, `attention_backend`, `model_dtype`. */
  readonly layout: readonly (string | undefined)[];
}

/** Reads the facts of a worker. Runtime names compare in lower case, everything else as written. */
export function pairingFacts(worker: PairingWorker): PairingFacts {
  const label = (name: string): string | undefined => worker.labels.get(name) || undefined;
  return {
    grpc: worker.connectionMode === 'grpc',
    protocol: label('pairing_protocol'),
    runtime: worker.runtime ?? label('runtime')?.toLowerCase(),
    transport: label('kv_transport'),
    engineVersion: label('engine_version'),
    layout: layoutLabels.map(label),
  };
}

/**
 * Whether a prefill and a decode worker may serve one request together (LM-31).
 *
 * `off` pairs everything but two runtimes over gRPC. Otherwise a `pairing_protocol` on both legs decides by equality,
 * given the same runtime. Otherwise `lenient` refuses known differences, `strict` unknown facts as well.
 */
export function pairCompatible(prefill: PairingFacts, decode: PairingFacts, mode: PairingMode): boolean {
  if (mode === 'off') return !(prefill.grpc || decode.grpc) || mayEqual(prefill.runtime, decode.runtime);
  const strict = mode === 'strict';
  const agree = strict ? knownEqual : mayEqual;
  if (!agree(prefill.runtime, decode.runtime)) return false;
  if (prefill.protocol !== undefined && decode.protocol !== undefined) return prefill.protocol === decode.protocol;
  if (strict && prefill.protocol !== decode.protocol) return false;
  if (!agree(prefill.transport, decode.transport)) return false;
  if (strict && !mayEqual(prefill.engineVersion, decode.engineVersion)) return false;
  return prefill.layout.every((value, i) => {
    const other = decode.layout[i];
    // Strict: a fact that neither leg reports is no difference, one that only one reports is.
    return strict ? value === other : mayEqual(value, other);
  });
}

function mayEqual(a: string | undefined, b: string | undefined): boolean {
  return a === undefined || b === undefined || a === b;
}

function knownEqual(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && a === b;
}

/** Workers of one leg with equal facts. */
export interface PairingGroup {
  readonly facts: PairingFacts;
  /** Groups of the other leg whose workers pair with those of this one. */
  readonly partners: ReadonlySet<PairingGroup>;
}

class Group implements PairingGroup {
  readonly facts: PairingFacts;
  readonly signature: string;
  readonly partners: Set<Group> = new Set();
  size = 0;

  constructor(facts: PairingFacts, signature: string) {
    this.facts = facts;
    this.signature = signature;
  }
}

/** One leg: its workers in registration order, and its groups by signature. */
interface LegGroups {
  readonly groupOf: Map<WorkerId, Group>;
  readonly groups: Map<string, Group>;
}

/** The two legs that pair. */
export type PairedLeg = 'prefill' | 'decode';

/** The pairs among the registered workers of one model. */
export class PairingIndex {
  readonly #mode: PairingMode;
  readonly #legs: Readonly<Record<PairedLeg, LegGroups>> = {
    prefill: { groupOf: new Map(), groups: new Map() },
    decode: { groupOf: new Map(), groups: new Map() },
  };

  constructor(mode: PairingMode) {
    this.#mode = mode;
  }

  /** Whether any registered prefill worker has a compatible decode worker (LM-32a). O(prefill groups). */
  get hasPairs(): boolean {
    for (const group of this.#legs.prefill.groups.values()) if (group.partners.size > 0) return true;
    return false;
  }

  /** Registers a worker, or its changed facts; one that is known keeps its place in the order. */
  add(leg: PairedLeg, id: WorkerId, worker: PairingWorker): PairingGroup {
    const group = this.#groupFor(leg, pairingFacts(worker));
    const { groupOf } = this.#legs[leg];
    // Joined before the old group is left: re-adding the only member must not dissolve the group it is in.
    group.size += 1;
    this.#leave(leg, groupOf.get(id));
    groupOf.set(id, group);
    return group;
  }

  remove(leg: PairedLeg, id: WorkerId): void {
    const { groupOf } = this.#legs[leg];
    this.#leave(leg, groupOf.get(id));
    groupOf.delete(id);
  }

  groupOf(leg: PairedLeg, id: WorkerId): PairingGroup | undefined {
    return this.#legs[leg].groupOf.get(id);
  }

  /** The workers of the other leg that pair with those of `group`, in registration order. O(workers of that leg). */
  partnersOf(leg: PairedLeg, group: PairingGroup): readonly WorkerId[] {
    const partners: WorkerId[] = [];
    for (const [id, other] of this.#legs[otherLeg(leg)].groupOf) if (group.partners.has(other)) partners.push(id);
    return partners;
  }

  #groupFor(leg: PairedLeg, facts: PairingFacts): Group {
    const { groups } = this.#legs[leg];
    const signature = JSON.stringify(facts);
    const known = groups.get(signature);
    if (known !== undefined) return known;
    const group = new Group(facts, signature);
    groups.set(signature, group);
    for (const other of this.#legs[otherLeg(leg)].groups.values()) {
      const [prefill, decode] = leg === 'prefill' ? [group, other] : [other, group];
      if (!pairCompatible(prefill.facts, decode.facts, this.#mode)) continue;
      group.partners.add(other);
      other.partners.add(group);
    }
    return group;
  }

  #leave(leg: PairedLeg, group: Group | undefined): void {
    if (group === undefined) return;
    group.size -= 1;
    if (group.size > 0) return;
    for (const other of group.partners) other.partners.delete(group);
    this.#legs[leg].groups.delete(group.signature);
  }
}

function otherLeg(leg: PairedLeg): PairedLeg {
  return leg === 'prefill' ? 'decode' : 'prefill';
}
