/**
 * The neutral form of the KV-cache events an engine publishes (CA-90). `kvroute/engines` decodes the wire forms of vLLM
 * and SGLang into it; `applyBatch` takes it. Events are data from outside: an event that breaks a rule below is counted
 * and skipped, the rest of its batch is applied, and nothing throws (B84, B87).
 */
import type { TokenIds } from './token-ids.js';

/**
 * The name an engine gives one of its blocks. Only equality matters, and equal integers are equal in every form:
 * a bigint or a decimal string (negative ones as 64-bit two's complement), bytes (a big-endian unsigned integer, at most
 * 64 of them), or a number that is a safe integer. A number beyond ±(2⁵³ − 1) has lost digits and is rejected.
 * Names below 2⁶⁴ are kept exactly, longer ones (SHA-256) by a 64-bit digest.
 */
export type BlockHash = bigint | number | string | Uint8Array;

/** One stored block with its own tokens, for engines that report blocks one by one. */
export interface KvBlock {
  readonly hash: BlockHash;
  /** As many ids as the block holds; all blocks of one event hold the same number. */
  readonly tokens: TokenIds;
}

interface StoredHeader {
  readonly type: 'stored';
  /** The block that precedes the first one. Absent or null: the first block starts the prompt. */
  readonly parent?: BlockHash | null | undefined;
  /** Where the blocks lie. Absent or `GPU` in any case counts; other media are counted and ignored. */
  readonly medium?: string | null | undefined;
}

/** Consecutive blocks now in the cache, with one list of tokens: `hashes.length × blockSize` ids. */
export interface KvStoredRun extends StoredHeader {
  readonly hashes: readonly BlockHash[];
  readonly tokens: TokenIds;
  /** Tokens in a block, an integer > 0. */
  readonly blockSize: number;
}

/** Consecutive blocks now in the cache, each with its own tokens. */
export interface KvStoredBlocks extends StoredHeader {
  readonly blocks: readonly KvBlock[];
  /** Tokens in a block, an integer > 0. Absent: the number of tokens of the first block. */
  readonly blockSize?: number | undefined;
}

/** Blocks that left the cache. Their children stay. */
export interface KvRemoved {
  readonly type: 'removed';
  readonly hashes: readonly BlockHash[];
  readonly medium?: string | null | undefined;
}

/** The cache of the worker is empty now, on every medium. */
export interface KvCleared {
  readonly type: 'cleared';
}

/** What happened to an engine's KV cache (CA-90). */
export type KvEvent = KvStoredRun | KvStoredBlocks | KvRemoved | KvCleared;

/** One message of an engine's event stream (CA-90). */
export interface KvEventBatch {
  /**
   * Its number in the stream, an integer from 0: as a number up to 2⁵³ − 1, as a bigint up to 2⁶³, or the 8 big-endian
   * bytes engines send. Anything else rejects the batch, a number above 2⁵³ − 1 included: it has lost digits (CA-92).
   */
  readonly sequence: number | bigint | Uint8Array;
  readonly events: readonly KvEvent[];
}
