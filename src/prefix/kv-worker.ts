/**
 * A worker as a KV-event index sees it: its slot in the sets, and where the names its engine gave lead.
 *
 * Nearly every block a worker holds has exactly one name, so only the others are written down: `surplus` is the number of
 * names less one. It is −1 for a block whose name the engine gave to another block, and positive where several names lead
 * to the same tokens (one for each LoRA adapter, say).
 */
import type { WorkerId } from '../workers/candidate.js';
import { noBlock } from './block-table.js';
import { Map64 } from './map64.js';

export class IndexedWorker {
  readonly id: WorkerId;
  /** Its place in the sets of holders; -1 = none yet. */
  slot = -1;
  /** Blocks it holds, detached ones not counted. */
  blocks = 0;
  /** The size of the first block of its subscription, tokens; 0 = none yet (CA-91). */
  blockSize = 0;
  /** When that was learned, as a count of such occasions. */
  learnedAt = 0;
  /** From the engine's names to blocks. */
  names: Map64 = new Map64();
  surplus: Map<number, number> = new Map();

  constructor(id: WorkerId) {
    this.id = id;
  }

  /** Forgets all blocks and names; whoever cleans up after it has taken the maps before. */
  empty(): void {
    this.blocks = 0;
    this.names = new Map64();
    this.surplus = new Map();
  }

  /** Whether there are neither names nor blocks. */
  get isClean(): boolean {
    return this.names.size === 0 && this.surplus.size === 0;
  }

  /** A name leads to a held block now, `isNew` when the worker did not hold it before. */
  name(low: number, high: number, block: number, isNew: boolean): void {
    const former = this.names.set(low, high, block);
    if (former === block) return;
    if (!isNew) this.#addSurplus(block, 1);
    if (former !== noBlock) this.#addSurplus(former, -1);
  }

  /** A name of a held block is gone. Returns whether other names keep the block. */
  loseName(block: number): boolean {
    if ((this.surplus.get(block) ?? 0) <= 0) return false;
    this.#addSurplus(block, -1);
    return true;
  }

  #addSurplus(block: number, difference: number): void {
    const surplus = (this.surplus.get(block) ?? 0) + difference;
    if (surplus === 0) this.surplus.delete(block);
    else this.surplus.set(block, surplus);
  }
}
