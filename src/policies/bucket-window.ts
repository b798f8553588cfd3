/**
 * The requests that `bucket` routed during the last five seconds: size, time and owner of each, oldest first, in a ring
 * buffer that grows as needed up to 16 384 entries. Under more than 3 276 requests a second the window is the last
 * 16 384 requests, shorter than five seconds: that bounds the memory and the work of a check.
 *
 * Invariant: a share's `routed` is the sum of the sizes of its entries here, so it never drifts (B78, BU-8).
 */

/** Age above which an entry is dropped, milliseconds (BU-7, CF-110). */
const windowMs = 5000;

const maxEntries = 16_384;

/** Somebody's share of the window. */
export interface RoutedShare {
  /** Sum of the sizes routed to it, in characters or tokens. Only the window writes it. */
  routed: number;
}

/** The traffic of the last five seconds. */
export class BucketWindow {
  #sizes = new Float64Array(16);
  #times = new Float64Array(16);
  #owners: (RoutedShare | undefined)[] = new Array(16);
  #start = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Accounts a request (BU-7). O(1) amortised. */
  push(size: number, time: number, owner: RoutedShare | undefined): void {
    if (this.#length === maxEntries) this.#dropOldest();
    if (this.#length === this.#sizes.length) this.#grow();
    const slot = (this.#start + this.#length) & (this.#sizes.length - 1);
    this.#sizes[slot] = size;
    this.#times[slot] = time;
    this.#owners[slot] = owner;
    this.#length += 1;
    if (owner !== undefined) owner.routed += size;
  }

  /** Drops what is older than five seconds at `now`. */
  expire(now: number): void {
    while (this.#length > 0 && now - (this.#times[this.#start] as number) > windowMs) this.#dropOldest();
  }

  /** Keeps the sizes, but nobody is charged for them any more (BU-5, LB-30). */
  forgetOwners(): void {
    for (const owner of this.#owners) if (owner !== undefined) owner.routed = 0;
    this.#owners.fill(undefined);
  }

  /** The sizes, in no particular order. */
  sizes(): Float64Array {
    const sizes = new Float64Array(this.#length);
    for (let i = 0; i < this.#length; i++) {
      sizes[i] = this.#sizes[(this.#start + i) & (this.#sizes.length - 1)] as number;
    }
    return sizes;
  }

  #dropOldest(): void {
    const owner = this.#owners[this.#start];
    if (owner !== undefined) owner.routed -= this.#sizes[this.#start] as number;
    this.#owners[this.#start] = undefined;
    this.#start = (this.#start + 1) & (this.#sizes.length - 1);
    this.#length -= 1;
  }

  /** Doubles the buffers; called only when they are full, so all slots are in use. */
  #grow(): void {
    const capacity = this.#sizes.length;
    const sizes = new Float64Array(2 * capacity);
    const times = new Float64Array(2 * capacity);
    const owners: (RoutedShare | undefined)[] = new Array(2 * capacity);
    for (let i = 0; i < capacity; i++) {
      const slot = (this.#start + i) & (capacity - 1);
      sizes[i] = this.#sizes[slot] as number;
      times[i] = this.#times[slot] as number;
      owners[i] = this.#owners[slot];
    }
    this.#sizes = sizes;
    this.#times = times;
    this.#owners = owners;
    this.#start = 0;
  }
}
