/**
 * The KV memory of a simulated engine: blocks of token ids in a tree, shared by prefix, evicted least recently used.
 *
 * A block is pinned while a running request uses it, idle afterwards; only idle blocks are evicted. Paths are unpinned
 * from the deepest block up, so a block never comes before its children in the idle order: the oldest idle block is
 * always a leaf, and every operation costs O(1) a block.
 */

/** A block as it is told to others: `id` is its name, never used again. */
export interface CachedBlock {
  readonly id: number;
  /** Its token ids, joined by commas. */
  readonly key: string;
}

/** Told what enters and leaves the cache, while it happens. */
export interface CacheObserver {
  /** Consecutive blocks, the first of them after `parent`, or at the start of the prompt. */
  stored(blocks: readonly CachedBlock[], parent: CachedBlock | undefined): void;
  removed(block: CachedBlock): void;
}

class Block implements CachedBlock {
  readonly children = new Map<string, Block>();
  pins = 0;

  constructor(
    readonly parent: Block | undefined,
    readonly id: number,
    readonly key: string,
  ) {}
}

/** The blocks one running request holds. */
export interface BlockHold {
  /** Leading blocks that were in the cache when the request was admitted. */
  readonly hitBlocks: number;
}

class Hold implements BlockHold {
  reserved = 0;

  constructor(
    readonly path: Block[],
    readonly hitBlocks: number,
  ) {}
}

export class BlockCache {
  readonly capacityBlocks: number;
  readonly #observer: CacheObserver | undefined;
  readonly #root = new Block(undefined, 0, '');
  #nextId = 1;
  /** Unpinned blocks, the longest unused first. */
  readonly #idle = new Set<Block>();
  #pinned = 0;
  #reserved = 0;

  constructor(capacityBlocks: number, observer?: CacheObserver) {
    this.capacityBlocks = capacityBlocks;
    this.#observer = observer;
  }

  /** Blocks that running requests use. Idle blocks do not count: they are given up when memory is needed. */
  get usedBlocks(): number {
    return this.#pinned + this.#reserved;
  }

  /** Blocks kept only in the hope of a later hit. */
  get idleBlocks(): number {
    return this.#idle.size;
  }

  /** How many leading blocks are in the cache. Changes nothing. */
  match(keys: readonly string[]): number {
    return this.#walk(keys).length;
  }

  /** Pins the cached prefix and reserves memory for the rest and for `newBlocks` more; undefined when there is no room. */
  acquire(keys: readonly string[], newBlocks: number): BlockHold | undefined {
    const path = this.#walk(keys);
    const needed = keys.length - path.length + newBlocks;
    for (const block of path) this.#pin(block);
    const hold = new Hold(path, path.length);
    if (this.usedBlocks + needed > this.capacityBlocks) {
      this.release(hold);
      return undefined;
    }
    while (this.usedBlocks + this.#idle.size + needed > this.capacityBlocks) this.#evictOldest();
    hold.reserved = needed;
    this.#reserved += needed;
    return hold;
  }

  /** Makes computed blocks visible to later requests; `keys` is the request's whole path. */
  commit(hold: BlockHold, keys: readonly string[]): void {
    const { path } = hold as Hold;
    let block = path.at(-1) ?? this.#root;
    // Below a new block everything is new: the new ones are consecutive.
    const stored: Block[] = [];
    for (const key of keys.slice(path.length)) {
      if ((hold as Hold).reserved === 0) break;
      let child = block.children.get(key);
      if (child === undefined) {
        child = new Block(block, this.#nextId++, key);
        block.children.set(key, child);
        stored.push(child);
      }
      // Another request may have computed the same block meanwhile: then this copy's memory is free again.
      this.#pin(child);
      (hold as Hold).reserved--;
      this.#reserved--;
      path.push(child);
      block = child;
    }
    const parent = stored[0]?.parent;
    if (stored.length > 0) this.#observer?.stored(stored, parent === this.#root ? undefined : parent);
  }

  /** Gives the request's memory back: what was committed stays as idle blocks, the rest is free. */
  release(hold: BlockHold): void {
    const { path, reserved } = hold as Hold;
    for (const block of path.reverse()) this.#unpin(block);
    path.length = 0;
    this.#reserved -= reserved;
    (hold as Hold).reserved = 0;
  }

  #walk(keys: readonly string[]): Block[] {
    const path: Block[] = [];
    let block: Block | undefined = this.#root;
    for (const key of keys) {
      block = block.children.get(key);
      if (block === undefined) break;
      path.push(block);
    }
    return path;
  }

  #pin(block: Block): void {
    if (block.pins++ > 0) return;
    this.#idle.delete(block);
    this.#pinned++;
  }

  #unpin(block: Block): void {
    if (--block.pins > 0) return;
    this.#pinned--;
    this.#idle.add(block);
  }

  #evictOldest(): void {
    const [oldest] = this.#idle;
    if (oldest === undefined) return;
    this.#idle.delete(oldest);
    oldest.parent?.children.delete(oldest.key);
    this.#observer?.removed(oldest);
  }
}

/** The keys of the full blocks of a token list; a partial block at the end has none. */
export function blockKeys(tokens: readonly number[], blockTokens: number): string[] {
  const keys: string[] = [];
  for (let end = blockTokens; end <= tokens.length; end += blockTokens) {
    keys.push(tokens.slice(end - blockTokens, end).join());
  }
  return keys;
}
