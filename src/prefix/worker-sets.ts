/**
 * Sets of workers, as small integers that equal sets share. Blocks stored together are held by the same workers, so a
 * block needs one integer to say who holds it, whatever the size of the fleet (B23), and two neighbours are compared by
 * one comparison.
 *
 * A set is an immutable list of (word index, 32 bits) pairs with a count of references; the last reference frees it.
 * `join` and `leave` remember their last step, so moving the blocks of one event from a set to the next costs one lookup
 * for the first of them. Else O(words of the set). Memory is never more than a few words for each set in use.
 */
import { avalanche } from '../runtime/mix.js';

/** The set of nobody. It is not counted. */
export const nobody: number = 0;

interface WorkerSet {
  /** (word index, bits) pairs in ascending order of index; no word is 0. */
  readonly words: Int32Array;
  /** Combined from its members by exclusive or, so that a neighbour's hash is one operation away. */
  readonly hash: number;
  references: number;
  /** The next set of the same hash, `nobody` = none. */
  next: number;
}

/** One remembered step: `from` with or without `slot` is `to`. */
class LastStep {
  from = -1;
  slot = -1;
  to = -1;

  remember(from: number, slot: number, to: number): void {
    this.from = from;
    this.slot = slot;
    this.to = to;
  }

  forget(set: number): void {
    if (this.from === set || this.to === set) this.from = -1;
  }
}

export class WorkerSets {
  readonly #sets: WorkerSet[] = [{ words: new Int32Array(0), hash: 0, references: 1, next: nobody }];
  readonly #byHash = new Map<number, number>();
  readonly #freed: number[] = [];
  readonly #joined = new LastStep();
  readonly #left = new LastStep();

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
    const step = this.#joined;
    if (step.from === set && step.slot === slot) return this.#move(set, step.to);
    if (this.has(set, slot)) return set;
    const joined = this.#find(withWorker(this.words(set), slot), this.#hashWithout(set, slot));
    step.remember(set, slot, joined);
    return this.#move(set, joined);
  }

  /** The set without the worker: takes over one reference to `set` and gives one to the result. */
  leave(set: number, slot: number): number {
    const step = this.#left;
    if (step.from === set && step.slot === slot) return this.#move(set, step.to);
    if (!this.has(set, slot)) return set;
    const left = this.#find(withoutWorker(this.words(set), slot), this.#hashWithout(set, slot));
    step.remember(set, slot, left);
    return this.#move(set, left);
  }

  /** Gives a reference back, as when the block of it is gone. */
  release(set: number): void {
    if (set === nobody) return;
    const record = this.#sets[set] as WorkerSet;
    if (--record.references === 0) this.#free(set, record);
  }

  #move(from: number, to: number): number {
    if (to !== nobody) (this.#sets[to] as WorkerSet).references++;
    this.release(from);
    return to;
  }

  /** Exclusive or adds and takes away alike. */
  #hashWithout(set: number, slot: number): number {
    return (this.#sets[set] as WorkerSet).hash ^ avalanche(Math.imul(slot + 1, 0x9e3779b1));
  }

  #find(words: Int32Array, hash: number): number {
    if (words.length === 0) return nobody;
    const first = this.#byHash.get(hash) ?? nobody;
    for (let set = first; set !== nobody; set = (this.#sets[set] as WorkerSet).next) {
      if (isEqual(this.words(set), words)) return set;
    }
    const set = this.#freed.pop() ?? this.#sets.length;
    this.#sets[set] = { words, hash, references: 0, next: first };
    this.#byHash.set(hash, set);
    return set;
  }

  #free(set: number, record: WorkerSet): void {
    this.#joined.forget(set);
    this.#left.forget(set);
    const first = this.#byHash.get(record.hash) as number;
    if (first === set) {
      if (record.next === nobody) this.#byHash.delete(record.hash);
      else this.#byHash.set(record.hash, record.next);
    } else {
      let before = this.#sets[first] as WorkerSet;
      while (before.next !== set) before = this.#sets[before.next] as WorkerSet;
      before.next = record.next;
    }
    // The words may be large and the number unused for long.
    this.#sets[set] = this.#sets[nobody] as WorkerSet;
    this.#freed.push(set);
  }
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
