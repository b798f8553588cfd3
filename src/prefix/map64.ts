/**
 * A map from 64-bit keys, given as two int32 lanes, to integers ≥ 0, in typed arrays.
 *
 * Extendible hashing: a directory of pages, picked by the top bits of the mixed key; within a page linear probing by
 * the low bits, at most three quarters full, deletion by shifting back. A full page is replaced by one of twice its
 * size, and from 16 384 slots on by two pages, so an insert never moves more than one page, which takes some 0.2 ms:
 * growth has no pause (LB-5). Smaller pages would cost more: what the processor must know of each no longer fits its
 * caches. Pages shrink when they empty. O(1) per operation, 12 bytes a slot: 16 to 32 bytes an entry.
 */
type Page = Int32Array;

// Page header, then slots of (low, high, value + 1); 0 in the last place marks a free slot.
const countAt = 0;
const depthAt = 1;
const maskAt = 2;
const headerLength = 3;

const smallestPage = 8;
const largestPage = 16_384;
/** Slots a call of `sweep` goes through. */
const slotsPerSweep = 128;
// Keys that agree in many mixed bits must not double the directory again and again: with fewer entries than this for
// each place of it, the page grows instead.
const entriesPerPlace = 512;
const hashEnd = 4294967296;

export class Map64 {
  #directory: Page[] = [newPage(smallestPage, 0)];
  /**
   * Top bits of the mixed key that pick the page, 0 to 31. They are shifted down in two steps, because a shift by 32 is
   * none at all.
   */
  #depth = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The value, or -1. */
  get(low: number, high: number): number {
    const hash = mixLanes(low, high);
    const page = this.#directory[(hash >>> 1) >>> (31 - this.#depth)] as Page;
    const mask = page[maskAt] as number;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const at = headerLength + slot * 3;
      const stored = page[at + 2] as number;
      if (stored === 0) return -1;
      if (page[at] === low && page[at + 1] === high) return stored - 1;
    }
  }

  /** Sets the value and returns the one before, or -1. */
  set(low: number, high: number, value: number): number {
    const hash = mixLanes(low, high);
    const page = this.#directory[(hash >>> 1) >>> (31 - this.#depth)] as Page;
    const mask = page[maskAt] as number;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const at = headerLength + slot * 3;
      const stored = page[at + 2] as number;
      if (stored === 0) {
        if (((page[countAt] as number) + 1) * 4 > (mask + 1) * 3) {
          this.#grow(page, hash);
          return this.set(low, high, value);
        }
        page[at] = low;
        page[at + 1] = high;
        page[at + 2] = value + 1;
        page[countAt] = (page[countAt] as number) + 1;
        this.#size++;
        return -1;
      }
      if (page[at] === low && page[at + 1] === high) {
        page[at + 2] = value + 1;
        return stored - 1;
      }
    }
  }

  /** Removes the key and returns its value, or -1. */
  delete(low: number, high: number): number {
    const hash = mixLanes(low, high);
    const page = this.#directory[(hash >>> 1) >>> (31 - this.#depth)] as Page;
    const mask = page[maskAt] as number;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const at = headerLength + slot * 3;
      const stored = page[at + 2] as number;
      if (stored === 0) return -1;
      if (page[at] === low && page[at + 1] === high) {
        closeGap(page, slot);
        this.#size--;
        const count = (page[countAt] as number) - 1;
        page[countAt] = count;
        if (count * 8 < mask && mask + 1 > smallestPage) this.#replace(page, hash, copyOf(page, (mask + 1) / 2));
        return stored - 1;
      }
    }
  }

  /** All values, page by page. The map must not change meanwhile. */
  *values(): Generator<number, void, undefined> {
    let last: Page | undefined;
    for (const page of this.#directory) {
      // A page may have several places, one beside the other.
      if (page === last) continue;
      last = page;
      for (let at = headerLength + 2; at < page.length; at += 3) if (page[at] !== 0) yield (page[at] as number) - 1;
    }
  }

  /**
   * Visits some entries and drops those for which `keep` returns false. Start with cursor 0 and pass the result on until
   * it is `Map64.end`. Entries may be added and removed between the calls; those that stay all the while are visited at
   * least once, unless their page shrinks meanwhile: then a later walk finds them. `keep` must not change this map.
   */
  sweep(cursor: number, keep: (value: number) => boolean): number {
    const page = this.#directory[(cursor >>> 1) >>> (31 - this.#depth)] as Page;
    const mask = page[maskAt] as number;
    // A cursor is the first hash of a page, which no split changes, plus a slot. Entries belong to the slot where their
    // probe run starts, so that moving along the run does not hide them either.
    const range = hashEnd / 2 ** (page[depthAt] as number);
    const base = Math.floor(cursor / range) * range;
    const first = cursor - base;
    const end = Math.min(first + slotsPerSweep, mask + 1);
    for (let slot = first; ; ) {
      const at = headerLength + (slot & mask) * 3;
      const stored = page[at + 2] as number;
      if (stored === 0 && slot >= end) break;
      const home = mixLanes(page[at] as number, page[at + 1] as number) & mask;
      if (stored === 0 || home < first || home >= end || keep(stored - 1)) slot++;
      else {
        closeGap(page, slot & mask);
        page[countAt] = (page[countAt] as number) - 1;
        this.#size--;
      }
    }
    if (end <= mask) return base + end;
    let slots = mask + 1;
    while (slots > smallestPage && (page[countAt] as number) * 4 < slots) slots /= 2;
    if (slots <= mask) this.#replace(page, cursor, copyOf(page, slots));
    return base + range;
  }

  /** The cursor of a finished walk. */
  static readonly end: number = hashEnd;

  /** Bytes of the pages, for measuring. */
  get byteLength(): number {
    let bytes = 0;
    for (const page of new Set(this.#directory)) bytes += page.byteLength;
    return bytes;
  }

  #grow(page: Page, hash: number): void {
    const slots = (page[maskAt] as number) + 1;
    const mayDouble = this.#size >= this.#directory.length * entriesPerPlace;
    if (slots < largestPage || (page[depthAt] === this.#depth && !mayDouble)) {
      this.#replace(page, hash, copyOf(page, slots * 2));
    } else this.#split(page, hash);
  }

  #split(page: Page, hash: number): void {
    const depth = page[depthAt] as number;
    if (depth === this.#depth) {
      const doubled: Page[] = [];
      for (const each of this.#directory) doubled.push(each, each);
      this.#directory = doubled;
      this.#depth++;
    }
    // Entries whose next bit is 1 move to a new page, the others stay.
    const upper = newPage((page[maskAt] as number) + 1, depth + 1);
    const start = freeSlot(page, 0);
    for (let at = headerLength; at < page.length; at += 3) {
      if (page[at + 2] === 0) continue;
      if (((mixLanes(page[at] as number, page[at + 1] as number) >>> (31 - depth)) & 1) === 0) continue;
      place(upper, page, at);
      page[at + 2] = 0;
    }
    page[countAt] = (page[countAt] as number) - (upper[countAt] as number);
    repack(page, start);
    const first = this.#firstIndex(page, hash);
    page[depthAt] = depth + 1;
    const half = 1 << (this.#depth - depth - 1);
    this.#directory.fill(upper, first + half, first + 2 * half);
  }

  #replace(page: Page, hash: number, replacement: Page): void {
    const first = this.#firstIndex(page, hash);
    this.#directory.fill(replacement, first, first + (1 << (this.#depth - (page[depthAt] as number))));
  }

  /** The first of the directory places that lead to the page of `hash`. */
  #firstIndex(page: Page, hash: number): number {
    const shared = 1 << (this.#depth - (page[depthAt] as number));
    return ((hash >>> 1) >>> (31 - this.#depth)) & -shared;
  }
}

/** Engines may number their blocks: the top bits pick the page, the low ones the slot, so both must depend on all. */
function mixLanes(low: number, high: number): number {
  const hash = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
  return hash ^ (hash >>> 15);
}

function newPage(slots: number, depth: number): Page {
  const page = new Int32Array(headerLength + slots * 3);
  page[depthAt] = depth;
  page[maskAt] = slots - 1;
  return page;
}

function copyOf(page: Page, slots: number): Page {
  const copy = newPage(slots, page[depthAt] as number);
  for (let at = headerLength; at < page.length; at += 3) {
    if (page[at + 2] !== 0) place(copy, page, at);
  }
  return copy;
}

/** Adds the entry at `from` of another page, whose key is not in `page` yet. */
function place(page: Page, source: Page, from: number): void {
  moveTo(page, freeSlot(page, mixLanes(source[from] as number, source[from + 1] as number)), source, from);
  page[countAt] = (page[countAt] as number) + 1;
}

/** The first free slot of the probe run that starts at the hash. */
function freeSlot(page: Page, hash: number): number {
  const mask = page[maskAt] as number;
  let slot = hash & mask;
  while (page[headerLength + slot * 3 + 2] !== 0) slot = (slot + 1) & mask;
  return slot;
}

function moveTo(page: Page, slot: number, source: Page, from: number): void {
  const at = headerLength + slot * 3;
  page[at] = source[from] as number;
  page[at + 1] = source[from + 1] as number;
  page[at + 2] = source[from + 2] as number;
}

/**
 * Mends the probe runs of a page some of whose entries were taken out: entry by entry, each moves to the first free slot
 * of its run, which is never behind it. `start` was free before, so no run crosses it.
 */
function repack(page: Page, start: number): void {
  const mask = page[maskAt] as number;
  for (let i = 1; i <= mask; i++) {
    const from = headerLength + ((start + i) & mask) * 3;
    const value = page[from + 2] as number;
    if (value === 0) continue;
    page[from + 2] = 0;
    const slot = freeSlot(page, mixLanes(page[from] as number, page[from + 1] as number));
    moveTo(page, slot, page, from);
    page[headerLength + slot * 3 + 2] = value;
  }
}

/** Frees a slot and moves later entries of its probe run back, so that no search stops at the gap. */
function closeGap(page: Page, slot: number): void {
  const mask = page[maskAt] as number;
  let gap = slot;
  for (let next = (slot + 1) & mask; ; next = (next + 1) & mask) {
    const at = headerLength + next * 3;
    if (page[at + 2] === 0) break;
    const home = mixLanes(page[at] as number, page[at + 1] as number) & mask;
    if (((next - home) & mask) >= ((next - gap) & mask)) {
      moveTo(page, gap, page, at);
      gap = next;
    }
  }
  page[headerLength + gap * 3 + 2] = 0;
}
