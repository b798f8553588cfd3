/**
 * Who holds which node: one holding for each (node, tenant) pair, kept as eight 32-bit words in pages of typed arrays,
 * so that the garbage collector never walks them. A holding is a number; 0 means none. Each is in up to three lists:
 *
 * - its node's holders, latest use first, ties by tenant order (CA-32);
 * - the holdings of its tenant, so that a removed worker's memory is found without a search (CA-44);
 * - the ends, oldest use first: a holding is an end while the tenant's last insert through the node also ended there.
 *   Everything a tenant holds lies on the path of one of its ends with the same or a later use, so the oldest end is
 *   always what LRU eviction takes next, and the ends with their uses describe a tree completely (CA-42, LB-34).
 *
 * What most inserts read of a holding, that of a node's newest holder, is kept in the node (`newest…`, `endsHere`).
 * All operations are O(1), apart from `linkEndByUse` and `addHolderByUse`, which serve merged placements only.
 */
import type { RadixNode } from './radix-node.js';

const pageBits = 10;
const pageSize = 1 << pageBits;
const pageMask = pageSize - 1;

// The words of a holding; the last of eight is unused.
const holdingWords = 8;
const tenantWord = 0;
const olderEndWord = 1;
const newerEndWord = 2;
const olderHolderWord = 3;
const newerHolderWord = 4;
const previousOfTenantWord = 5;
const nextOfTenantWord = 6;

/** In `newerEndWord` of a holding that is not an end. */
const notAnEnd = -1;

/** From this many holders on, a node finds them through an index. */
const indexedHolders = 6;

class Page<Label> {
  readonly words: Int32Array = new Int32Array(pageSize * holdingWords);
  /** Uses of holdings that are not their node's newest. */
  readonly uses: Float64Array = new Float64Array(pageSize);
  readonly nodes: (RadixNode<Label> | undefined)[] = new Array(pageSize).fill(undefined);
}

export class Holdings<Label> {
  readonly #pages: Page<Label>[] = [new Page()];
  // Holding 0 is the sentinel of the ends: its newer end is the oldest, its older end the newest.
  #count = 1;
  #firstFree = 0;
  #lastMerged = 0;
  /** First holding of each tenant. */
  readonly #firstOfTenant: number[] = [];

  /** Creates a holding that is in its tenant's list only. */
  create(node: RadixNode<Label>, tenant: number, use: number): number {
    let holding = this.#firstFree;
    if (holding === 0) {
      holding = this.#count++;
      if (holding >> pageBits === this.#pages.length) this.#pages.push(new Page());
    } else {
      this.#firstFree = this.#get(holding, nextOfTenantWord);
    }
    const { words, uses, nodes } = this.#pages[holding >> pageBits] as Page<Label>;
    const slot = holding & pageMask;
    const at = slot * holdingWords;
    nodes[slot] = node;
    uses[slot] = use;
    words[at + tenantWord] = tenant;
    words[at + newerEndWord] = notAnEnd;
    const next = this.#firstOfTenant[tenant] ?? 0;
    words[at + previousOfTenantWord] = 0;
    words[at + nextOfTenantWord] = next;
    if (next !== 0) this.#set(next, previousOfTenantWord, holding);
    this.#firstOfTenant[tenant] = holding;
    return holding;
  }

  /** Takes a holding out of all lists and frees it. */
  release(holding: number): void {
    this.unlinkEnd(holding);
    this.#removeHolder(this.node(holding), holding);
    (this.#pages[holding >> pageBits] as Page<Label>).nodes[holding & pageMask] = undefined;
    const previous = this.#get(holding, previousOfTenantWord);
    const next = this.#get(holding, nextOfTenantWord);
    if (previous === 0) this.#firstOfTenant[this.tenant(holding)] = next;
    else this.#set(previous, nextOfTenantWord, next);
    if (next !== 0) this.#set(next, previousOfTenantWord, previous);
    this.#set(holding, nextOfTenantWord, this.#firstFree);
    this.#firstFree = holding;
    if (this.#lastMerged === holding) this.#lastMerged = 0;
  }

  node(holding: number): RadixNode<Label> {
    return (this.#pages[holding >> pageBits] as Page<Label>).nodes[holding & pageMask] as RadixNode<Label>;
  }

  tenant(holding: number): number {
    return this.#get(holding, tenantWord);
  }

  use(holding: number): number {
    const node = this.node(holding);
    return node.newestHolding === holding ? node.newestUse : this.#storedUse(holding);
  }

  setUse(holding: number, use: number): void {
    const node = this.node(holding);
    if (node.newestHolding === holding) node.newestUse = use;
    else this.#storeUse(holding, use);
  }

  firstOfTenant(tenant: number): number {
    return this.#firstOfTenant[tenant] ?? 0;
  }

  // The holders of a node.

  olderHolder(holding: number): number {
    return this.#get(holding, olderHolderWord);
  }

  /** The tenant's holding of a node; 0 when it has none. */
  find(node: RadixNode<Label>, tenant: number): number {
    if (node.holdingIndex !== undefined) return node.holdingIndex.get(tenant) ?? 0;
    let seen = 0;
    for (let holding = node.newestHolding; holding !== 0; holding = this.#get(holding, olderHolderWord)) {
      if (this.#get(holding, tenantWord) === tenant) return holding;
      if (++seen === indexedHolders) return this.#indexHolders(node).get(tenant) ?? 0;
    }
    return 0;
  }

  addNewestHolder(node: RadixNode<Label>, holding: number): void {
    this.#addHolder(node, holding, 0);
  }

  moveToNewestHolder(node: RadixNode<Label>, holding: number): void {
    this.#unlinkHolder(node, holding);
    this.#linkHolder(node, holding, 0);
  }

  /** Adds a holder, or moves one whose use was raised, to its place by use. `precedes` settles ties between tenants. */
  addHolderByUse(node: RadixNode<Label>, holding: number, precedes: (a: number, b: number) => boolean): void {
    this.#addHolder(node, holding, this.#newerHolderFor(node, holding, precedes));
  }

  moveHolderByUse(node: RadixNode<Label>, holding: number, precedes: (a: number, b: number) => boolean): void {
    this.#unlinkHolder(node, holding);
    this.#linkHolder(node, holding, this.#newerHolderFor(node, holding, precedes));
  }

  /** Adds a holder behind `newer`, or as the newest when that is 0. */
  addHolderAfter(node: RadixNode<Label>, holding: number, newer: number): void {
    this.#addHolder(node, holding, newer);
  }

  #newerHolderFor(node: RadixNode<Label>, holding: number, precedes: (a: number, b: number) => boolean): number {
    const use = this.use(holding);
    let newer = 0;
    for (let other = node.newestHolding; other !== 0; other = this.#get(other, olderHolderWord)) {
      const otherUse = this.use(other);
      if (otherUse < use || (otherUse === use && !precedes(this.tenant(other), this.tenant(holding)))) break;
      newer = other;
    }
    return newer;
  }

  #addHolder(node: RadixNode<Label>, holding: number, newer: number): void {
    this.#linkHolder(node, holding, newer);
    node.holdingIndex?.set(this.tenant(holding), holding);
  }

  #removeHolder(node: RadixNode<Label>, holding: number): void {
    this.#unlinkHolder(node, holding);
    const index = node.holdingIndex;
    if (index === undefined) return;
    index.delete(this.tenant(holding));
    if (index.size < indexedHolders >> 1) node.holdingIndex = undefined;
  }

  #linkHolder(node: RadixNode<Label>, holding: number, newer: number): void {
    const newest = node.newestHolding;
    const older = newer === 0 ? newest : this.#get(newer, olderHolderWord);
    this.#set(holding, newerHolderWord, newer);
    this.#set(holding, olderHolderWord, older);
    if (older !== 0) this.#set(older, newerHolderWord, holding);
    if (newer !== 0) {
      this.#set(newer, olderHolderWord, holding);
      return;
    }
    if (newest !== 0) this.#storeUse(newest, node.newestUse);
    this.#setNewest(node, holding);
  }

  #unlinkHolder(node: RadixNode<Label>, holding: number): void {
    const newer = this.#get(holding, newerHolderWord);
    const older = this.#get(holding, olderHolderWord);
    if (older !== 0) this.#set(older, newerHolderWord, newer);
    if (newer !== 0) {
      this.#set(newer, olderHolderWord, older);
      return;
    }
    this.#storeUse(holding, node.newestUse);
    this.#setNewest(node, older);
  }

  #setNewest(node: RadixNode<Label>, holding: number): void {
    node.newestHolding = holding;
    if (holding === 0) {
      node.newestTenant = -1;
      node.endsHere = false;
      return;
    }
    node.newestTenant = this.#get(holding, tenantWord);
    node.newestUse = this.#storedUse(holding);
    node.endsHere = this.isEnd(holding);
  }

  #indexHolders(node: RadixNode<Label>): Map<number, number> {
    const index = new Map<number, number>();
    for (let holding = node.newestHolding; holding !== 0; holding = this.#get(holding, olderHolderWord)) {
      index.set(this.tenant(holding), holding);
    }
    node.holdingIndex = index;
    return index;
  }

  // The ends.

  /** 0 when there is no end. */
  oldestEnd(): number {
    return this.#get(0, newerEndWord);
  }

  /** The end after this one; 0 after the newest. */
  newerEnd(end: number): number {
    return this.#get(end, newerEndWord);
  }

  isEnd(holding: number): boolean {
    return this.#get(holding, newerEndWord) !== notAnEnd;
  }

  /** Makes a holding the newest end, whether it is an end or not. */
  renewEnd(holding: number): void {
    const newest = this.#get(0, olderEndWord);
    if (newest === holding) return;
    this.unlinkEnd(holding);
    this.#linkEnd(holding, newest);
  }

  /** Links an end of the oldest use, after the other ends of that use. */
  linkOldestEnd(holding: number): void {
    const use = this.use(holding);
    let older = 0;
    for (let next = this.oldestEnd(); next !== 0 && this.use(next) === use; next = this.newerEnd(next)) older = next;
    this.#linkEnd(holding, older);
  }

  /** Links an end where its use belongs. Starts from the nearer of both ends of the list and the last merged place. */
  linkEndByUse(holding: number): void {
    const use = this.use(holding);
    let older = this.#get(0, olderEndWord);
    if (older !== 0) {
      let distance = Math.abs(this.use(older) - use);
      const oldestDistance = Math.abs(use - this.use(this.oldestEnd()));
      if (oldestDistance < distance) {
        older = 0;
        distance = oldestDistance;
      }
      const merged = this.#lastMerged;
      if (merged !== 0 && this.isEnd(merged) && Math.abs(this.use(merged) - use) < distance) older = merged;
    }
    while (older !== 0 && this.use(older) >= use) older = this.#get(older, olderEndWord);
    for (;;) {
      const newer = this.#get(older, newerEndWord);
      if (newer === 0 || this.use(newer) >= use) break;
      older = newer;
    }
    this.#linkEnd(holding, older);
    this.#lastMerged = holding;
  }

  unlinkEnd(holding: number): void {
    const newer = this.#get(holding, newerEndWord);
    if (newer === notAnEnd) return;
    const older = this.#get(holding, olderEndWord);
    this.#set(older, newerEndWord, newer);
    this.#set(newer, olderEndWord, older);
    this.#set(holding, newerEndWord, notAnEnd);
    const node = this.node(holding);
    if (node.newestHolding === holding) node.endsHere = false;
  }

  #linkEnd(holding: number, older: number): void {
    const newer = this.#get(older, newerEndWord);
    this.#set(holding, olderEndWord, older);
    this.#set(holding, newerEndWord, newer);
    this.#set(older, newerEndWord, holding);
    this.#set(newer, olderEndWord, holding);
    const node = this.node(holding);
    if (node.newestHolding === holding) node.endsHere = true;
  }

  // A newest holder's use is in its node; the stored one is used while the holding is not the newest.

  #storedUse(holding: number): number {
    return (this.#pages[holding >> pageBits] as Page<Label>).uses[holding & pageMask] as number;
  }

  #storeUse(holding: number, use: number): void {
    (this.#pages[holding >> pageBits] as Page<Label>).uses[holding & pageMask] = use;
  }

  #get(holding: number, word: number): number {
    return (this.#pages[holding >> pageBits] as Page<Label>).words[
      (holding & pageMask) * holdingWords + word
    ] as number;
  }

  #set(holding: number, word: number, value: number): void {
    (this.#pages[holding >> pageBits] as Page<Label>).words[(holding & pageMask) * holdingWords + word] = value;
  }
}
