/**
 * KV-cache events of vLLM and SGLang after MessagePack (or JSON) decoding, read into the neutral form of
 * `prefix/kv-event.ts` (CA-90). Both wire forms are read: positional arrays, whose trailing fields may be missing or
 * more than we know, and maps of named fields (B84). One bad event does not drop its batch; nothing throws (B87).
 * O(size of the batch).
 */
import type { BlockHash, KvEvent } from '../prefix/kv-event.js';
import { allOf } from '../runtime/all-of.js';
import { asRecord, own } from './payload.js';
import { readTokenIds } from './token-ids.js';

/** A decoded batch. Its sequence number travels beside it, in a frame of its own: give both to `applyBatch`. */
export interface DecodedKvEvents {
  /** The sound events, in order. */
  readonly events: readonly KvEvent[];
  /** Events that were refused; 1 when the batch itself is none. */
  readonly rejected: number;
  /** The engine's data-parallel rank, when the batch names one. */
  readonly dpRank?: number | undefined;
  /** The engine's clock at sending, seconds, when the batch has it. */
  readonly timestamp?: number | undefined;
}

/**
 * Decodes one batch: `[timestamp, events, rank?]`, or a map with `ts`, `events` and `data_parallel_rank`.
 *
 * Refused are events without a known type, lists of the wrong type, block hashes that are no integer in any form or a
 * number that has lost digits, and stored events whose tokens are not blocks × size (CA-90). Use a MessagePack decoder
 * that yields bigint for 64-bit integers. The medium is passed on for the index to judge; adapters are not (CA-106).
 */
export function decodeKvEventBatch(batch: unknown): DecodedKvEvents {
  const fields = fieldsOf(batch);
  const list = fields?.(1, 'events');
  if (fields === undefined || !Array.isArray(list)) return { events: [], rejected: 1 };
  const events: KvEvent[] = [];
  let rejected = 0;
  for (const item of list) {
    const event = decodeEvent(item);
    if (event === undefined) rejected += 1;
    else events.push(event);
  }
  const timestamp = fields(0, 'ts');
  const dpRank = fields(2, 'data_parallel_rank') ?? fields(2, 'attn_dp_rank');
  return {
    events,
    rejected,
    ...(isCount(dpRank) && { dpRank }),
    ...(Number.isFinite(timestamp) && { timestamp: timestamp as number }),
  };
}

/** A field by its position in the array form or its name in the map form. */
type Fields = (position: number, name: string) => unknown;

function fieldsOf(value: unknown): Fields | undefined {
  if (Array.isArray(value)) return (position) => value[position] as unknown;
  if (value instanceof Map) return (_, name) => value.get(name) as unknown;
  const record = asRecord(value);
  return record && ((_, name) => own(record, name));
}

function decodeEvent(value: unknown): KvEvent | undefined {
  const fields = fieldsOf(value);
  switch (fields?.(0, 'type') ?? fields?.(0, 'event_type')) {
    case 'BlockStored':
      return decodeStored(fields as Fields);
    case 'BlockRemoved':
      return decodeRemoved(fields as Fields);
    case 'AllBlocksCleared':
      return { type: 'cleared' };
    default:
      return undefined;
  }
}

function decodeStored(fields: Fields): KvEvent | undefined {
  const hashes = fields(1, 'block_hashes');
  const parent = fields(2, 'parent_block_hash') ?? undefined;
  const tokens = readTokenIds(fields(3, 'token_ids'));
  const blockSize = fields(4, 'block_size');
  const medium = fields(6, 'medium') ?? undefined;
  if (!isHashList(hashes) || tokens === undefined || !isCount(blockSize) || !isMedium(medium)) return undefined;
  if (parent !== undefined && !isHash(parent)) return undefined;
  if (blockSize === 0 || tokens.length !== hashes.length * blockSize) return undefined;
  return {
    type: 'stored',
    hashes,
    tokens,
    blockSize,
    ...(parent !== undefined && { parent }),
    ...(medium !== undefined && { medium }),
  };
}

function decodeRemoved(fields: Fields): KvEvent | undefined {
  const hashes = fields(1, 'block_hashes');
  const medium = fields(2, 'medium') ?? undefined;
  if (!isHashList(hashes) || !isMedium(medium)) return undefined;
  return { type: 'removed', hashes, ...(medium !== undefined && { medium }) };
}

function isHashList(value: unknown): value is readonly BlockHash[] {
  return Array.isArray(value) && allOf(value, isHash);
}

/** Names of at most 64 bytes, which are 155 digits; the index judges the rest. */
function isHash(value: unknown): value is BlockHash {
  if (typeof value === 'string') return /^-?[0-9]{1,155}$/.test(value);
  if (value instanceof Uint8Array) return value.length > 0 && value.length <= 64;
  return typeof value === 'bigint' || Number.isSafeInteger(value);
}

function isMedium(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string';
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
