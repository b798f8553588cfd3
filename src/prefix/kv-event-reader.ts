/**
 * Checks events from outside and turns them into the form the index applies: engine names as 64-bit keys, the tokens of
 * all blocks in one array. An event is accepted whole or refused whole, before anything is changed (CA-90, B87).
 *
 * One reader is reused: what it returns is valid until it reads the next event.
 */
import { BlockKey } from './block-key.js';
import type { KvBlock } from './kv-event.js';
import { roomIn } from './scratch.js';
import { copyTokens } from './token-ids.js';

/** A checked event. `count` names are in `keys`, two lanes each. */
export class CheckedEvent {
  type: 'stored' | 'removed' | 'cleared' | 'ignored' = 'ignored';
  count = 0;
  /** Room for more than `count` names. */
  keys: Int32Array = new Int32Array(128);
  /** Without a parent the first block starts the prompt; with one, its key is in the two lanes. */
  hasParent = false;
  parentLow = 0;
  parentHigh = 0;
  /** `count × blockSize` ids. */
  tokens: Uint32Array = new Uint32Array(0);
  /** Tokens in a block. */
  blockSize = 0;
}

/** What an event may have; nothing is known of the values. */
interface EventFields {
  readonly type?: unknown;
  readonly medium?: unknown;
  readonly parent?: unknown;
  readonly hashes?: unknown;
  readonly tokens?: unknown;
  readonly blocks?: unknown;
  readonly blockSize?: unknown;
}

export class KvEventReader {
  readonly #event = new CheckedEvent();
  readonly #key = new BlockKey();

  /** The event in checked form, `ignored` for a medium other than the GPU; undefined when it must be refused. */
  read(event: unknown): CheckedEvent | undefined {
    if (typeof event !== 'object' || event === null) return undefined;
    const fields = event as EventFields;
    const { type } = fields;
    if (type !== 'stored' && type !== 'removed' && type !== 'cleared') return undefined;
    const checked = this.#event;
    checked.type = type;
    checked.count = 0;
    if (type === 'cleared') return checked;
    if (!isGpu(fields.medium)) {
      checked.type = 'ignored';
      return checked;
    }
    if (type === 'removed') return this.#readNames(fields.hashes) ? checked : undefined;
    return this.#readStored(fields) ? checked : undefined;
  }

  #readStored(fields: EventFields): boolean {
    const event = this.#event;
    const parent = fields.parent ?? undefined;
    event.hasParent = parent !== undefined;
    if (event.hasParent) {
      if (!this.#key.read(parent)) return false;
      event.parentLow = this.#key.low;
      event.parentHigh = this.#key.high;
    }
    const { blocks } = fields;
    if (blocks !== undefined) return Array.isArray(blocks) && this.#readBlocks(blocks, fields.blockSize);
    return this.#readNames(fields.hashes) && this.#readTokens(fields.tokens, fields.blockSize);
  }

  #readTokens(tokens: unknown, blockSize: unknown): boolean {
    const event = this.#event;
    if (!(tokens instanceof Uint32Array) && !Array.isArray(tokens)) return false;
    // An event without blocks says nothing, not even a block size.
    if (event.count === 0) return tokens.length === 0;
    if (!isSize(blockSize) || tokens.length !== event.count * blockSize) return false;
    event.blockSize = blockSize;
    if (tokens instanceof Uint32Array) {
      event.tokens = tokens;
      return true;
    }
    event.tokens = new Uint32Array(tokens.length);
    return copyTokens(tokens, 0, tokens.length, event.tokens) < 0;
  }

  #readBlocks(blocks: readonly unknown[], given: unknown): boolean {
    const event = this.#event;
    if (blocks.length === 0) return true;
    const { tokens: first } = (blocks[0] ?? {}) as Partial<KvBlock>;
    const size = given ?? lengthOf(first);
    // The size an event claims must be that of the first block before anything is reserved for all of them.
    if (!isSize(size) || !hasLength(first, size)) return false;
    event.keys = roomIn(event.keys, 2 * blocks.length);
    event.count = blocks.length;
    event.blockSize = size;
    const ids = new Uint32Array(blocks.length * size);
    for (let i = 0; i < blocks.length; i++) {
      const { hash, tokens } = (blocks[i] ?? {}) as Partial<KvBlock>;
      if (!hasLength(tokens, size) || !this.#key.read(hash)) return false;
      if (tokens instanceof Uint32Array) ids.set(tokens, i * size);
      else if (copyTokens(tokens, 0, size, ids.subarray(i * size)) >= 0) return false;
      this.#keep(i);
    }
    event.tokens = ids;
    return true;
  }

  #readNames(names: unknown): boolean {
    if (!Array.isArray(names)) return false;
    this.#event.keys = roomIn(this.#event.keys, 2 * names.length);
    for (let i = 0; i < names.length; i++) {
      if (!this.#key.read(names[i])) return false;
      this.#keep(i);
    }
    this.#event.count = names.length;
    return true;
  }

  #keep(index: number): void {
    this.#event.keys[2 * index] = this.#key.low;
    this.#event.keys[2 * index + 1] = this.#key.high;
  }
}

/** Absent means GPU (CA-90). Engines differ in the case they write. */
function isGpu(medium: unknown): boolean {
  return medium === undefined || medium === null || (typeof medium === 'string' && medium.toUpperCase() === 'GPU');
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function lengthOf(tokens: unknown): number | undefined {
  return tokens instanceof Uint32Array || Array.isArray(tokens) ? tokens.length : undefined;
}

function hasLength(tokens: unknown, size: number): tokens is Uint32Array | readonly number[] {
  return lengthOf(tokens) === size;
}
