/**
 * The pairs between one list of prefill workers and one of decode workers (LM-30, LM-31): for each group of prefill
 * workers with equal pairing facts, the cached list of its decode partners. Made when first asked for after a leg
 * changed, never per request; where everybody pairs with everybody, the decode list itself is the partners' list.
 */
import { AvailableList } from './available-list.js';
import type { WorkerId } from './candidate.js';
import { type PairedLeg, type PairingGroup, PairingIndex, type PairingMode, type PairingWorker } from './pairing.js';
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

export class LegPairs {
  readonly #prefill: AvailableList;
  readonly #decode: AvailableList;
  readonly #index: PairingIndex;
  readonly #lists = new Map<PairingGroup, AvailableList>();

  constructor(prefill: AvailableList, decode: AvailableList, mode: PairingMode, read: FactReader) {
    this.#prefill = prefill;
    this.#decode = decode;
    this.#index = new PairingIndex(mode);
    const add = (leg: PairedLeg, list: AvailableList): void => {
      for (const worker of list.members()) this.#index.add(leg, worker.id, read(worker));
    };
    add('decode', decode);
    add('prefill', prefill);
    for (const worker of prefill.members()) this.#listOf(this.#groupOf(worker));
  }

  /** The prefill workers with a decode partner that is available and not excluded. O(groups) when all have one. */
  viablePrefill(now: number, exclude: readonly WorkerId[] = []): ViablePrefill {
    const hasPartner = (list: AvailableList): boolean => list.current(now).without(exclude).size > 0;
    let viableGroups = 0;
    for (const list of this.#lists.values()) if (hasPartner(list)) viableGroups += 1;
    const { hasPairs } = this.#index;
    if (viableGroups === this.#lists.size) return { viable: undefined, hasPair: hasPairs };
    const viable = new Set<WorkerId>();
    for (const worker of this.#prefill.members()) {
      if (hasPartner(this.partnersOf(worker))) viable.add(worker.id);
    }
    return { viable, hasPair: hasPairs };
  }

  /** The decode workers a prefill worker may be paired with. */
  partnersOf(prefill: WorkerState): AvailableList {
    return this.#listOf(this.#groupOf(prefill));
  }

  /** Lets go of the lists, when a leg changed. */
  dissolve(): void {
    for (const list of this.#lists.values()) if (list !== this.#decode) list.dissolve();
    this.#lists.clear();
  }

  #groupOf(prefill: WorkerState): PairingGroup {
    // Every member of the list was added to the index.
    return this.#index.groupOf('prefill', prefill.id) as PairingGroup;
  }

  #listOf(group: PairingGroup): AvailableList {
    const known = this.#lists.get(group);
    if (known !== undefined) return known;
    const partners = new Set(this.#index.partnersOf('prefill', group));
    let list = this.#decode;
    if (partners.size < this.#decode.size) {
      list = new AvailableList();
      for (const worker of this.#decode.members()) if (partners.has(worker.id)) list.add(worker);
    }
    this.#lists.set(group, list);
    return list;
  }
}
