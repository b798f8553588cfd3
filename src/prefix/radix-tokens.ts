/**
 * The labels of the token tree: runs of ids in large blocks, named by block and offset, so that a split costs nothing
 * and no array is made per label. Space that is released is used again: an empty block is refilled, and a block that is
 * less than half in use is emptied by moving its labels, twice as many ids as were released (each released id pays for
 * its share). So blocks take at most about twice the ids they hold, plus the one being filled and a spare.
 */
import { RoutingConfigError } from '../errors.js';
import { Words } from '../runtime/words.js';
import type { Labels } from './radix-core.js';
import type { RadixNode } from './radix-node.js';
import { TokenHash } from './token-hash.js';

const firstBlockTokens = 4096;
const maxBlockTokens = 1 << 20;

/** Labels looked at by one `compactSome`. */
const labelsPerStep = 8;

/** Labels looked at by one `compact` at most. */
const labelsPerCall = 1024;

export class TokenBlock {
  readonly words: Words;
  /** Ids written so far, and those still in use. */
  used = 0;
  live = 0;
  /** Every node whose label was put here; some have gone or moved since. */
  readonly nodes: RadixNode<TokenBlock>[] = [];
  /** Waits to be emptied. */
  isSparse = false;

  constructor(tokens: number) {
    this.words = new Words(new Uint32Array(tokens));
  }
}

export class TokenLabels implements Labels<TokenBlock> {
  readonly empty: TokenBlock = new TokenBlock(0);
  readonly #blockSize: number;
  readonly #hash = new TokenHash();
  readonly #salt: number;
  #filling: TokenBlock = this.empty;
  #spare: TokenBlock | undefined = undefined;
  readonly #sparse: TokenBlock[] = [];
  #nextBlockTokens = firstBlockTokens;
  /** Ids released since the last `compact`. */
  #released = 0;

  constructor(blockSize: number, salt: number) {
    if (!Number.isInteger(salt)) throw new RoutingConfigError('salt', salt, 'must be a 32-bit integer');
    this.#blockSize = blockSize;
    this.#salt = salt;
  }

  /** The key of the page that starts at `from`. Salted, so that nobody can prepare pages with equal keys. */
  pageKey(tokens: Uint32Array, from: number): number {
    const hash = this.#hash;
    hash.start(this.#salt, ~this.#salt);
    hash.mix(tokens, from, from + this.#blockSize);
    hash.close();
    return hash.low;
  }

  /** Stores `count` ids of `source`, from `from` on, as the label of `node`. */
  put(node: RadixNode<TokenBlock>, source: Words, from: number, count: number): void {
    const block = this.#blockFor(count);
    block.words.copyFrom(block.used, source, from, count);
    node.label = block;
    node.extent = block.used;
    node.units = count;
    block.nodes.push(node);
    block.used += count;
    block.live += count;
  }

  keyOf(node: RadixNode<TokenBlock>): number {
    return this.pageKey(node.label.words.at, node.extent);
  }

  split(node: RadixNode<TokenBlock>, head: RadixNode<TokenBlock>, length: number): void {
    head.label = node.label;
    head.extent = node.extent;
    head.units = length;
    node.extent += length;
    node.units -= length;
    head.label.nodes.push(head);
  }

  join(head: RadixNode<TokenBlock>, tail: RadixNode<TokenBlock>): void {
    const units = head.units + tail.units;
    if (head.label === tail.label && head.extent + head.units === tail.extent) {
      tail.extent = head.extent;
      tail.units = units;
      return;
    }
    const { label, extent, units: tailUnits } = tail;
    const block = this.#blockFor(units);
    const at = block.used;
    block.words.copyFrom(at, head.label.words, head.extent, head.units);
    block.words.copyFrom(at + head.units, label.words, extent, tailUnits);
    block.used += units;
    block.live += units;
    this.#free(head.label, head.units);
    this.#free(label, tailUnits);
    tail.label = block;
    tail.extent = at;
    tail.units = units;
    block.nodes.push(tail);
  }

  release(node: RadixNode<TokenBlock>): void {
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

  /** Moves one label out of a sparse block; returns its ids. */
  #moveOne(): number {
    const block = this.#sparse[this.#sparse.length - 1] as TokenBlock;
    const node = block.nodes.pop();
    if (node === undefined || block.live === 0) {
      this.#sparse.pop();
      block.isSparse = false;
      this.#recycle(block);
      return 0;
    }
    if (node.label !== block) return 0;
    this.put(node, block.words, node.extent, node.units);
    block.live -= node.units;
    return node.units;
  }

  /** A block with room for `count` ids. */
  #blockFor(count: number): TokenBlock {
    const filling = this.#filling;
    if (filling.used + count <= filling.words.at.length) return filling;
    // Alone, a long label wastes nothing; here it might leave much of a block empty.
    if (count > this.#nextBlockTokens >> 3) return new TokenBlock(count);
    if (this.#spare !== undefined && this.#spare.words.at.length >= count) {
      this.#filling = this.#spare;
      this.#spare = undefined;
    } else {
      this.#filling = new TokenBlock(this.#nextBlockTokens);
      this.#nextBlockTokens = Math.min(2 * this.#nextBlockTokens, maxBlockTokens);
    }
    this.#free(filling, 0);
    return this.#filling;
  }

  #free(block: TokenBlock, count: number): void {
    block.live -= count;
    this.#released += count;
    if (block === this.#filling) {
      if (block.live > 0) return;
      block.used = 0;
      block.nodes.length = 0;
    } else if (block.live === 0 && !block.isSparse) {
      this.#recycle(block);
    } else if (2 * block.live < block.used && !block.isSparse) {
      block.isSparse = true;
      this.#sparse.push(block);
    }
  }

  /** Keeps an empty block for later when it is worth it. */
  #recycle(block: TokenBlock): void {
    block.used = 0;
    block.nodes.length = 0;
    const tokens = block.words.at.length;
    if (tokens <= maxBlockTokens && tokens > (this.#spare?.words.at.length ?? 0)) this.#spare = block;
  }
}
