import type { KvEvent } from '../../src/prefix/kv-event.js';
import { type KvBatchResult, KvEventFeed, type KvEventFeedOptions } from '../../src/prefix/kv-event-feed.js';
import type { KvEventIndex } from '../../src/prefix/kv-event-index.js';
import { StepBudget } from '../../src/runtime/maintenance-budget.js';

/** The integers from `from` up to, not including, `to`. */
export const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

/** A stored event in the form of the conformance rows: blocks of (name, tokens). */
export function stored(parent: number | null, ...blocks: readonly (readonly [number, readonly number[]])[]): KvEvent {
  return { type: 'stored', parent, blocks: blocks.map(([hash, tokens]) => ({ hash, tokens })) };
}

/** A feed of one model whose streams number themselves. */
export class Fleet {
  readonly feed: KvEventFeed;
  now = 0;

  constructor(workers: readonly string[], options?: KvEventFeedOptions) {
    this.feed = new KvEventFeed(options);
    for (const worker of workers) this.feed.addWorker(worker, ['m']);
  }

  apply(worker: string, ...events: readonly KvEvent[]): KvBatchResult {
    const last = this.feed.lastSequence(worker);
    return this.feed.applyBatch(worker, { sequence: last === undefined ? 0 : Number(last) + 1, events }, this.now);
  }

  get index(): KvEventIndex {
    return this.feed.indexFor('m') as KvEventIndex;
  }

  overlaps(tokens: readonly number[] | Uint32Array): Record<string, number> {
    const match = this.index.overlaps(tokens, this.now);
    return Object.fromEntries(range(0, match.count).map((i) => [match.worker(i), match.overlap(i)]));
  }

  /** Overlaps, and touches what was read. */
  use(tokens: readonly number[]): Record<string, number> {
    const overlaps = this.overlaps(tokens);
    this.index.touch(this.index.overlaps(tokens, this.now), this.now);
    return overlaps;
  }

  /** Moves the time on and does all maintenance. */
  advance(ms: number): void {
    this.now += ms;
    while (this.feed.maintain(this.now, new StepBudget(1000)));
  }
}
