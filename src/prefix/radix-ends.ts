/**
 * The ends of a tree in order of use, oldest first. A holding is an end while its tenant's last insert through the node
 * also ended there. Everything a tenant holds lies on the path of one of its ends with the same or a later use, so the
 * oldest end is always what LRU eviction takes next (CA-42, CA-43), and the ends with their uses describe a tree
 * completely (LB-33, LB-34). A doubly linked list in the words of the holdings; its own words are those of holding 0.
 * O(1), apart from `linkByUse`, which serves merged placements only.
 */
import { type Holdings, newerEndWord, notAnEnd, olderEndWord } from './radix-holdings.js';
import type { RadixNode } from './radix-node.js';

const list = 0;

export class Ends<Label> {
  readonly #holdings: Holdings<Label>;
  #lastMerged = 0;

  constructor(holdings: Holdings<Label>) {
    this.#holdings = holdings;
  }

  /** 0 when there is no end. */
  oldest(): number {
    return this.#holdings.word(list, newerEndWord);
  }

  /** The end after this one; 0 after the newest. */
  newer(end: number): number {
    return this.#holdings.word(end, newerEndWord);
  }

  has(holding: number): boolean {
    return this.#holdings.word(holding, newerEndWord) !== notAnEnd;
  }

  /** Makes a node's newest holder the newest end, whether it is an end or not. */
  renew(node: RadixNode<Label>): void {
    const holding = node.newestHolding;
    const newest = this.#holdings.word(list, olderEndWord);
    if (newest === holding) return;
    if (node.endsHere) this.unlink(node, holding);
    this.#link(node, holding, newest);
  }

  /** Links an end of the oldest use, after the other ends of that use. */
  linkOldest(node: RadixNode<Label>, holding: number): void {
    const use = this.#holdings.use(holding);
    let older = list;
    for (let next = this.oldest(); next !== list && this.#holdings.use(next) === use; next = this.newer(next))
      older = next;
    this.#link(node, holding, older);
  }

  /** Links an end before the first of its use or later, starting from the nearest of three known places. */
  linkByUse(node: RadixNode<Label>, holding: number): void {
    const holdings = this.#holdings;
    const use = holdings.use(holding);
    let older = this.#nearestTo(use);
    while (older !== list && holdings.use(older) >= use) older = holdings.word(older, olderEndWord);
    for (let newer = this.newer(older); newer !== list && holdings.use(newer) < use; newer = this.newer(older))
      older = newer;
    this.#link(node, holding, older);
    this.#lastMerged = holding;
  }

  unlink(node: RadixNode<Label>, holding: number): void {
    const holdings = this.#holdings;
    const newer = holdings.word(holding, newerEndWord);
    if (newer === notAnEnd) return;
    const older = holdings.word(holding, olderEndWord);
    holdings.setWord(older, newerEndWord, newer);
    holdings.setWord(newer, olderEndWord, older);
    holdings.setWord(holding, newerEndWord, notAnEnd);
    if (node.newestHolding === holding) node.endsHere = false;
    if (this.#lastMerged === holding) this.#lastMerged = list;
  }

  #link(node: RadixNode<Label>, holding: number, older: number): void {
    const holdings = this.#holdings;
    const newer = holdings.word(older, newerEndWord);
    holdings.setWord(holding, olderEndWord, older);
    holdings.setWord(holding, newerEndWord, newer);
    holdings.setWord(older, newerEndWord, holding);
    holdings.setWord(newer, olderEndWord, holding);
    if (node.newestHolding === holding) node.endsHere = true;
  }

  /** The newest end, the start of the list, or where the last merged placement went: whichever is nearest in use. */
  #nearestTo(use: number): number {
    const holdings = this.#holdings;
    const newest = holdings.word(list, olderEndWord);
    if (newest === list) return list;
    const distance = (end: number): number => Math.abs(holdings.use(end) - use);
    const nearer = distance(newest) <= distance(this.oldest()) ? newest : list;
    if (this.#lastMerged === list) return nearer;
    const best = distance(nearer === list ? this.oldest() : nearer);
    return distance(this.#lastMerged) < best ? this.#lastMerged : nearer;
  }
}
