/**
 * The holders of each node, latest use first; equal uses, which only merged placements bring about, in the order of
 * worker ids (CA-32, LB-34). A doubly linked list in the words of the holdings. What most inserts read, the newest
 * holder, is repeated in the node (`newest…`, `endsHere`). A node with many holders finds them through an index, so
 * that thousands of workers may share a prefix. O(1), apart from placing a merged holding.
 */
import { type Holdings, newerEndWord, newerHolderWord, notAnEnd, olderHolderWord } from './radix-holdings.js';
import type { RadixNode } from './radix-node.js';
import type { Tenants } from './radix-tenants.js';

/** From this many holders on, a node has an index. */
const indexedHolders = 6;

export class Holders<Label> {
  readonly #holdings: Holdings<Label>;
  readonly #tenants: Tenants;

  constructor(holdings: Holdings<Label>, tenants: Tenants) {
    this.#holdings = holdings;
    this.#tenants = tenants;
  }

  /** The holder with the next earlier use; 0 after the last. */
  older(holding: number): number {
    return this.#holdings.word(holding, olderHolderWord);
  }

  /** The tenant's holding of a node; 0 when it has none. */
  find(node: RadixNode<Label>, tenant: number): number {
    if (node.holdingIndex !== undefined) return node.holdingIndex.get(tenant) ?? 0;
    if (node.holders >= indexedHolders) return this.#makeIndex(node).get(tenant) ?? 0;
    for (let holding = node.newestHolding; holding !== 0; holding = this.older(holding)) {
      if (this.#holdings.tenant(holding) === tenant) return holding;
    }
    return 0;
  }

  /** Makes a tenant that does not hold the node its newest holder. */
  addNewest(node: RadixNode<Label>, tenant: number, use: number): void {
    const holdings = this.#holdings;
    const older = node.newestHolding;
    const holding = holdings.create(node, tenant, use, older);
    if (older !== 0) {
      holdings.setWord(older, newerHolderWord, holding);
      holdings.storeUse(older, node.newestUse);
    }
    node.holders++;
    node.newestHolding = holding;
    node.newestTenant = tenant;
    node.newestUse = use;
    node.endsHere = false;
    node.holdingIndex?.set(tenant, holding);
  }

  /** Adds a holder after `newer`, which is 0 for the newest. */
  add(node: RadixNode<Label>, holding: number, newer: number): void {
    node.holders++;
    this.#link(node, holding, newer);
    node.holdingIndex?.set(this.#holdings.tenant(holding), holding);
  }

  addByUse(node: RadixNode<Label>, holding: number): void {
    this.add(node, holding, this.#placeOf(node, holding));
  }

  /** Makes a holder the newest; its use is still the old one. */
  moveToNewest(node: RadixNode<Label>, holding: number): void {
    this.#unlink(node, holding);
    this.#link(node, holding, 0);
  }

  /** Moves a holder whose use was raised to where it belongs. */
  moveByUse(node: RadixNode<Label>, holding: number): void {
    this.#unlink(node, holding);
    this.#link(node, holding, this.#placeOf(node, holding));
  }

  remove(node: RadixNode<Label>, holding: number): void {
    node.holders--;
    this.#unlink(node, holding);
    const index = node.holdingIndex;
    if (index === undefined) return;
    index.delete(this.#holdings.tenant(holding));
    if (node.holders < indexedHolders >> 1) node.holdingIndex = undefined;
  }

  /** The holder after which a holding belongs; 0 = it is the newest. */
  #placeOf(node: RadixNode<Label>, holding: number): number {
    const holdings = this.#holdings;
    const use = holdings.use(holding);
    let newer = 0;
    for (let other = node.newestHolding; other !== 0; other = this.older(other)) {
      const otherUse = holdings.use(other);
      if (otherUse < use) break;
      if (otherUse === use && !this.#tenants.precedes(holdings.tenant(other), holdings.tenant(holding))) break;
      newer = other;
    }
    return newer;
  }

  #link(node: RadixNode<Label>, holding: number, newer: number): void {
    const holdings = this.#holdings;
    const newest = node.newestHolding;
    const older = newer === 0 ? newest : this.older(newer);
    holdings.setWord(holding, newerHolderWord, newer);
    holdings.setWord(holding, olderHolderWord, older);
    if (older !== 0) holdings.setWord(older, newerHolderWord, holding);
    if (newer !== 0) {
      holdings.setWord(newer, olderHolderWord, holding);
      return;
    }
    if (newest !== 0) holdings.storeUse(newest, node.newestUse);
    this.#setNewest(node, holding);
  }

  #unlink(node: RadixNode<Label>, holding: number): void {
    const holdings = this.#holdings;
    const newer = holdings.word(holding, newerHolderWord);
    const older = this.older(holding);
    if (older !== 0) holdings.setWord(older, newerHolderWord, newer);
    if (newer !== 0) {
      holdings.setWord(newer, olderHolderWord, older);
      return;
    }
    holdings.storeUse(holding, node.newestUse);
    this.#setNewest(node, older);
  }

  #setNewest(node: RadixNode<Label>, holding: number): void {
    const holdings = this.#holdings;
    node.newestHolding = holding;
    node.newestTenant = holding === 0 ? -1 : holdings.tenant(holding);
    node.newestUse = holding === 0 ? 0 : holdings.storedUse(holding);
    node.endsHere = holding !== 0 && holdings.word(holding, newerEndWord) !== notAnEnd;
  }

  #makeIndex(node: RadixNode<Label>): Map<number, number> {
    const index = new Map<number, number>();
    for (let holding = node.newestHolding; holding !== 0; holding = this.older(holding)) {
      index.set(this.#holdings.tenant(holding), holding);
    }
    node.holdingIndex = index;
    return index;
  }
}
