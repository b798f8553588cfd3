/**
 * The blocks of a KV-event index: who holds each, and when it was last stored or read.
 *
 * A block is known by its chain, the 64-bit hash of all tokens up to and including it, so its identity includes
 * everything that precedes it and its position (CA-81, CA-87, B13). Records of 20 bytes in chunks of typed arrays; ids
 * stay valid until the block is freed. Each block keeps a hint to the block stored after it last: following a chain is
 * then a walk over neighbouring records, checked against the chain each time, instead of one hash lookup a block.
 *
 * A detached block is no longer found, but its record stays until the last holder has let go of its id.
 */
import { Map64 } from './map64.js';
import { nobody } from './worker-sets.js';

/** No block. */
export const noBlock: number = -1;

const blocksPerChunk = 4096;
const chunkShift = 12;
const withinChunk: number = blocksPerChunk - 1;

const integersPerBlock = 5;
const lowAt = 0;
const highAt = 1;
/** Its set of workers. */
const holdersAt = 2;
/** The second of the last store or read; -1 in detached and free records. */
const touchAt = 3;
/** A hint: the id of a block whose parent this one was, plus 1. In free records the next free one. */
const nextAt = 4;

export class BlockTable {
  readonly #byChain = new Map64();
  readonly #chunks: Int32Array[] = [];
  #made = 0;
  #freed = noBlock;

  /** Blocks that can be found. */
  get size(): number {
    return this.#byChain.size;
  }

  /** Ids are below this. */
  get idEnd(): number {
    return this.#made;
  }

  /** The block of the chain, or `noBlock`. */
  find(low: number, high: number): number {
    return this.#byChain.get(low, high);
  }

  /** The block of the chain when the hint at its parent leads to it, else whatever `find` says. */
  findAfter(parent: number, low: number, high: number): number {
    const hint = this.#read(parent, nextAt) - 1;
    if (hint >= 0) {
      const chunk = this.#chunks[hint >>> chunkShift] as Int32Array;
      const at = (hint & withinChunk) * integersPerBlock;
      if (chunk[at + lowAt] === low && chunk[at + highAt] === high && (chunk[at + touchAt] as number) >= 0) return hint;
    }
    return this.#byChain.get(low, high);
  }

  /** Makes a block without holders. The chain must not be present. */
  add(low: number, high: number, second: number): number {
    const block = this.#take();
    const chunk = this.#chunks[block >>> chunkShift] as Int32Array;
    const at = (block & withinChunk) * integersPerBlock;
    chunk[at + lowAt] = low;
    chunk[at + highAt] = high;
    chunk[at + holdersAt] = nobody;
    chunk[at + touchAt] = second;
    chunk[at + nextAt] = 0;
    this.#byChain.set(low, high, block);
    return block;
  }

  /** Makes the block unfindable; its holders stay. */
  detach(block: number): void {
    this.#byChain.delete(this.low(block), this.high(block));
    this.#write(block, touchAt, -1);
  }

  /** Frees the record of a block that has no holders; its id may be given again. */
  free(block: number): void {
    if (!this.isDetached(block)) this.detach(block);
    this.#write(block, nextAt, this.#freed + 1);
    this.#freed = block;
  }

  isDetached(block: number): boolean {
    return this.touchSecond(block) < 0;
  }

  /** The lower 32 bits of its chain. */
  low(block: number): number {
    return this.#read(block, lowAt);
  }

  /** The upper 32 bits of its chain. */
  high(block: number): number {
    return this.#read(block, highAt);
  }

  /** The set of workers that hold it (see `WorkerSets`). */
  holders(block: number): number {
    return this.#read(block, holdersAt);
  }

  setHolders(block: number, set: number): void {
    this.#write(block, holdersAt, set);
  }

  /** The second of its last store or read; -1 when it is detached. */
  touchSecond(block: number): number {
    return this.#read(block, touchAt);
  }

  setTouchSecond(block: number, second: number): void {
    this.#write(block, touchAt, second);
  }

  /** Leaves the hint that `next` follows the block. */
  setNext(block: number, next: number): void {
    this.#write(block, nextAt, next + 1);
  }

  /** Bytes held, for measuring. */
  get byteLength(): number {
    return this.#chunks.length * blocksPerChunk * integersPerBlock * 4 + this.#byChain.byteLength;
  }

  #take(): number {
    const freed = this.#freed;
    if (freed !== noBlock) {
      this.#freed = this.#read(freed, nextAt) - 1;
      return freed;
    }
    if (this.#made >>> chunkShift === this.#chunks.length) {
      this.#chunks.push(new Int32Array(blocksPerChunk * integersPerBlock));
    }
    return this.#made++;
  }

  #read(block: number, field: number): number {
    return (this.#chunks[block >>> chunkShift] as Int32Array)[
      (block & withinChunk) * integersPerBlock + field
    ] as number;
  }

  #write(block: number, field: number, value: number): void {
    (this.#chunks[block >>> chunkShift] as Int32Array)[(block & withinChunk) * integersPerBlock + field] = value;
  }
}
