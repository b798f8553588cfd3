/**
 * The overlaps of one request: how many of its leading blocks each worker holds (CA-82). Filled while the index walks
 * along the request; workers drop out in ascending order of overlap. Reused from request to request, so a query
 * allocates nothing once the arrays are large enough (see `roomIn`). Sets are (word index, bits) pairs as in `WorkerSets`.
 */
import type { WorkerId } from '../workers/candidate.js';
import { roomIn } from './scratch.js';
import { lowestSlot } from './worker-sets.js';

/** What a query found. Valid until the next query of the same index. */
export interface KvMatch {
  /** Workers that hold at least the first block. */
  readonly count: number;
  /** Full blocks of the request, by the effective block size (CA-81). */
  readonly requestBlocks: number;
  /** The effective block size, in tokens (CA-91); 0 when the index is empty. */
  readonly blockSize: number;
  /** The worker at a position. Positions are in ascending order of overlap: the best are the last. */
  worker(index: number): WorkerId;
  /** Its overlap: consecutive leading blocks, at least 1. */
  overlap(index: number): number;
}

export class KvOverlaps implements KvMatch {
  count = 0;
  requestBlocks = 0;
  blockSize = 0;
  /** The ids of the blocks that were read, for `touch`. */
  path: Int32Array = new Int32Array(64);
  pathLength = 0;
  #slots: Int32Array = new Int32Array(128);
  #overlaps: Int32Array = new Int32Array(128);
  /** The workers that hold every block so far. */
  #active: Int32Array = new Int32Array(128);
  #activeLength = 0;
  readonly #idOf: (slot: number) => WorkerId | undefined;

  /** @param idOf the worker of a slot, undefined when it was removed */
  constructor(idOf: (slot: number) => WorkerId | undefined) {
    this.#idOf = idOf;
  }

  worker(index: number): WorkerId {
    return this.#idOf(this.#slots[index] as number) as WorkerId;
  }

  overlap(index: number): number {
    return this.#overlaps[index] as number;
  }

  /** Starts a request. */
  start(blockSize: number, requestBlocks: number): void {
    this.count = 0;
    this.blockSize = blockSize;
    this.requestBlocks = requestBlocks;
    this.pathLength = 0;
    this.#activeLength = 0;
  }

  /** Takes down that a block was read. */
  visit(block: number): void {
    if (this.pathLength === this.path.length) {
      const { path } = this;
      this.path = new Int32Array(2 * this.pathLength);
      this.path.set(path);
    }
    this.path[this.pathLength++] = block;
  }

  /** Follows the holders of block 0, given as a set's words. */
  follow(words: Int32Array): void {
    this.#active = roomIn(this.#active, words.length);
    this.#active.set(words);
    this.#activeLength = words.length;
    // Whoever is listed later is one of them, and a word of two integers has at most 32.
    this.#slots = roomIn(this.#slots, 16 * words.length);
    this.#overlaps = roomIn(this.#overlaps, 16 * words.length);
  }

  /** Drops followed workers that are not in the set: they hold `blocks` blocks. Returns whether anybody is left. */
  narrow(words: Int32Array, blocks: number): boolean {
    const active = this.#active;
    let kept = 0;
    let other = 0;
    for (let at = 0; at < this.#activeLength; at += 2) {
      const index = active[at] as number;
      const bits = active[at + 1] as number;
      while (other < words.length && (words[other] as number) < index) other += 2;
      const both = words[other] === index ? bits & (words[other + 1] as number) : 0;
      this.#list(index, bits & ~both, blocks);
      if (both !== 0) {
        active[kept] = index;
        active[kept + 1] = both;
        kept += 2;
      }
    }
    this.#activeLength = kept;
    return kept > 0;
  }

  /** The followed workers hold `blocks` blocks and no more. */
  finish(blocks: number): void {
    for (let at = 0; at < this.#activeLength; at += 2) {
      this.#list(this.#active[at] as number, this.#active[at + 1] as number, blocks);
    }
    this.#activeLength = 0;
  }

  /** Lists the workers of a word with their overlap. */
  #list(index: number, bits: number, blocks: number): void {
    for (let rest = bits; rest !== 0; rest &= rest - 1) {
      const slot = lowestSlot(index, rest);
      // A removed worker stays in the sets for a while, until they are cleaned.
      if (this.#idOf(slot) === undefined) continue;
      this.#slots[this.count] = slot;
      this.#overlaps[this.count++] = blocks;
    }
  }
}
