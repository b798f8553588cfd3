/**
 * The scheduler of a simulated engine: continuous batching with chunked prefill. Each iteration prefills at most one
 * chunk of uncached prompt tokens and gives every request that is past its prefill one token; it lasts
 * `decodeStepMs` (when something decodes) plus the chunk's tokens divided by the prefill rate. A request waits until
 * there is a free running slot, room in the chunk, and KV memory for its prompt and answer.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { BlockCache, type BlockHold, blockKeys, type CacheObserver } from './block-cache.js';
import { answerToken, hashTokens } from './tokenizer.js';

export const defaultBlockTokens = 16;

export interface EngineOptions {
  /** Model name it serves. Default `demo`. */
  readonly model?: string;
  /** KV memory in tokens. Default 16 384. */
  readonly kvCapacityTokens?: number;
  /** Tokens in a KV block. Default 16. */
  readonly blockTokens?: number;
  /** Requests in the running batch at most. Default 16. */
  readonly maxRunningRequests?: number;
  /** Uncached prompt tokens computed in a second. Default 8 000. */
  readonly prefillTokensPerSecond?: number;
  /** Uncached prompt tokens of one iteration at most. Default 512. */
  readonly prefillChunkTokens?: number;
  /** Duration of an iteration without prefill, one token for every running request. Default 10. */
  readonly decodeStepMs?: number;
}

/** What became of a request. */
export interface GenerationResult {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
}

/** Receives a request's tokens, at most `maxNewTokens`, then `finished`, unless it was cancelled. */
export interface GenerationSink {
  token(text: string): void;
  finished(result: GenerationResult): void;
}

/** A request in the engine. */
export interface Generation {
  /** Takes it out of the engine: its slot and memory are free from now on. No-op once finished. */
  cancel(): void;
}

/** Lifetime totals. */
export interface EngineTotals {
  requests: number;
  cancelled: number;
  promptTokens: number;
  cachedTokens: number;
  generatedTokens: number;
}

/** A reading of the engine's load. */
export interface EngineLoad {
  readonly runningRequests: number;
  readonly waitingRequests: number;
  /** Prompt tokens of the waiting requests that are not in the cache now. */
  readonly waitingUncachedTokens: number;
  readonly usedTokens: number;
  readonly capacityTokens: number;
  /** Generated tokens per second over the last full window of decode steps; 0 before the first. */
  readonly tokensPerSecond: number;
  /** Cached share of all prompt tokens so far, 0–1. */
  readonly cacheHitRate: number;
}

class Task implements Generation {
  hold: BlockHold | undefined;
  cachedTokens = 0;
  uncachedLeft = 0;
  generated: number[] = [];
  readonly keys: readonly string[];
  readonly hash: number;

  constructor(
    readonly prompt: readonly number[],
    readonly maxNewTokens: number,
    readonly sink: GenerationSink,
    readonly isReceived: boolean,
    blockTokens: number,
    readonly cancel: () => void,
  ) {
    this.keys = blockKeys(prompt, blockTokens);
    this.hash = hashTokens(prompt);
  }
}

/** Decode steps over which the throughput is measured. */
const throughputWindowSteps = 32;

export class Engine {
  readonly options: Required<EngineOptions>;
  readonly totals: EngineTotals = { requests: 0, cancelled: 0, promptTokens: 0, cachedTokens: 0, generatedTokens: 0 };
  readonly #cache: BlockCache;
  readonly #waiting: Task[] = [];
  readonly #running = new Set<Task>();
  #wake: (() => void) | undefined;
  #stopped = false;
  #tokensPerSecond = 0;
  readonly #window = { steps: 0, tokens: 0, ms: 0 };

  constructor(options: EngineOptions = {}, observer?: CacheObserver) {
    this.options = {
      model: 'demo',
      kvCapacityTokens: 16_384,
      blockTokens: defaultBlockTokens,
      maxRunningRequests: 16,
      prefillTokensPerSecond: 8_000,
      prefillChunkTokens: 512,
      decodeStepMs: 10,
      ...options,
    };
    this.#cache = new BlockCache(Math.floor(this.options.kvCapacityTokens / this.options.blockTokens), observer);
    void this.#run();
  }

  /** Whether a request of this size fits into the KV memory at all. */
  accepts(promptTokens: number, maxNewTokens: number): boolean {
    return this.#blocksFor(promptTokens, maxNewTokens) <= this.#cache.capacityBlocks;
  }

  /**
   * Queues a request that `accepts` has accepted.
   *
   * @param isReceived the prompt's KV came from another engine: only its last token is computed
   */
  submit(prompt: readonly number[], maxNewTokens: number, sink: GenerationSink, isReceived = false): Generation {
    const { blockTokens } = this.options;
    const task: Task = new Task(prompt, maxNewTokens, sink, isReceived, blockTokens, () => this.#cancel(task));
    this.totals.requests++;
    this.#waiting.push(task);
    this.#wake?.();
    return task;
  }

  load(): EngineLoad {
    const { blockTokens } = this.options;
    let waitingUncachedTokens = 0;
    for (const task of this.#waiting) {
      waitingUncachedTokens += task.prompt.length - this.#cachedTokens(task, this.#cache.match(task.keys));
    }
    return {
      runningRequests: this.#running.size,
      waitingRequests: this.#waiting.length,
      waitingUncachedTokens,
      usedTokens: this.#cache.usedBlocks * blockTokens,
      capacityTokens: this.#cache.capacityBlocks * blockTokens,
      tokensPerSecond: this.#tokensPerSecond,
      cacheHitRate: this.totals.promptTokens === 0 ? 0 : this.totals.cachedTokens / this.totals.promptTokens,
    };
  }

  /** Ends the scheduler; requests in it get nothing more. */
  stop(): void {
    this.#stopped = true;
    this.#wake?.();
  }

  async #run(): Promise<void> {
    // Iterations are laid end to end on a clock of their own, so late timers do not make the engine slower.
    let clock = performance.now();
    while (!this.#stopped) {
      const prefilled = this.#prefillChunk();
      if (this.#running.size === 0) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
        clock = performance.now();
        continue;
      }
      const decoding = [...this.#running].filter((task) => task.uncachedLeft === 0 && task.generated.length > 0);
      const durationMs =
        (decoding.length > 0 ? this.options.decodeStepMs : 0) +
        (prefilled.tokens * 1000) / this.options.prefillTokensPerSecond;
      clock += durationMs;
      await sleep(Math.max(0, clock - performance.now()));
      for (const task of prefilled.complete) this.#emit(task);
      for (const task of decoding) this.#emit(task);
      if (decoding.length > 0) this.#measure(decoding.length, durationMs);
    }
  }

  /** Takes up to a chunk of uncached tokens, from running requests first, then from the queue as it admits them. */
  #prefillChunk(): { tokens: number; complete: Task[] } {
    let room = this.options.prefillChunkTokens;
    const complete: Task[] = [];
    const take = (task: Task) => {
      const part = Math.min(room, task.uncachedLeft);
      task.uncachedLeft -= part;
      room -= part;
      if (task.uncachedLeft === 0) complete.push(task);
    };
    for (const task of this.#running) if (task.uncachedLeft > 0 && room > 0) take(task);
    while (room > 0) {
      const task = this.#admitNext();
      if (task === undefined) break;
      take(task);
    }
    return { tokens: this.options.prefillChunkTokens - room, complete };
  }

  #admitNext(): Task | undefined {
    const task = this.#waiting[0];
    if (task === undefined || this.#running.size >= this.options.maxRunningRequests) return undefined;
    const newBlocks = this.#blocksFor(task.prompt.length, task.maxNewTokens) - task.keys.length;
    const hold = this.#cache.acquire(task.keys, newBlocks);
    if (hold === undefined) return undefined;
    task.hold = hold;
    task.cachedTokens = this.#cachedTokens(task, hold.hitBlocks);
    task.uncachedLeft = task.isReceived ? 1 : task.prompt.length - task.cachedTokens;
    this.totals.promptTokens += task.prompt.length;
    this.totals.cachedTokens += task.cachedTokens;
    this.#waiting.shift();
    this.#running.add(task);
    return task;
  }

  #emit(task: Task): void {
    if (!this.#running.has(task) || task.hold === undefined) return; // cancelled during this iteration
    if (task.generated.length === 0) this.#cache.commit(task.hold, task.keys);
    const { id, text } = answerToken(task.hash, task.generated.length);
    task.generated.push(id);
    this.totals.generatedTokens++;
    task.sink.token(text);
    if (task.generated.length < task.maxNewTokens) return;
    this.#cache.commit(task.hold, blockKeys([...task.prompt, ...task.generated], this.options.blockTokens));
    this.#leave(task);
    task.sink.finished({
      promptTokens: task.prompt.length,
      cachedTokens: task.cachedTokens,
      completionTokens: task.generated.length,
    });
  }

  #cancel(task: Task): void {
    const queued = this.#waiting.indexOf(task);
    if (queued < 0 && !this.#running.has(task)) return;
    if (queued >= 0) this.#waiting.splice(queued, 1);
    this.totals.cancelled++;
    this.#leave(task);
  }

  #leave(task: Task): void {
    this.#running.delete(task);
    if (task.hold !== undefined) this.#cache.release(task.hold);
    task.hold = undefined;
  }

  #measure(tokens: number, ms: number): void {
    const window = this.#window;
    window.steps++;
    window.tokens += tokens;
    window.ms += ms;
    if (window.steps < throughputWindowSteps) return;
    this.#tokensPerSecond = (window.tokens * 1000) / window.ms;
    Object.assign(window, { steps: 0, tokens: 0, ms: 0 });
  }

  /** The last prompt token is always computed: its output is the first token of the answer. */
  #cachedTokens(task: Task, hitBlocks: number): number {
    return Math.min(hitBlocks * this.options.blockTokens, task.prompt.length - 1);
  }

  #blocksFor(promptTokens: number, maxNewTokens: number): number {
    return Math.ceil((promptTokens + maxNewTokens) / this.options.blockTokens);
  }
}
