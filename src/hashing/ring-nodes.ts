/**
 * The virtual nodes of a ring in order: by position, and at the same position by the id of the owner. They stand in pages
 * of limited size, so that putting one in or taking one out moves a few hundred neighbours, not the ring: O(log n) to
 * find the page, and no call is ever long.
 */
import type { WorkerId } from '../workers/candidate.js';

/** Nodes of a page at most. Moving half as many costs about what finding the place does. */
const pageNodes = 512;

class Page {
  readonly positions: Float64Array = new Float64Array(pageNodes);
  /** The owner of each node, as its number. */
  readonly owners: Uint32Array = new Uint32Array(pageNodes);
  size = 0;

  /** Moves the nodes from `start` on so that they begin at `to`. */
  move(start: number, to: number): void {
    this.positions.copyWithin(to, start, this.size);
    this.owners.copyWithin(to, start, this.size);
    this.size += to - start;
  }

  /** Appends the nodes of another page from `start` on. */
  append(page: Page, start: number): void {
    this.positions.set(page.positions.subarray(start, page.size), this.size);
    this.owners.set(page.owners.subarray(start, page.size), this.size);
    this.size += page.size - start;
  }
}

/** Owners are small numbers; a place is where a node stands at the moment. */
export class RingNodes {
  /** The id of an owner, which orders nodes of one position. */
  readonly #idOf: (owner: number) => WorkerId;
  /** None is empty. */
  readonly #pages: Page[] = [];
  /** The position of the first node of each page. */
  readonly #firsts: number[] = [];

  /** @param idOf the worker id of an owner that has nodes here */
  constructor(idOf: (owner: number) => WorkerId) {
    this.#idOf = idOf;
  }

  /** Puts a node in. */
  add(position: number, owner: number): void {
    const id = this.#idOf(owner);
    let at = this.#pageFor(position, id);
    let page = this.#pages[at] ?? this.#addPage(0);
    if (page.size === pageNodes) {
      const upper = this.#split(at);
      if (!this.#isAfter(upper, 0, position, id)) {
        page = upper;
        at += 1;
      }
    }
    const node = this.#firstAfter(page, position, id);
    page.move(node, node + 1);
    page.positions[node] = position;
    page.owners[node] = owner;
    if (node === 0) this.#firsts[at] = position;
  }

  /** Takes out a node that was added. */
  remove(position: number, owner: number): void {
    const id = this.#idOf(owner);
    const at = this.#pageFor(position, id);
    const page = this.#pages[at] as Page;
    const node = this.#firstAfter(page, position, id) - 1;
    page.move(node + 1, node);
    if (node === 0) this.#firsts[at] = page.positions[0] as number;
    const next = this.#pages[at + 1];
    // A page goes with its last node, or when it fits into half a page together with the next.
    if (page.size === 0) {
      this.#dropPage(at);
    } else if (next !== undefined && page.size + next.size <= pageNodes >> 1) {
      page.append(next, 0);
      this.#dropPage(at + 1);
    }
  }

  /** Where the first node at `position` or after it stands, wrapping round; -1 when there is no node. */
  firstAt(position: number): number {
    if (this.#pages.length === 0) return -1;
    const at = Math.max(0, countBelow(this.#firsts, this.#pages.length, position) - 1);
    const page = this.#pages[at] as Page;
    return this.#placeOf(at, countBelow(page.positions, page.size, position));
  }

  /** Where the next node stands, wrapping round. Places hold until a node is added or removed. */
  after(place: number): number {
    return this.#placeOf(Math.floor(place / pageNodes), (place % pageNodes) + 1);
  }

  /** Whose node stands at a place. */
  ownerAt(place: number): number {
    return (this.#pages[Math.floor(place / pageNodes)] as Page).owners[place % pageNodes] as number;
  }

  /** The place of a node of a page, or of the first node behind the page. */
  #placeOf(at: number, node: number): number {
    if (node < (this.#pages[at] as Page).size) return at * pageNodes + node;
    return at + 1 < this.#pages.length ? (at + 1) * pageNodes : 0;
  }

  /** The last page whose first node is not after a place in the order; 0 when there is none. */
  #pageFor(position: number, id: WorkerId): number {
    let at = countBelow(this.#firsts, this.#pages.length, position);
    // Pages that begin at the very position are told apart by the ids.
    while (at < this.#pages.length && !this.#isAfter(this.#pages[at] as Page, 0, position, id)) at += 1;
    return Math.max(0, at - 1);
  }

  /** Index of the first node of a page that is after a place in the order. */
  #firstAfter(page: Page, position: number, id: WorkerId): number {
    let node = countBelow(page.positions, page.size, position);
    while (node < page.size && !this.#isAfter(page, node, position, id)) node += 1;
    return node;
  }

  #isAfter(page: Page, node: number, position: number, id: WorkerId): boolean {
    const difference = (page.positions[node] as number) - position;
    return difference === 0 ? this.#idOf(page.owners[node] as number) > id : difference > 0;
  }

  #addPage(at: number): Page {
    const page = new Page();
    this.#pages.splice(at, 0, page);
    this.#firsts.splice(at, 0, 0);
    return page;
  }

  #dropPage(at: number): void {
    this.#pages.splice(at, 1);
    this.#firsts.splice(at, 1);
  }

  /** Moves the upper half of a page to a new one behind it. */
  #split(at: number): Page {
    const page = this.#pages[at] as Page;
    const upper = this.#addPage(at + 1);
    const half = page.size >> 1;
    upper.append(page, half);
    page.size = half;
    this.#firsts[at + 1] = upper.positions[0] as number;
    return upper;
  }
}

/** How many of the first `size` numbers, ascending, are below a value. */
function countBelow(numbers: ArrayLike<number>, size: number, value: number): number {
  let low = 0;
  let high = size;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
