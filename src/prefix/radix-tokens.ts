/**
 * The labels of the token tree: runs of ids in large slabs, named by slab and offset, so that a split costs nothing
 * and no array is made per label. Space that is released is used again: an empty slab is refilled, and a slab that is
 * less than half in use is emptied by moving its labels, twice as many ids as were released (each released id pays for
 * its share). So slabs take at most about twice the ids they hold, plus the one being filled and a spare.
 */
import { RoutingConfigError } from '../errors.js';
import { Words } from '../runtime/words.js';
import type { Labels } from './radix-core.js';
import type { RadixNode } from './radix-node.js';
import { TokenHash } from './token-hash.js';

const firstSlabTokens = 4096;
const maxSlabTokens = 1 << 20;

/** Labels looked at by one `compactSome`. */
const labelsPerStep = 8;

/** Labels looked at by one `compact` at most. */
const labelsPerCall = 1024;

export class TokenSlab {
  readonly words: Words;
  /** Ids written so far, and those still in use. */
  used = 0;
  live = 0;
  /** Every node whose label was put here; some have gone or moved since. */
  readonly nodes: RadixNode<TokenSlab>[] = [];
  /** Waits to be emptied. */
  isSparse = false;

  constructor(tokens: number) {
    this.words = new Words(new Uint32Array(tokens));
  }
}

export class TokenLabels implements Labels<TokenSlab> {
  readonly empty: TokenSlab = new TokenSlab(0);
  readonly #pageSize: number;
  readonly #hash = new TokenHash();
  readonly #salt: number;
  #filling: TokenSlab = this.empty;
  #spare: TokenSlab | undefined = undefined;
  readonly #sparse: TokenSlab[] = [];
  #nextSlabTokens = firstSlabTokens;
  /** Ids released since the last `compact`. */
  #released = 0;

  constructor(pageSize: number, salt: number) {
    if (!Number.isInteger(salt)) throw new RoutingConfigError('salt', salt, 'must be a 32-bit integer');
    this.#pageSize = pageSize;
    this.#salt = salt;
  }

  /** The key of the page that starts at `from`. Salted, so that nobody can prepare pages with equal keys. */
  pageKey(tokens: Uint32Array, from: number): number {
    const hash = this.#hash;
    hash.start(this.#salt, ~this.#salt);
    hash.mix(tokens, from, from + this.#pageSize);
    hash.close();
    return hash.low;
  }

  /** Stores `count` ids of `source`, from `from` on, as the label of `node`. */
  put(node: RadixNode<TokenSlab>, source: Words, from: number, count: number): void {
    const slab = this.#slabFor(count);
    slab.words.copyFrom(slab.used, source, from, count);
    node.label = slab;
    node.extent = slab.used;
    node.units = count;
    slab.nodes.push(node);
    slab.used += count;
    slab.live += count;
  }

  keyOf(node: RadixNode<TokenSlab>): number {
    return this.pageKey(node.label.words.at, node.extent);
  }

  split(node: RadixNode<TokenSlab>, head: RadixNode<TokenSlab>, length: number): void {
    head.label = node.label;
    head.extent = node.extent;
    head.units = length;
    node.extent += length;
    node.units -= length;
    head.label.nodes.push(head);
  }

  join(head: RadixNode<TokenSlab>, tail: RadixNode<TokenSlab>): void {
    const units = head.units + tail.units;
    if (head.label === tail.label && head.extent + head.units === tail.extent) {
      tail.extent = head.extent;
      tail.units = units;
      return;
    }
    const { label, extent, units: tailUnits } = tail;
    const slab = this.#slabFor(units);
    const at = slab.used;
    slab.words.copyFrom(at, head.label.words, head.extent, head.units);
    slab.words.copyFrom(at + head.units, label.words, extent, tailUnits);
    slab.used += units;
    slab.live += units;
    this.#free(head.label, head.units);
    this.#free(label, tailUnits);
    tail.label = slab;
    tail.extent = at;
    tail.units = units;
    slab.nodes.push(tail);
  }

  release(node: RadixNode<TokenSlab>): void {
    this.#free(node.label, node.units);
  }

  compact(): void {
    let left = 2 * this.#released;
    this.#released = 0;
    for (let i = 0; i < labelsPerCall && left > 0 && this.#sparse.length > 0; i++) left -= this.#moveOne();
  }

  compactSome(): boolean {
    for (let i = 0; i < labelsPerStep && this.#sparse.length > 0; i++) this.#moveOne();
    return this.#sparse.length > 0;
  }

  /** Moves one label out of a sparse slab; returns its ids. */
  #moveOne(): number {
    const slab = this.#sparse[this.#sparse.length - 1] as TokenSlab;
    if (slab.live === 0) {
      this.#sparse.pop();
      slab.isSparse = false;
      this.#recycle(slab);
      return 0;
    }
    // While ids are in use, the nodes that use them are there.
    const node = slab.nodes.pop() as RadixNode<TokenSlab>;
    if (node.label !== slab) return 0;
    this.put(node, slab.words, node.extent, node.units);
    slab.live -= node.units;
    return node.units;
  }

  /** A slab with room for `count` ids. */
  #slabFor(count: number): TokenSlab {
    const filling = this.#filling;
    if (filling.used + count <= filling.words.at.length) return filling;
    // Alone, a long label wastes nothing; here it might leave much of a slab empty.
    if (count > this.#nextSlabTokens >> 3) return new TokenSlab(count);
    if (this.#spare !== undefined && this.#spare.words.at.length >= count) {
      this.#filling = this.#spare;
      this.#spare = undefined;
    } else {
      this.#filling = new TokenSlab(this.#nextSlabTokens);
      this.#nextSlabTokens = Math.min(2 * this.#nextSlabTokens, maxSlabTokens);
    }
    this.#free(filling, 0);
    return this.#filling;
  }

  #free(slab: TokenSlab, count: number): void {
    slab.live -= count;
    this.#released += count;
    if (slab === this.#filling) {
      if (slab.live > 0) return;
      slab.used = 0;
      slab.nodes.length = 0;
    } else if (slab.live === 0 && !slab.isSparse) {
      this.#recycle(slab);
    } else if (2 * slab.live < slab.used && !slab.isSparse) {
      slab.isSparse = true;
      this.#sparse.push(slab);
    }
  }

  /** Keeps an empty slab for later when it is worth it. */
  #recycle(slab: TokenSlab): void {
    slab.used = 0;
    slab.nodes.length = 0;
    const tokens = slab.words.at.length;
    if (tokens <= maxSlabTokens && tokens > (this.#spare?.words.at.length ?? 0)) this.#spare = slab;
  }
}
