/**
 * Takes the event streams of the registered workers and keeps the KV-event indexes of their models (section F of spec
 * 05). Each worker has one stream, whose order is checked here (CA-92); its events go to the index of every model it
 * serves. Late events of a removed worker find nobody to belong to and are counted and dropped (CA-80, B83).
 *
 * Everything is synchronous and nothing throws for what an engine sent (B87). O(size of the batch).
 */
import { checkList, checkNumber, checkObject, refuse } from '../errors.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import type { KvEventBatch } from './kv-event.js';
import { KvEventIndex } from './kv-event-index.js';
import { type CheckedEvent, KvEventReader } from './kv-event-reader.js';
import { nextSequence, type SequenceNumber } from './kv-event-stream.js';
import { checkedLimits, type KvPruneLimits } from './kv-prune.js';

/**
 * What became of a batch (CA-93). After `gap` the host replays from `expected`, or resets the worker and applies the
 * batch again; nothing has changed.
 */
export type KvBatchResult =
  | { readonly result: 'applied' | 'restarted' | 'stale' }
  | { readonly result: 'gap'; readonly expected: SequenceNumber; readonly received: SequenceNumber }
  | { readonly result: 'rejected'; readonly reason: 'unknown_worker' | 'sequence' | 'events' };

/** What happened to events since the feed was made. A worker of several models counts once. */
export interface KvEventCounts {
  appliedBatches: number;
  /** Of these, the engine had started again. */
  restarts: number;
  staleBatches: number;
  gaps: number;
  /** Batches without a sound sequence number or list of events. */
  rejectedBatches: number;
  /** Batches of workers that are not registered. */
  unknownWorkerBatches: number;
  /** Malformed events; the rest of their batch was applied. */
  rejectedEvents: number;
  /** Events of other media than the GPU. */
  otherMediumEvents: number;
  /** Stored blocks ignored because their parent was unknown. */
  orphanedBlocks: number;
}

/**
 * An engine cuts blocks of another size than was in effect, which is told once for a worker (CA-91, B86). Blocks of the
 * size learned last are matched, others are not.
 */
export interface KvEventWarning {
  readonly code: 'blockSizeMismatch';
  readonly message: string;
  /** Option names it concerns. */
  readonly fields: readonly string[];
  readonly worker: WorkerId;
  readonly model: string;
}

/** How the index of one model is kept. */
export interface KvIndexSettings extends KvPruneLimits {
  /** The block size assumed as long as neither an engine nor a worker spec has told one, tokens. Absent: no assumption. */
  readonly blockSize?: number | undefined;
}

/** Whom a feed tells. */
export interface KvEventFeedOptions {
  /** Told after the batch was applied. */
  readonly warning?: ((warning: KvEventWarning) => void) | undefined;
}

interface FedWorker {
  models: readonly string[];
  /** `kv_block_size` of its spec; 0 = unset. */
  declaredBlockSize: number;
  last: SequenceNumber | undefined;
  isWarned: boolean;
}

/** Takes the event streams of workers and keeps one index a model (CA-80 to CA-97). */
export class KvEventFeed {
  readonly counts: Readonly<KvEventCounts>;
  readonly #counts: KvEventCounts = {
    appliedBatches: 0,
    restarts: 0,
    staleBatches: 0,
    gaps: 0,
    rejectedBatches: 0,
    unknownWorkerBatches: 0,
    rejectedEvents: 0,
    otherMediumEvents: 0,
    orphanedBlocks: 0,
  };
  readonly #workers = new Map<WorkerId, FedWorker>();
  readonly #indexes = new Map<string, KvEventIndex>();
  readonly #settings = new Map<string, KvIndexSettings>();
  readonly #reader = new KvEventReader();
  readonly #warn: ((warning: KvEventWarning) => void) | undefined;

  constructor(options: KvEventFeedOptions = {}) {
    this.counts = this.#counts;
    this.#warn = checkObject(options).warning;
  }

  /**
   * Registers a worker, or takes up its new models; what it holds for models it keeps stays.
   *
   * @param declaredBlockSize `kv_block_size` of its spec, tokens; 0 = unset (CA-91)
   * @throws TypeError for an id or a block size of the wrong type, or models that are no list
   */
  addWorker(id: WorkerId, models: readonly string[], declaredBlockSize = 0): void {
    if (typeof id !== 'string') throw refuse('id', 'a string', id);
    checkNumber(declaredBlockSize, 'declaredBlockSize');
    const own = [...checkList(models, 'models')];
    for (const model of own) if (typeof model !== 'string') throw refuse('models', 'strings', model);
    const worker = this.#workers.get(id);
    if (worker === undefined) {
      this.#workers.set(id, { models: own, declaredBlockSize, last: undefined, isWarned: false });
      return;
    }
    for (const model of worker.models) if (!own.includes(model)) this.#leaveModel(id, model);
    worker.models = own;
    worker.declaredBlockSize = declaredBlockSize;
  }

  /** Forgets a worker and its blocks (CA-95). */
  removeWorker(id: WorkerId): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    this.#workers.delete(id);
    for (const model of worker.models) this.#leaveModel(id, model);
  }

  /**
   * Sets how the index of a model is kept, now and whenever it is made again.
   *
   * @throws TypeError for a model that is no string, settings that are no object, and values that are no numbers
   */
  configure(model: string, settings: KvIndexSettings): void {
    if (typeof model !== 'string') throw refuse('model', 'a string', model);
    const limits = checkedLimits(settings);
    const { blockSize } = settings;
    if (blockSize !== undefined) checkNumber(blockSize, 'settings.blockSize');
    this.#settings.set(model, { ...limits, blockSize });
    const index = this.#indexes.get(model);
    if (index !== undefined) index.limits = limits;
  }

  /** Forgets how the index of a model is kept. One that is in use stays as it is until its last worker leaves. */
  forgetModel(model: string): void {
    if (typeof model !== 'string') throw refuse('model', 'a string', model);
    this.#settings.delete(model);
  }

  /** The index of a model; undefined as long as no worker of the model has stored anything. */
  indexFor(model: string): KvEventIndex | undefined {
    return this.#indexes.get(model);
  }

  /** The last sequence number of a worker's stream; undefined = none yet. */
  lastSequence(id: WorkerId): SequenceNumber | undefined {
    return this.#workers.get(id)?.last;
  }

  /**
   * Applies one batch of a worker's stream (CA-90, CA-92). Never throws for what an engine sent.
   *
   * @param now milliseconds, on the clock of all calls
   * @throws TypeError for a time that is no number
   */
  applyBatch(id: WorkerId, batch: KvEventBatch, now: number): KvBatchResult {
    checkNumber(now, 'now');
    const worker = this.#workers.get(id);
    if (worker === undefined) {
      this.#counts.unknownWorkerBatches++;
      return { result: 'rejected', reason: 'unknown_worker' };
    }
    const given = batch as Partial<KvEventBatch> | null | undefined;
    const step = nextSequence(worker.last, given?.sequence);
    const events: unknown = given?.events;
    if (step.result === 'rejected' || !Array.isArray(events)) {
      this.#counts.rejectedBatches++;
      return { result: 'rejected', reason: step.result === 'rejected' ? 'sequence' : 'events' };
    }
    // A list from outside may fail when it is asked, so it is before anything changes.
    const count = events.length;
    worker.last = step.last;
    if (step.result === 'stale') {
      this.#counts.staleBatches++;
      return { result: 'stale' };
    }
    if (step.result === 'gap') {
      this.#counts.gaps++;
      return { result: 'gap', expected: step.expected as SequenceNumber, received: step.received as SequenceNumber };
    }
    if (step.result === 'restarted') {
      this.#counts.restarts++;
      for (const model of worker.models) this.#indexes.get(model)?.restarted(id);
    }
    this.#counts.appliedBatches++;
    const warnings: KvEventWarning[] = [];
    for (let i = 0; i < count; i++) this.#applyEvent(id, worker, this.#eventAt(events, i), now, warnings);
    for (const warning of warnings) this.#warn?.(warning);
    return { result: step.result === 'restarted' ? 'restarted' : 'applied' };
  }

  /**
   * Drops a worker's blocks and starts its stream anew: the next batch sets the base whatever its number (CA-93). For a
   * host that cannot replay after a gap, or whose subscription was lost. Unknown ids are ignored.
   */
  reset(id: WorkerId): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    worker.last = undefined;
    for (const model of worker.models) this.#indexes.get(model)?.restarted(id);
  }

  /** Cleans up and prunes in bounded steps; returns whether work is left (LB-5, CA-96). */
  maintain(now: number, budget: MaintenanceBudget): boolean {
    let isLeft = false;
    for (const index of this.#indexes.values()) isLeft = index.maintain(now, budget) || isLeft;
    return isLeft;
  }

  /** The checked event; undefined for one that breaks a rule, and for one that fails when it is read. */
  #eventAt(events: readonly unknown[], position: number): CheckedEvent | undefined {
    try {
      return this.#reader.read(events[position]);
    } catch {
      return undefined;
    }
  }

  #applyEvent(
    id: WorkerId,
    worker: FedWorker,
    event: CheckedEvent | undefined,
    now: number,
    warnings: KvEventWarning[],
  ): void {
    if (event === undefined) {
      this.#counts.rejectedEvents++;
    } else if (event.type === 'ignored') {
      this.#counts.otherMediumEvents++;
    } else if (event.type === 'removed') {
      for (const model of worker.models) this.#indexes.get(model)?.removed(id, event);
    } else if (event.type === 'cleared') {
      for (const model of worker.models) this.#indexes.get(model)?.cleared(id);
    } else if (event.count > 0) {
      let orphaned = 0;
      for (const model of worker.models) {
        const index = this.#indexOf(model, now);
        const expected = index.blockSize ?? this.#expectedBlockSize(model);
        if (expected !== undefined && expected !== event.blockSize && !worker.isWarned) {
          worker.isWarned = true;
          warnings.push(blockSizeMismatch(id, model, event.blockSize, expected));
        }
        orphaned = Math.max(orphaned, index.stored(id, event, now));
      }
      this.#counts.orphanedBlocks += orphaned;
    }
  }

  #indexOf(model: string, now: number): KvEventIndex {
    let index = this.#indexes.get(model);
    if (index === undefined) {
      index = new KvEventIndex(this.#settings.get(model) ?? {}, now);
      this.#indexes.set(model, index);
    }
    return index;
  }

  /** The size told by the first worker of the model that tells one, else the configured one (CA-91). */
  #expectedBlockSize(model: string): number | undefined {
    for (const worker of this.#workers.values()) {
      if (worker.declaredBlockSize > 0 && worker.models.includes(model)) return worker.declaredBlockSize;
    }
    return this.#settings.get(model)?.blockSize;
  }

  /** The last worker of a model takes the index with it, and the block size it learned (CA-95). */
  #leaveModel(id: WorkerId, model: string): void {
    const index = this.#indexes.get(model);
    index?.removeWorker(id);
    if (index?.workerCount === 0) this.#indexes.delete(model);
  }
}

function blockSizeMismatch(worker: WorkerId, model: string, blockSize: number, expected: number): KvEventWarning {
  const message = `worker ${worker} stores KV blocks of ${blockSize} tokens where ${expected} were expected`;
  return { code: 'blockSizeMismatch', message, fields: ['blockSize'], worker, model };
}
