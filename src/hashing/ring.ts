/**
 * The consistent-hash ring of one pool (WK-61..WK-63): 150 virtual nodes a worker at hash(`id#i`).
 *
 * A position is the 64-bit hash rounded to a double: rounding never swaps two hashes, and nodes that round alike are
 * ordered by worker id. So the ring is a function of the set of ids alone, whatever the order of registration (B60).
 *
 * Adding and removing a worker cost O(log n) for each of its nodes (see `RingNodes`), a lookup O(log n). A lookup walks
 * on past ineligible workers, asks about each once (a stamp a worker, nothing allocated) and stops when all were asked.
 * With e eligible among n workers it passes n / e nodes on average; with none among 10 000 about a hundred thousand,
 * under a millisecond, which is why policies ask only when somebody is eligible.
 */
import type { RingLookup } from '../policies/policy.js';
import type { Hash64 } from '../runtime/hash.js';
import type { WorkerId } from '../workers/candidate.js';
import { RingNodes } from './ring-nodes.js';

/** Virtual nodes of one worker (CF-110). */
const nodesPerWorker = 150;

/** A worker on the ring. */
interface Member {
  /** Its number; that of a worker that left is given again. */
  readonly slot: number;
  /** Where its nodes are. */
  readonly positions: Float64Array;
}

export class Ring implements RingLookup {
  readonly #hash: Hash64;
  readonly #members = new Map<WorkerId, Member>();
  /** By slot; '' where it is free. */
  readonly #ids: WorkerId[] = [];
  readonly #freeSlots: number[] = [];
  readonly #nodes = new RingNodes((slot) => this.#ids[slot] as WorkerId);
  /** By slot: the lookup that last asked about its worker. */
  #askedBy = new Float64Array(16);
  #lookups = 0;

  constructor(hash: Hash64) {
    this.#hash = hash;
  }

  /** Distinct workers on the ring. */
  get size(): number {
    return this.#members.size;
  }

  /**
   * Puts a worker on the ring; one that is on it already stays as it is.
   *
   * @param positions `nodePositions` of the worker, when the caller has them already; they are kept and must not change
   */
  add(id: WorkerId, positions: Float64Array = nodePositions(this.#hash, id)): void {
    if (this.#members.has(id)) return;
    const slot = this.#freeSlots.pop() ?? this.#ids.length;
    this.#ids[slot] = id;
    this.#members.set(id, { slot, positions });
    for (const position of positions) this.#nodes.add(position, slot);
  }

  /** Takes a worker off; unknown ids are ignored. */
  remove(id: WorkerId): void {
    const member = this.#members.get(id);
    if (member === undefined) return;
    for (const position of member.positions) this.#nodes.remove(position, member.slot);
    this.#members.delete(id);
    this.#ids[member.slot] = '';
    this.#freeSlots.push(member.slot);
  }

  lookup(hash: bigint, isEligible: (id: WorkerId) => boolean): WorkerId | undefined {
    const nodes = this.#nodes;
    const stamp = this.#nextStamp();
    let place = nodes.firstAt(Number(hash));
    for (let unasked = this.#members.size; unasked > 0; place = nodes.after(place)) {
      const slot = nodes.ownerAt(place);
      if (this.#askedBy[slot] === stamp) continue;
      this.#askedBy[slot] = stamp;
      unasked -= 1;
      const id = this.#ids[slot] as WorkerId;
      if (isEligible(id)) return id;
    }
    return undefined;
  }

  #nextStamp(): number {
    if (this.#askedBy.length < this.#ids.length) this.#askedBy = new Float64Array(this.#ids.length * 2);
    this.#lookups += 1;
    return this.#lookups;
  }
}

/** The positions of a worker's virtual nodes, ascending: the same on every ring (WK-61). */
export function nodePositions(hash: Hash64, id: WorkerId): Float64Array {
  const positions = new Float64Array(nodesPerWorker);
  for (let i = 0; i < nodesPerWorker; i++) positions[i] = Number(hash(`${id}#${i}`));
  return positions.sort();
}
