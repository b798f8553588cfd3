/**
 * Which worker holds which blocks of KV cache, learned from the engines' own events (section F of spec 05): one index for
 * each model, shared by all its `cache_aware` pools.
 *
 * A block is its chain: the hash of everything up to its end (`BlockTable`). The workers that hold it are one shared set
 * (`WorkerSets`). Engine names only lead from a removal or a parent to a block; each worker has its own. A worker holds a
 * block from the event that stored it until the last of the names that lead to it is removed; when the engine gives a
 * name to another block, the name leads there from then on and the former block stays (CA-90).
 *
 * Storing and removing are O(1) a block, a query O(blocks matched). Removing or clearing a worker is O(1): its slot in
 * the sets is retired, unreadable at once, and given again only when a bounded clean-up has reached all its blocks
 * (LB-5, CA-95). Memory: about 45 bytes a block and 25 a name. Calls cannot throw for what an engine sent.
 */
import { checkNumber } from '../errors.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import { BlockChain } from './block-chain.js';
import { noBlock } from './block-table.js';
import type { CheckedEvent } from './kv-event-reader.js';
import { KvHoldings, type Walk } from './kv-holdings.js';
import { type KvMatch, KvOverlaps } from './kv-overlaps.js';
import { checkedLimits, expirySecond, type KvPruneLimits, pruneBlocks } from './kv-prune.js';
import { IndexedWorker } from './kv-worker.js';
import { roomIn } from './scratch.js';
import { checkTokenList, type TokenIds } from './token-ids.js';
import { nobody } from './worker-sets.js';

/** Pruning is checked this often (CA-96). */
const pruneIntervalMs = 30_000;

/**
 * Which worker holds which blocks, as the engines' events tell (CA-81 to CA-87). A `KvEventFeed` makes it and keeps it;
 * `indexFor` gives it for reading. All times are milliseconds on the clock of the feed's calls.
 */
export class KvEventIndex {
  /** Bounds on age and number, both off by default (CA-96). May be replaced at any time. */
  limits: KvPruneLimits;
  readonly #holdings: KvHoldings = new KvHoldings();
  readonly #workers = new Map<WorkerId, IndexedWorker>();
  /** Clean-ups of retired slots, and a pruning under way: each is a walk in bounded pieces. */
  readonly #work: Walk[] = [];
  #chain = new BlockChain(1);
  readonly #match: KvOverlaps = new KvOverlaps((slot) => this.#holdings.workerOf(slot)?.id);
  /** The blocks of the event at hand. One that the worker did not hold before is there as its complement, so below 0. */
  #applied: Int32Array = new Int32Array(128);
  /** The worker whose block size was learned last, which is the effective one (CA-91). */
  #learner: IndexedWorker | undefined;
  /** How often a block size was learned. */
  #learned = 0;
  /** The latest second at which a block was stored or read. */
  #lastTouchSecond = 0;
  #nextPruneAt: number;

  /** @throws TypeError for limits that are no object, and a time that is no number */
  constructor(limits: KvPruneLimits, now: number) {
    checkNumber(now, 'now');
    this.limits = checkedLimits(limits);
    this.#nextPruneAt = now + pruneIntervalMs;
  }

  /** Pairs of a worker and a block it holds. */
  get memberships(): number {
    return this.#holdings.memberships;
  }

  /** Blocks somebody holds; until the clean-up has come by, those of removed workers count, too. */
  get blockCount(): number {
    return this.#holdings.blocks.size;
  }

  /** Workers whose events it takes. */
  get workerCount(): number {
    return this.#workers.size;
  }

  /** Blocks one worker holds; 0 for one that is not known. */
  blocksOf(worker: WorkerId): number {
    return this.#workers.get(worker)?.blocks ?? 0;
  }

  /** The effective block size in tokens, learned from the engines (CA-91); undefined before the first stored block. */
  get blockSize(): number | undefined {
    return this.#learner?.blockSize;
  }

  /** Whether there is nothing to find: an empty index leaves token requests to the token tree (CA-80). */
  isEmpty(now: number): boolean {
    return this.#holdings.memberships === 0 || this.#lastTouchSecond < expirySecond(this.limits, now);
  }

  /**
   * Applies a checked `stored` event of at least one block.
   *
   * @internal only the feed has checked events
   * @returns the number of blocks that were ignored because the worker does not hold their parent
   */
  stored(id: WorkerId, event: CheckedEvent, now: number): number {
    const worker = this.#subscribe(id);
    this.#learn(worker, event.blockSize);
    const second = Math.floor(now / 1000);
    const expiry = expirySecond(this.limits, now);
    const chain = this.#chainOf(event.blockSize);
    let parent = noBlock;
    if (event.hasParent) {
      parent = worker.names.get(event.parentLow, event.parentHigh);
      if (parent === noBlock || this.#holdings.blocks.touchSecond(parent) < expiry) return event.count;
      chain.startAfter(this.#holdings.blocks.low(parent), this.#holdings.blocks.high(parent));
    }
    // First all chains, then all blocks, then all names: nearly every look-up waits for memory, and in short loops the
    // processor has several of them under way.
    const lanes = chain.lanesOf(event.tokens, event.count);
    this.#applied = roomIn(this.#applied, event.count);
    const applied = this.#applied;
    for (let i = 0; i < event.count; i++) {
      const block = this.#blockFor(parent, lanes[2 * i] as number, lanes[2 * i + 1] as number, second, expiry);
      applied[i] = this.#holdings.hold(worker, block) ? ~block : block;
      parent = block;
    }
    for (let i = 0; i < event.count; i++) {
      const block = applied[i] as number;
      const isNew = block < 0;
      worker.name(event.keys[2 * i] as number, event.keys[2 * i + 1] as number, isNew ? ~block : block, isNew);
    }
    this.#lastTouchSecond = second;
    this.#step();
    return 0;
  }

  /**
   * Applies a checked `removed` event. Names that lead nowhere are ignored; children stay (CA-90).
   *
   * @internal only the feed has checked events
   */
  removed(id: WorkerId, event: CheckedEvent): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    this.#applied = roomIn(this.#applied, event.count);
    const applied = this.#applied;
    for (let i = 0; i < event.count; i++) {
      applied[i] = worker.names.delete(event.keys[2 * i] as number, event.keys[2 * i + 1] as number);
    }
    for (let i = 0; i < event.count; i++) {
      if (applied[i] !== noBlock) this.#holdings.loseName(worker, applied[i] as number);
    }
    this.#step();
  }

  /** Drops all blocks of a worker: its cache is empty (CA-90). Unknown ids are ignored, here and below. */
  cleared(id: WorkerId): void {
    const worker = this.#workers.get(id);
    if (worker === undefined || worker.isClean) return;
    this.#retire(worker);
    this.#holdings.admit(worker);
  }

  /** Drops all blocks of a worker and what its subscription learned; its next stored block teaches anew (CA-91). */
  restarted(id: WorkerId): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    this.cleared(id);
    this.#unlearn(worker);
  }

  /** Forgets a worker. O(1); its memory is reclaimed in steps (CA-95). */
  removeWorker(id: WorkerId): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    this.#workers.delete(id);
    this.#unlearn(worker);
    this.#retire(worker);
  }

  /**
   * The overlap of every worker with the request (CA-82). Reads only: `touch` the match when it has led to a decision.
   *
   * @throws TypeError on `tokens` when a plain list holds something else than ids, as far as it is read (LB-42)
   */
  overlaps(tokens: TokenIds, now: number): KvMatch {
    checkTokenList(tokens);
    const match = this.#match;
    const blockSize = this.blockSize ?? 0;
    const requestBlocks = blockSize === 0 ? 0 : Math.floor(tokens.length / blockSize);
    match.start(blockSize, requestBlocks);
    // Blocks of removed workers are found until they are cleaned up, though nobody holds them.
    if (this.#holdings.memberships > 0) this.#walk(tokens, now, match);
    return match;
  }

  /** Marks the blocks the match has read as used now, so that pruning spares them (CA-96). */
  touch(match: KvMatch, now: number): void {
    if (match !== this.#match) return;
    const second = Math.floor(now / 1000);
    const { path, pathLength } = this.#match;
    for (let i = 0; i < pathLength; i++) {
      const block = path[i] as number;
      if (!this.#holdings.blocks.isDetached(block)) this.#holdings.blocks.setTouchSecond(block, second);
    }
    if (pathLength > 0) this.#lastTouchSecond = second;
  }

  /** Cleans up after removed workers and prunes every 30 s, in bounded steps; returns whether work is left (LB-5). */
  maintain(now: number, budget: MaintenanceBudget): boolean {
    // Pruning counts blocks, so it waits for the clean-ups.
    if (now >= this.#nextPruneAt && this.#work.length === 0) {
      this.#nextPruneAt = now + pruneIntervalMs;
      this.#work.push(pruneBlocks(this.#holdings, () => this.#workers.values(), this.limits, now));
    }
    while (this.#work.length > 0 && !budget.spent()) this.#step();
    return this.#work.length > 0;
  }

  /** Bytes held, for measuring. */
  get byteLength(): number {
    let bytes = this.#holdings.blocks.byteLength;
    for (const worker of this.#workers.values()) bytes += worker.names.byteLength;
    return bytes;
  }

  #walk(tokens: TokenIds, now: number, match: KvOverlaps): void {
    const { blocks } = this.#holdings;
    const expiry = expirySecond(this.limits, now);
    const { blockSize, requestBlocks } = match;
    const chain = this.#chainOf(blockSize);
    let parent = noBlock;
    let holders = nobody;
    for (let i = 0; i < requestBlocks; i++) {
      chain.next(tokens);
      const block = i === 0 ? blocks.find(chain.low, chain.high) : blocks.findAfter(parent, chain.low, chain.high);
      if (block === noBlock || blocks.touchSecond(block) < expiry) {
        match.finish(i);
        return;
      }
      match.visit(block);
      const set = blocks.holders(block);
      if (i === 0) match.follow(this.#holdings.sets.words(set));
      else if (set !== holders && !match.narrow(this.#holdings.sets.words(set), i)) return;
      holders = set;
      parent = block;
    }
    match.finish(requestBlocks);
  }

  /** The running chain, at the start of a prompt. */
  #chainOf(blockSize: number): BlockChain {
    if (this.#chain.blockSize !== blockSize) this.#chain = new BlockChain(blockSize);
    else this.#chain.start();
    return this.#chain;
  }

  /** The block of the chain, touched now; a new one when there is none or it has expired. */
  #blockFor(parent: number, low: number, high: number, second: number, expiry: number): number {
    const { blocks } = this.#holdings;
    let block = parent === noBlock ? blocks.find(low, high) : blocks.findAfter(parent, low, high);
    if (block !== noBlock && blocks.touchSecond(block) < expiry) {
      this.#holdings.detach(block);
      block = noBlock;
    }
    if (block === noBlock) block = blocks.add(low, high, second);
    else blocks.setTouchSecond(block, second);
    if (parent !== noBlock) blocks.setNext(parent, block);
    return block;
  }

  #subscribe(id: WorkerId): IndexedWorker {
    let worker = this.#workers.get(id);
    if (worker === undefined) {
      worker = new IndexedWorker(id);
      this.#holdings.admit(worker);
      this.#workers.set(id, worker);
    }
    return worker;
  }

  /** Makes all the worker holds unreadable at once; a small worker is cleaned up at once, too. */
  #retire(worker: IndexedWorker): void {
    this.#work.push(this.#holdings.retire(worker));
    this.#step();
  }

  /** One piece of the work at hand. Events do one, so that a host that never calls `maintain` stays bounded (B23). */
  #step(): void {
    const work = this.#work.at(-1);
    if (work?.next().done === true) this.#work.pop();
  }

  #learn(worker: IndexedWorker, blockSize: number): void {
    if (worker.blockSize !== 0) return;
    worker.blockSize = blockSize;
    worker.learnedAt = ++this.#learned;
    this.#learner = worker;
  }

  #unlearn(worker: IndexedWorker): void {
    worker.blockSize = 0;
    if (this.#learner !== worker) return;
    this.#learner = undefined;
    for (const other of this.#workers.values()) {
      if (other.blockSize !== 0 && other.learnedAt > (this.#learner?.learnedAt ?? 0)) this.#learner = other;
    }
  }
}
