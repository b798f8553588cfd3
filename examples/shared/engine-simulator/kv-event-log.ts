/**
 * The KV-cache events of a simulated engine, in the shape of vLLM's and SGLang's but as lines of JSON over HTTP: a line
 * is `[sequence, [timestamp, events, rank]]`. The last batches are kept, so that a subscriber can ask for what it missed.
 */
import type { ServerResponse } from 'node:http';
import type { CachedBlock, CacheObserver } from './block-cache.js';

const keptBatches = 1_000;

export class KvEventLog implements CacheObserver {
  /** Batches that no subscriber will see, unless it asks for a replay. */
  toLose = 0;
  readonly #blockTokens: number;
  #next = 0;
  #pending: unknown[] = [];
  /** The last lines; the newest has the number before `#next`. */
  #kept: string[] = [];
  readonly #subscribers = new Set<ServerResponse>();

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens;
  }

  stored(blocks: readonly CachedBlock[], parent: CachedBlock | undefined): void {
    const hashes = blocks.map((block) => block.id);
    const tokens = blocks.flatMap((block) => block.key.split(',').map(Number));
    this.#add(['BlockStored', hashes, parent?.id ?? null, tokens, this.#blockTokens, null, 'GPU']);
  }

  removed(block: CachedBlock): void {
    this.#add(['BlockRemoved', [block.id], 'GPU']);
  }

  /**
   * Streams events to a response from now on, or from batch number `from` on. Answers 410 when that cannot be had: it is
   * no longer kept, or is not the next one yet.
   */
  subscribe(res: ServerResponse, from: number | undefined): void {
    const replayed = from === undefined ? 0 : this.#next - from;
    if (!(replayed >= 0 && replayed <= this.#kept.length)) {
      res.writeHead(410).end();
      return;
    }
    res.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
    for (const line of this.#kept.slice(this.#kept.length - replayed)) res.write(line);
    this.#subscribers.add(res);
    res.once('close', () => this.#subscribers.delete(res));
  }

  /** Forgets what could be replayed. */
  forget(): void {
    this.#kept = [];
  }

  /** Breaks the connections of all subscribers. */
  breakOff(): void {
    for (const subscriber of this.#subscribers) subscriber.destroy();
  }

  /** Events of one step go out together. */
  #add(event: unknown[]): void {
    if (this.#pending.push(event) === 1) queueMicrotask(() => this.#send());
  }

  #send(): void {
    const line = `${JSON.stringify([this.#next++, [Date.now() / 1_000, this.#pending, 0]])}\n`;
    this.#pending = [];
    this.#kept.push(line);
    if (this.#kept.length > keptBatches) this.#kept.shift();
    if (this.toLose > 0) this.toLose--;
    else for (const subscriber of this.#subscribers) subscriber.write(line);
  }
}
