/**
 * The consistent-hash ring of one pool (WK-61..WK-63): 150 virtual nodes a worker at hash(`id#i`), in sorted typed arrays.
 *
 * A position is the 64-bit hash rounded to a double: rounding never swaps two hashes, and nodes that round alike are
 * ordered by worker id. So the ring is a function of the set of ids alone, whatever the order of registration (B60).
 *
 * Adding hashes and sorts the 150 nodes of one worker and leaves them as a run; runs of equal size are merged as they
 * meet, so registering n workers costs O(n log n) spread over the calls. Removing forgets the id at once and leaves its
 * nodes to be passed over until they are an eighth of the ring. The next lookup merges and compacts what is due in one
 * pass (well under a millisecond for a thousand workers) and then costs O(log n).
 *
 * A lookup walks on past ineligible workers, asks about each once (a stamp a worker, nothing allocated) and stops when
 * all were asked. With e eligible among n workers it passes n / e nodes on average; with none among 10 000 about a
 * hundred thousand, under a millisecond, which is why policies ask only when somebody is eligible.
 */
import type { RingLookup } from '../policies/policy.js';
import type { Hash64 } from '../runtime/hash.js';
import type { WorkerId } from '../workers/candidate.js';

/** Virtual nodes of one worker (CF-110). */
const nodesPerWorker = 150;

/** A run that is so many times larger than another takes its nodes in; else both are interleaved. */
const muchLarger = 8;

/** Removed workers are cleared from the arrays when more than one stands there for so many live ones. */
const livePerDead = 8;

/** Virtual nodes ordered by (position, id of the owner). */
interface Run {
  positions: Float64Array;
  /** The owner of each node: a slot of `#ids`. */
  owners: Uint32Array;
  size: number;
}

export class Ring implements RingLookup {
  readonly #hash: Hash64;
  readonly #slots = new Map<WorkerId, number>();
  /** By slot; undefined = removed, its nodes go with the next compaction, and only then may the slot be used again. */
  #ids: (WorkerId | undefined)[] = [];
  /** The lookup that last asked about a slot. */
  #askedBy = new Float64Array(16);
  #lookups = 0;
  #freeSlots: number[] = [];
  #deadSlots: number[] = [];
  /** Larger runs first; after `#settle` at most one. */
  #runs: Run[] = [];

  constructor(hash: Hash64) {
    this.#hash = hash;
  }

  /** Distinct workers on the ring. */
  get size(): number {
    return this.#slots.size;
  }

  /**
   * Puts a worker on the ring; one that is on it already stays as it is.
   *
   * @param positions `nodePositions` of the worker, when the caller has them already: the ring takes a copy
   */
  add(id: WorkerId, positions: Float64Array = nodePositions(this.#hash, id)): void {
    if (this.#slots.has(id)) return;
    const slot = this.#freeSlots.pop() ?? this.#ids.length;
    this.#ids[slot] = id;
    this.#slots.set(id, slot);
    this.#pushRun({
      positions: positions.slice(),
      owners: new Uint32Array(nodesPerWorker).fill(slot),
      size: nodesPerWorker,
    });
  }

  /** Takes a worker off; unknown ids are ignored. */
  remove(id: WorkerId): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    this.#slots.delete(id);
    this.#ids[slot] = undefined;
    this.#deadSlots.push(slot);
  }

  lookup(hash: bigint, isEligible: (id: WorkerId) => boolean): WorkerId | undefined {
    const ring = this.#settle();
    if (ring === undefined) return undefined;
    const { owners, size } = ring;
    let node = firstNodeAt(ring, Number(hash));
    const stamp = this.#nextStamp();
    for (let unasked = this.#slots.size; unasked > 0; ) {
      const slot = owners[node] as number;
      if (this.#askedBy[slot] !== stamp) {
        this.#askedBy[slot] = stamp;
        const id = this.#ids[slot];
        if (id !== undefined) {
          unasked -= 1;
          if (isEligible(id)) return id;
        }
      }
      node = node + 1 < size ? node + 1 : 0;
    }
    return undefined;
  }

  #pushRun(run: Run): void {
    let last = run;
    for (let top = this.#runs.at(-1); top !== undefined && top.size <= last.size; top = this.#runs.at(-1)) {
      this.#runs.pop();
      last = this.#merged(top, last);
    }
    this.#runs.push(last);
  }

  /** Brings the ring up to date; undefined when it is empty. */
  #settle(): Run | undefined {
    while (this.#runs.length > 1) {
      const run = this.#runs.pop() as Run;
      this.#runs.push(this.#merged(this.#runs.pop() as Run, run));
    }
    if (this.#deadSlots.length * livePerDead > this.#slots.size) this.#compact();
    return this.#runs[0];
  }

  #merged(run: Run, other: Run): Run {
    if (run.size < muchLarger * other.size) return this.#interleaved(run, other);
    this.#insert(other, run);
    return run;
  }

  #interleaved(a: Run, b: Run): Run {
    const size = a.size + b.size;
    const positions = new Float64Array(size);
    const owners = new Uint32Array(size);
    let i = 0;
    let j = 0;
    while (i < a.size && j < b.size) {
      const node = i + j;
      if (this.#isAfter(a, i, b, j)) {
        positions[node] = b.positions[j] as number;
        owners[node] = b.owners[j++] as number;
      } else {
        positions[node] = a.positions[i] as number;
        owners[node] = a.owners[i++] as number;
      }
    }
    const [rest, at] = i < a.size ? [a, i] : [b, j];
    positions.set(rest.positions.subarray(at, rest.size), i + j);
    owners.set(rest.owners.subarray(at, rest.size), i + j);
    return { positions, owners, size };
  }

  /**
   * Inserts the nodes of `run` into `target` from the back, in place; long stretches between two new nodes move as
   * blocks.
   */
  #insert(run: Run, target: Run): void {
    reserve(target, target.size + run.size);
    const { positions, owners } = target;
    let rest = target.size;
    for (let node = run.size - 1; node >= 0; node--) {
      const at = this.#placeFor(run, node, target, rest);
      move(target, at, rest, at + node + 1);
      positions[at + node] = run.positions[node] as number;
      owners[at + node] = run.owners[node] as number;
      rest = at;
    }
    target.size += run.size;
  }

  /**
   * Index of the first of the `size` leading nodes of `target` that comes after `node`. Usually it is near their end.
   */
  #placeFor(run: Run, node: number, target: Run, size: number): number {
    let high = size;
    for (let looked = 0; looked < 8; looked++) {
      if (high === 0 || !this.#isAfter(target, high - 1, run, node)) return high;
      high -= 1;
    }
    let low = 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#isAfter(target, middle, run, node)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Nodes of removed workers compare as the last of their position, so that they never hold back a live one. */
  #isAfter(a: Run, i: number, b: Run, j: number): boolean {
    const difference = (a.positions[i] as number) - (b.positions[j] as number);
    if (difference !== 0) return difference > 0;
    const idA = this.#ids[a.owners[i] as number];
    const idB = this.#ids[b.owners[j] as number];
    return idA === undefined || (idB !== undefined && idA > idB);
  }

  #compact(): void {
    const ring = this.#runs[0] as Run;
    const { owners, size } = ring;
    let kept = 0;
    let start = 0;
    for (let node = 0; node <= size; node++) {
      if (node < size && this.#ids[owners[node] as number] !== undefined) continue;
      move(ring, start, node, kept);
      kept += node - start;
      start = node + 1;
    }
    ring.size = kept;
    for (const slot of this.#deadSlots) this.#freeSlots.push(slot);
    this.#deadSlots = [];
    if (kept === 0) this.#runs = [];
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

/** Index of the first node at `position` or after it, wrapping round. */
function firstNodeAt(ring: Run, position: number): number {
  const { positions, size } = ring;
  let low = 0;
  let high = size;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((positions[middle] as number) < position) low = middle + 1;
    else high = middle;
  }
  return low < size ? low : 0;
}

/** Moves the nodes from `start` up to `end` so that they begin at `to`. */
function move(run: Run, start: number, end: number, to: number): void {
  const { positions, owners } = run;
  const length = end - start;
  if (length > 16) {
    positions.copyWithin(to, start, end);
    owners.copyWithin(to, start, end);
    return;
  }
  // A call costs more than moving a few nodes; the order of moving keeps them from overwriting each other.
  for (let i = 0; i < length; i++) {
    const k = to < start ? i : length - 1 - i;
    positions[to + k] = positions[start + k] as number;
    owners[to + k] = owners[start + k] as number;
  }
}

function reserve(run: Run, size: number): void {
  if (run.positions.length >= size) return;
  // An eighth to spare: single additions to a large ring then seldom copy it to a new place.
  const capacity = size + (size >>> 3);
  const positions = new Float64Array(capacity);
  const owners = new Uint32Array(capacity);
  positions.set(run.positions.subarray(0, run.size));
  owners.set(run.owners.subarray(0, run.size));
  run.positions = positions;
  run.owners = owners;
}
