/**
 * Who holds which block of a KV-event index. Workers are slots in shared sets, so the fleet may have any size (B23), and
 * a slot is given again only after every set has been cleaned of the worker that had it before.
 *
 * Invariants: a findable block has at least one holder; `memberships` and a worker's `blocks` count findable blocks of
 * workers that have a slot. Everything is O(1) a block, but for `detach`, which is O(holders).
 */
import { BlockTable } from './block-table.js';
import type { IndexedWorker } from './kv-worker.js';
import type { Map64 } from './map64.js';
import { lowestSlot, nobody, WorkerSets } from './worker-sets.js';

/** Work in bounded pieces. */
export type Walk = Generator<undefined, void, undefined>;

/** A piece of a walk takes well under a millisecond, also when every block of it is a cache miss. */
export const blocksPerPiece: number = 64;

export class KvHoldings {
  readonly blocks: BlockTable = new BlockTable();
  readonly sets: WorkerSets = new WorkerSets();
  /** Pairs of a worker and a findable block it holds. */
  memberships = 0;
  /** Blocks that cannot be found any more, but that names may still lead to. */
  detachedCount = 0;
  /** The worker of each slot; undefined = free or retired. */
  readonly #slots: (IndexedWorker | undefined)[] = [];
  readonly #freeSlots: number[] = [];

  workerOf(slot: number): IndexedWorker | undefined {
    return this.#slots[slot];
  }

  /** Gives a worker that holds nothing a slot. */
  admit(worker: IndexedWorker): void {
    worker.slot = this.#freeSlots.pop() ?? this.#slots.length;
    this.#slots[worker.slot] = worker;
  }

  /** Makes the worker a holder; false when it was one. */
  hold(worker: IndexedWorker, block: number): boolean {
    const before = this.blocks.holders(block);
    const after = this.sets.join(before, worker.slot);
    if (after === before) return false;
    this.blocks.setHolders(block, after);
    worker.blocks++;
    this.memberships++;
    return true;
  }

  /** A name of a block the worker holds is gone, or it had none. With the last one the worker stops holding the block. */
  loseName(worker: IndexedWorker, block: number): void {
    if (worker.loseName(block)) return;
    if (!this.blocks.isDetached(block)) {
      worker.blocks--;
      this.memberships--;
    }
    this.#leave(worker.slot, block);
  }

  /** Makes a block unreadable. Its record stays until no name leads to it. */
  detach(block: number): void {
    const words = this.sets.words(this.blocks.holders(block));
    for (let at = 0; at < words.length; at += 2) {
      for (let bits = words[at + 1] as number; bits !== 0; bits &= bits - 1) {
        const worker = this.#slots[lowestSlot(words[at] as number, bits)];
        if (worker === undefined) continue;
        worker.blocks--;
        this.memberships--;
      }
    }
    this.blocks.detach(block);
    this.detachedCount++;
  }

  /** Takes the worker's slot: unreadable at once. The walk that is returned frees what it held, and then the slot. */
  retire(worker: IndexedWorker): Walk {
    const { slot, names, surplus } = worker;
    this.#slots[slot] = undefined;
    this.memberships -= worker.blocks;
    worker.empty();
    return this.#cleanUp(slot, names, surplus);
  }

  /** Takes a slot out of a block's holders, if it is there, and frees the block nobody is left of. */
  #leave(slot: number, block: number): void {
    const before = this.blocks.holders(block);
    const after = this.sets.leave(before, slot);
    if (after === before) return;
    this.blocks.setHolders(block, after);
    if (after !== nobody) return;
    if (this.blocks.isDetached(block)) this.detachedCount--;
    this.blocks.free(block);
  }

  *#cleanUp(slot: number, names: Map64, surplus: ReadonlyMap<number, number>): Walk {
    let seen = 0;
    for (const block of names.values()) {
      this.#leave(slot, block);
      if (++seen % blocksPerPiece === 0) yield;
    }
    for (const block of surplus.keys()) {
      this.#leave(slot, block);
      if (++seen % blocksPerPiece === 0) yield;
    }
    this.#freeSlots.push(slot);
  }
}
