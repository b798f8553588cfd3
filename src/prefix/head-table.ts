/**
 * The storage of the hash index: heads under their 64-bit keys, each with three places for holders, in the order of
 * their last record. Fixed-size records in chunks of typed arrays that are made as they are needed, a free list, and a
 * doubly linked list from the freshest to the stalest head. Every operation is O(1); nothing is ever moved.
 */
import { Map64 } from './map64.js';

/** At most this many holders are remembered for a head (CA-73). */
export const holdersPerHead = 3;

/** No head. */
export const noHead: number = -1;

const headsPerChunk = 1024;
const chunkShift = 10;
const withinChunk: number = headsPerChunk - 1;

// A head's integers: its key, the owner in each place (0 = free), its neighbours in the list, plus 1 (0 = none). A free
// head's `fresherAt` leads to the next free one.
const lowAt = 0;
const highAt = 1;
const ownersAt = 2;
const fresherAt = 5;
const stalerAt = 6;
const integersPerHead = 7;
// And its doubles: last touch in milliseconds and use, for each place.
const usesAt = holdersPerHead;
const doublesPerHead = 2 * holdersPerHead;

export class HeadTable {
  readonly #byKey = new Map64();
  readonly #integers: Int32Array[] = [];
  readonly #doubles: Float64Array[] = [];
  #made = 0;
  #freed = noHead;
  #freshest = noHead;
  #stalest = noHead;

  /** Heads that can be found. */
  get size(): number {
    return this.#byKey.size;
  }

  /** The head of the key, or `noHead`. */
  find(low: number, high: number): number {
    return this.#byKey.get(low, high);
  }

  /** Makes a head without holders, the freshest one. The key must not be present. */
  add(low: number, high: number): number {
    const head = this.#take();
    const integers = this.#integersOf(head);
    const at = (head & withinChunk) * integersPerHead;
    integers[at + lowAt] = low;
    integers[at + highAt] = high;
    this.#byKey.set(low, high, head);
    this.#link(head);
    return head;
  }

  /** Forgets a head and its holders; its id may be given again. */
  delete(head: number): void {
    this.#unlink(head);
    this.#byKey.delete(this.low(head), this.high(head));
    for (let place = 0; place < holdersPerHead; place++) this.#write(head, ownersAt + place, 0);
    this.#write(head, fresherAt, this.#freed + 1);
    this.#freed = head;
  }

  /** Moves a head to the fresh end of the list. */
  refresh(head: number): void {
    if (head === this.#freshest) return;
    this.#unlink(head);
    this.#link(head);
  }

  /** The head that was recorded longest ago, or `noHead`. */
  get stalest(): number {
    return this.#stalest;
  }

  /** Heads are below this; free ones among them have no holders. */
  get headEnd(): number {
    return this.#made;
  }

  low(head: number): number {
    return this.#read(head, lowAt);
  }

  high(head: number): number {
    return this.#read(head, highAt);
  }

  /** Who holds a place: a positive integer, 0 when it is free. */
  owner(head: number, place: number): number {
    return this.#read(head, ownersAt + place);
  }

  /** When the holder was last recorded, milliseconds. */
  touchMs(head: number, place: number): number {
    return this.#doublesOf(head)[(head & withinChunk) * doublesPerHead + place] as number;
  }

  /** The use counter at its last record. */
  use(head: number, place: number): number {
    return this.#doublesOf(head)[(head & withinChunk) * doublesPerHead + usesAt + place] as number;
  }

  setHolder(head: number, place: number, owner: number, touchMs: number, use: number): void {
    this.#write(head, ownersAt + place, owner);
    const doubles = this.#doublesOf(head);
    const at = (head & withinChunk) * doublesPerHead + place;
    doubles[at] = touchMs;
    doubles[at + usesAt] = use;
  }

  #take(): number {
    const freed = this.#freed;
    if (freed !== noHead) {
      this.#freed = this.#read(freed, fresherAt) - 1;
      return freed;
    }
    if (this.#made >>> chunkShift === this.#integers.length) {
      this.#integers.push(new Int32Array(headsPerChunk * integersPerHead));
      this.#doubles.push(new Float64Array(headsPerChunk * doublesPerHead));
    }
    return this.#made++;
  }

  #link(head: number): void {
    this.#write(head, fresherAt, 0);
    this.#write(head, stalerAt, this.#freshest + 1);
    if (this.#freshest === noHead) this.#stalest = head;
    else this.#write(this.#freshest, fresherAt, head + 1);
    this.#freshest = head;
  }

  #unlink(head: number): void {
    const fresher = this.#read(head, fresherAt) - 1;
    const staler = this.#read(head, stalerAt) - 1;
    if (fresher === noHead) this.#freshest = staler;
    else this.#write(fresher, stalerAt, staler + 1);
    if (staler === noHead) this.#stalest = fresher;
    else this.#write(staler, fresherAt, fresher + 1);
  }

  #integersOf(head: number): Int32Array {
    return this.#integers[head >>> chunkShift] as Int32Array;
  }

  #doublesOf(head: number): Float64Array {
    return this.#doubles[head >>> chunkShift] as Float64Array;
  }

  #read(head: number, field: number): number {
    return this.#integersOf(head)[(head & withinChunk) * integersPerHead + field] as number;
  }

  #write(head: number, field: number, value: number): void {
    this.#integersOf(head)[(head & withinChunk) * integersPerHead + field] = value;
  }
}
