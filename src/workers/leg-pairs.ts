/**
 * The pairs between one list of prefill workers and one of decode workers (LM-30, LM-31). Whether two workers pair depends
 * on their pairing facts alone, so groups of workers with equal facts are compared, not workers: a fleet has a handful.
 * Each group of prefill workers keeps the list of its decode partners. Made when first asked for after a leg changed,
 * O(workers + groups²), never per request; where everybody pairs with everybody the decode list itself is the partners'.
 */
import { AvailableList } from './available-list.js';
import type { WorkerId } from './candidate.js';
import { type PairingFacts, type PairingMode, type PairingWorker, pairCompatible, pairingFacts } from './pairing.js';
import type { WorkerState } from './worker.js';

/** Prefill workers that could be paired right now. */
export interface ViablePrefill {
  /** Ids; undefined = every one of the list. */
  readonly viable: ReadonlySet<WorkerId> | undefined;
  /** Whether any two registered workers are compatible, available or not (LM-32a). */
  readonly hasPair: boolean;
}

/** How the mode of the router reads a worker's facts. */
export type FactReader = (worker: WorkerState) => PairingWorker;

/** Workers of one leg with equal pairing facts, in registration order. */
interface FactGroup {
  readonly facts: PairingFacts;
  readonly workers: WorkerState[];
}

/** Prefill workers with equal facts, and the decode workers they may be paired with. */
interface PartneredGroup {
  readonly prefill: readonly WorkerState[];
  readonly partners: AvailableList;
}

/** Which decode workers each prefill worker may be paired with, as the two lists stand. */
export class LegPairs {
  readonly #decode: AvailableList;
  readonly #groups: readonly PartneredGroup[];
  readonly #partnersOf = new Map<WorkerId, AvailableList>();
  readonly #hasPair: boolean;

  constructor(prefill: AvailableList, decode: AvailableList, mode: PairingMode, read: FactReader) {
    this.#decode = decode;
    const decodeGroups = groupsOf(decode, read);
    this.#groups = groupsOf(prefill, read).map(({ facts, workers }) => {
      const compatible = decodeGroups.filter((other) => pairCompatible(facts, other.facts, mode));
      const partners = compatible.length === decodeGroups.length ? decode : listOf(compatible, decode);
      for (const worker of workers) this.#partnersOf.set(worker.id, partners);
      return { prefill: workers, partners };
    });
    this.#hasPair = this.#groups.some(({ partners }) => partners.size > 0);
  }

  /** The prefill workers with a decode partner that is available and not excluded. O(groups) when all have one. */
  viablePrefill(now: number, exclude: readonly WorkerId[] = []): ViablePrefill {
    const viable = this.#groups.filter(({ partners }) => partners.current(now).without(exclude).size > 0);
    if (viable.length === this.#groups.length) return { viable: undefined, hasPair: this.#hasPair };
    const ids = viable.flatMap(({ prefill }) => prefill.map(({ id }) => id));
    return { viable: new Set(ids), hasPair: this.#hasPair };
  }

  /** The decode workers that a worker of the prefill list may be paired with, in registration order. O(1). */
  partnersOf(prefill: WorkerState): AvailableList {
    return this.#partnersOf.get(prefill.id) as AvailableList;
  }

  /** Lets go of the lists, when a leg changed. */
  dissolve(): void {
    for (const { partners } of this.#groups) if (partners !== this.#decode) partners.dissolve();
  }
}

function groupsOf(list: AvailableList, read: FactReader): readonly FactGroup[] {
  const groups = new Map<string, FactGroup>();
  for (const worker of list.members()) {
    const facts = pairingFacts(read(worker));
    const signature = JSON.stringify(facts);
    const group = groups.get(signature) ?? { facts, workers: [] };
    groups.set(signature, group);
    group.workers.push(worker);
  }
  return [...groups.values()];
}

/** The workers of some groups as a list of their own, in the order of the list they come from. */
function listOf(groups: readonly FactGroup[], whole: AvailableList): AvailableList {
  const wanted = new Set(groups.flatMap(({ workers }) => workers));
  const list = new AvailableList();
  for (const worker of whole.members()) if (wanted.has(worker)) list.add(worker);
  return list;
}
