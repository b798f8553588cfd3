/**
 * The two indexes that are compared, behind one face. Both are given what a decoder gives: token ids and bigint names.
 * The package takes that as it is; for the prototype the blocks are hashed by its own function and the names split into
 * the 32-bit lanes it wants, so both are timed for the same task.
 */
import type { KvEventFeed as Feed, KvBatchResult } from '../../../src/prefix/kv-event-feed.js';
import { KvEventFeed } from '../../../src/prefix/kv-event-feed.js';
import type { KvEventIndex } from '../../../src/prefix/kv-event-index.js';
import { TokenHash } from '../../../src/prefix/token-hash.js';
import { blockSize, type StoredBlocks, workerCount } from './event-workload.js';

export interface Subject {
  store(event: StoredBlocks): void;
  /** Hashes all blocks of a request; the result stands for them. */
  hash(tokens: Uint32Array): number;
  /** Finds the overlaps and touches what was read; returns Σ (worker + 1) × overlap. */
  query(tokens: Uint32Array): number;
  remove(event: StoredBlocks): void;
  /** Removes a worker; each call does a bounded piece until nothing is left. */
  removeWorker(worker: number): boolean;
  readonly memberships: number;
  /** Distinct blocks; the prototype's keys beside it. */
  readonly blocks: number;
  readonly keys: number | undefined;
}

const model = 'm';

export class PackageSubject implements Subject {
  readonly #feed: Feed = new KvEventFeed();
  readonly #ids = Array.from({ length: workerCount }, (_, i) => `http://10.0.0.${i}:8000`);
  readonly #numbers = new Map(this.#ids.map((id, i) => [id, i]));
  readonly #sequences = new Array<number>(workerCount).fill(0);
  readonly #hash = new TokenHash();
  #isRemoved = false;

  constructor() {
    for (const id of this.#ids) this.#feed.addWorker(id, [model]);
  }

  store({ worker, hashes, parent, tokens }: StoredBlocks): void {
    this.#apply(worker, { type: 'stored', hashes, parent, tokens, blockSize });
  }

  hash(tokens: Uint32Array): number {
    this.#hash.start(1, 2);
    for (let from = 0; from < tokens.length; from += blockSize) {
      this.#hash.mix(tokens, from, from + blockSize);
      this.#hash.close();
    }
    return this.#hash.low;
  }

  query(tokens: Uint32Array): number {
    const index = this.#index;
    const match = index.overlaps(tokens, 0);
    index.touch(match, 0);
    let sum = 0;
    for (let i = 0; i < match.count; i++) {
      sum += ((this.#numbers.get(match.worker(i)) as number) + 1) * match.overlap(i);
    }
    return sum;
  }

  remove({ worker, hashes }: StoredBlocks): void {
    this.#apply(worker, { type: 'removed', hashes });
  }

  removeWorker(worker: number): boolean {
    if (!this.#isRemoved) this.#feed.removeWorker(this.#ids[worker] as string);
    this.#isRemoved = true;
    const end = performance.now() + 0.5;
    return this.#feed.maintain(0, { spent: () => performance.now() >= end });
  }

  get memberships(): number {
    return this.#index.memberships;
  }

  get blocks(): number {
    return this.#index.blockCount;
  }

  readonly keys: undefined;

  get #index(): KvEventIndex {
    return this.#feed.indexFor(model) as KvEventIndex;
  }

  #apply(worker: number, event: Parameters<Feed['applyBatch']>[1]['events'][number]): KvBatchResult {
    const sequence = this.#sequences[worker] as number;
    this.#sequences[worker] = sequence + 1;
    return this.#feed.applyBatch(this.#ids[worker] as string, { sequence, events: [event] }, 0);
  }
}

/** What is used of the prototype's exports. */
interface Prototype {
  hash16(tokens: Uint32Array, offset: number, target: Int32Array, at: number): void;
  requestHashes(tokens: Uint32Array, blockSize: number): Int32Array;
  RevMap: new () => object;
  PosIndex: new (
    jump: number,
  ) => {
    store(
      worker: number,
      names: object,
      parentLow: number,
      parentHigh: number,
      hasParent: boolean,
      blocks: Int32Array,
      offset: number,
      count: number,
    ): boolean;
    match(hashes: Int32Array): { readonly workers: readonly number[]; readonly scores: readonly number[] };
    remove(worker: number, names: object, low: number, high: number): void;
    removeWorker(worker: number, names: object): void;
    readonly sizes: Float64Array;
    readonly keys: number;
    readonly entries: number;
  };
}

export class PrototypeSubject implements Subject {
  readonly #prototype: Prototype;
  readonly #index: InstanceType<Prototype['PosIndex']>;
  readonly #names: object[];
  #blocks = new Int32Array(4 * 512);
  readonly #bytes = new DataView(new ArrayBuffer(8));

  constructor(prototype: Prototype) {
    this.#prototype = prototype;
    this.#index = new prototype.PosIndex(64);
    this.#names = Array.from({ length: workerCount }, () => new prototype.RevMap());
  }

  static async load(file: string): Promise<PrototypeSubject> {
    return new PrototypeSubject((await import(file)) as Prototype);
  }

  store({ worker, hashes, parent, tokens }: StoredBlocks): void {
    const blocks = this.#blocks;
    for (let i = 0; i < hashes.length; i++) {
      this.#prototype.hash16(tokens, i * blockSize, blocks, i * 4);
      this.#bytes.setBigUint64(0, hashes[i] as bigint);
      blocks[i * 4 + 2] = this.#bytes.getInt32(0);
      blocks[i * 4 + 3] = this.#bytes.getInt32(4);
    }
    let parentLow = 0;
    let parentHigh = 0;
    if (parent !== undefined) {
      this.#bytes.setBigUint64(0, parent);
      parentLow = this.#bytes.getInt32(0);
      parentHigh = this.#bytes.getInt32(4);
    }
    const names = this.#names[worker] as object;
    const isStored = this.#index.store(
      worker,
      names,
      parentLow,
      parentHigh,
      parent !== undefined,
      blocks,
      0,
      hashes.length,
    );
    if (!isStored) throw new Error('parent unknown');
  }

  hash(tokens: Uint32Array): number {
    return this.#prototype.requestHashes(tokens, blockSize)[0] as number;
  }

  query(tokens: Uint32Array): number {
    const { workers, scores } = this.#index.match(this.#prototype.requestHashes(tokens, blockSize));
    let sum = 0;
    for (let i = 0; i < workers.length; i++) sum += ((workers[i] as number) + 1) * (scores[i] as number);
    return sum;
  }

  remove({ worker, hashes }: StoredBlocks): void {
    const names = this.#names[worker] as object;
    for (const hash of hashes) {
      this.#bytes.setBigUint64(0, hash);
      this.#index.remove(worker, names, this.#bytes.getInt32(0), this.#bytes.getInt32(4));
    }
  }

  removeWorker(worker: number): boolean {
    this.#index.removeWorker(worker, this.#names[worker] as object);
    return false;
  }

  get memberships(): number {
    return this.#index.sizes.reduce((sum, size) => sum + size, 0);
  }

  get blocks(): number {
    return this.#index.entries;
  }

  get keys(): number {
    return this.#index.keys;
  }
}
