/**
 * Sets of workers, as small integers that equal sets share. Blocks stored together are held by the same workers, so a
 * block needs one integer to say who holds it, whatever the size of the fleet (B23), and two neighbours are compared by
 * one comparison.
 *
 * A set is an immutable list of (word index, 32 bits) pairs with a count of references; the last reference frees it.
 * Each remembers the last steps from it to another, so moving many blocks from one set to the next costs one lookup for
 * the first of them. Else O(words of the set). Memory is never more than a few words for each set in use.
 */
import { avalanche } from '../runtime/hash-text.js';

/** The set of nobody. */
export const nobody: number = 0;

interface WorkerSet {
  readonly id: number;
  /** (word index, bits) pairs in ascending order of index; no word is 0. */
  readonly words: Int32Array;
  /** Combined from its members by exclusive or, so that a neighbour's hash is one operation away. */
  readonly hash: number;
  /** 0 = freed, or not handed out yet. */
  references: number;
  /** The next set of the same hash. */
  next: WorkerSet | undefined;
  /** The set this one becomes by the last worker that joined it, or left it. */
  joining: number;
  joined: WorkerSet | undefined;
  leaving: number;
  left: WorkerSet | undefined;
}

export class WorkerSets {
  readonly #sets: WorkerSet[] = [];
  readonly #empty: WorkerSet = this.#make(nobody, new Int32Array(0), 0);
  readonly #byHash = new Map<number, WorkerSet>();
  readonly #freed: number[] = [];

  /** Sets in use. */
  get size(): number {
    return this.#sets.length - this.#freed.length - 1;
  }

  /** The (word index, bits) pairs of a set. Not to be changed. */
  words(set: number): Int32Array {
    return (this.#sets[set] as WorkerSet).words;
  }

  has(set: number, slot: number): boolean {
    const words = this.words(set);
    const at = placeOf(words, slot >>> 5);
    return words[at] === slot >>> 5 && (((words[at + 1] as number) >>> (slot & 31)) & 1) === 1;
  }

  /** The set with the worker in it: takes over one reference to `set` and gives one to the result. */
  join(set: number, slot: number): number {
    const from = this.#sets[set] as WorkerSet;
    if (from.joining !== slot || from.joined === undefined || from.joined.references === 0) {
      if (this.has(set, slot)) return set;
      from.joined = this.#find(withWorker(from.words, slot), from.hash ^ hashOf(slot));
      from.joining = slot;
    }
    return this.#move(from, from.joined);
  }

  /** The set without the worker: takes over one reference to `set` and gives one to the result. */
  leave(set: number, slot: number): number {
    const from = this.#sets[set] as WorkerSet;
    if (from.leaving !== slot || from.left === undefined || from.left.references === 0) {
      if (!this.has(set, slot)) return set;
      from.left = this.#find(withoutWorker(from.words, slot), from.hash ^ hashOf(slot));
      from.leaving = slot;
    }
    return this.#move(from, from.left);
  }

  #move(from: WorkerSet, to: WorkerSet): number {
    // The empty set is not counted.
    if (to !== this.#empty) to.references++;
    if (from !== this.#empty && --from.references === 0) this.#free(from);
    return to.id;
  }

  #find(words: Int32Array, hash: number): WorkerSet {
    if (words.length === 0) return this.#empty;
    const first = this.#byHash.get(hash);
    for (let set = first; set !== undefined; set = set.next) if (isEqual(set.words, words)) return set;
    const set = this.#make(this.#freed.pop() ?? this.#sets.length, words, hash);
    set.next = first;
    this.#byHash.set(hash, set);
    return set;
  }

  #make(id: number, words: Int32Array, hash: number): WorkerSet {
    const references = id === nobody ? 1 : 0;
    const steps = { joining: -1, joined: undefined, leaving: -1, left: undefined };
    const set: WorkerSet = { id, words, hash, references, next: undefined, ...steps };
    this.#sets[id] = set;
    return set;
  }

  #free(set: WorkerSet): void {
    const first = this.#byHash.get(set.hash) as WorkerSet;
    if (first !== set) {
      let before = first;
      while (before.next !== set) before = before.next as WorkerSet;
      before.next = set.next;
    } else if (set.next === undefined) this.#byHash.delete(set.hash);
    else this.#byHash.set(set.hash, set.next);
    // Others may remember a step to this one: it must not keep yet others in memory.
    set.joined = undefined;
    set.left = undefined;
    this.#sets[set.id] = this.#empty;
    this.#freed.push(set.id);
  }
}

/** Exclusive or with it adds a worker to a set's hash, and takes it away. */
function hashOf(slot: number): number {
  return avalanche(Math.imul(slot + 1, 0x9e3779b1));
}

/** The lowest worker of a word; `bits & (bits - 1)` are the others. */
export function lowestSlot(index: number, bits: number): number {
  return index * 32 + 31 - Math.clz32(bits & -bits);
}

/** Position of the pair with the word index, or of the first pair after it. */
function placeOf(words: Int32Array, index: number): number {
  let first = 0;
  let end = words.length >>> 1;
  while (first < end) {
    const middle = (first + end) >>> 1;
    if ((words[middle * 2] as number) < index) first = middle + 1;
    else end = middle;
  }
  return first * 2;
}

function withWorker(words: Int32Array, slot: number): Int32Array {
  const at = placeOf(words, slot >>> 5);
  if (words[at] === slot >>> 5) {
    const copy = words.slice();
    copy[at + 1] = (copy[at + 1] as number) | (1 << (slot & 31));
    return copy;
  }
  const longer = new Int32Array(words.length + 2);
  longer.set(words.subarray(0, at));
  longer[at] = slot >>> 5;
  longer[at + 1] = 1 << (slot & 31);
  longer.set(words.subarray(at), at + 2);
  return longer;
}

/** The worker must be in the set. */
function withoutWorker(words: Int32Array, slot: number): Int32Array {
  const at = placeOf(words, slot >>> 5);
  const bits = (words[at + 1] as number) & ~(1 << (slot & 31));
  if (bits !== 0) {
    const copy = words.slice();
    copy[at + 1] = bits;
    return copy;
  }
  const shorter = new Int32Array(words.length - 2);
  shorter.set(words.subarray(0, at));
  shorter.set(words.subarray(at + 2), at);
  return shorter;
}

function isEqual(a: Int32Array, b: Int32Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
