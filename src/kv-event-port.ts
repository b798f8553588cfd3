/** The engines' KV-cache events on the router (CA-90 to CA-97): the feed, advanced in time, with gaps told as events. */
import type { RouterCore } from './core.js';
import type { KvEventBatch } from './prefix/kv-event.js';
import type { KvBatchResult, KvEventCounts } from './prefix/kv-event-feed.js';
import type { WorkerId } from './workers/candidate.js';

/** KV-event batches of the engines (CA-90 to CA-97). */
export interface KvEventPort {
  /**
   * Applies one batch of a worker's event stream (CA-92). After `gap` the host replays from `expected`, or calls
   * `reset` and goes on with live events. Batches of unknown workers are `rejected` and counted.
   */
  applyBatch(worker: WorkerId, batch: KvEventBatch): KvBatchResult;
  /** Forgets what a worker's stream has told, and its position in it (CA-93). */
  reset(worker: WorkerId): void;
  /** What happened to events since the router was made. Live. */
  readonly counts: Readonly<KvEventCounts>;
}

export function kvEventPort(core: RouterCore): KvEventPort {
  return {
    counts: core.kvEvents.counts,
    applyBatch(worker, batch) {
      const result = core.kvEvents.applyBatch(worker, batch, core.advance());
      if (result.result === 'gap' && core.hub.heard('kvEventGap')) {
        const { expected, received } = result;
        core.hub.emit('kvEventGap', { worker, expected, received });
      }
      return result;
    },
    reset(worker) {
      core.advance();
      core.kvEvents.reset(worker);
    },
  };
}
