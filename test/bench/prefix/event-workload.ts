/** Reads the workload events.evt of ../shared/bench/workloads.mjs: 16 workers, blocks of 16 tokens. */
import fs from 'node:fs';

export const blockSize = 16;
export const workerCount = 16;

/** What any correct index finds in it. */
export const oracle = { scoreSum: 160_821_847, memberships: 1_000_009, prototypeKeys: 746_693 } as const;

export interface StoredBlocks {
  readonly worker: number;
  /** The engine's names, and that of the parent of the first block. */
  readonly hashes: readonly bigint[];
  readonly parent: bigint | undefined;
  readonly tokens: Uint32Array;
}

export interface EventWorkload {
  readonly eventCount: number;
  /** Makes an event, as a decoder would: a million bigints in the heap would make every collection slow. */
  event(index: number): StoredBlocks;
  readonly blocks: number;
  readonly queries: readonly Uint32Array[];
  readonly queryBlocks: number;
  /** The file: kept, so that its memory is not counted as freed. */
  readonly words: Uint32Array;
}

const noParent = 0xffffffff;

export function readEventWorkload(file: string): EventWorkload {
  const bytes = fs.readFileSync(file);
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
  let at = 3;
  const starts = Array.from({ length: words[1] as number }, () => {
    const start = at;
    at += 3 + 2 * (words[at + 2] as number);
    return start;
  });
  const event = (index: number): StoredBlocks => {
    let from = starts[index] as number;
    const worker = words[from] as number;
    const parent = words[from + 1] as number;
    const count = words[from + 2] as number;
    from += 3;
    const tokens = new Uint32Array(count * blockSize);
    const hashes: bigint[] = [];
    for (let i = 0; i < count; i++, from += 2) {
      writeTokens(words[from] as number, tokens, i * blockSize);
      hashes.push(nameOf(words[from + 1] as number));
    }
    return { worker, hashes, parent: parent === noParent ? undefined : nameOf(parent), tokens };
  };
  const queries = Array.from({ length: words[2] as number }, () => {
    const count = words[at++] as number;
    const tokens = new Uint32Array(count * blockSize);
    for (let i = 0; i < count; i++) writeTokens(words[at++] as number, tokens, i * blockSize);
    return tokens;
  });
  return {
    eventCount: starts.length,
    event,
    blocks: starts.reduce((sum, start) => sum + (words[start + 2] as number), 0),
    queries,
    queryBlocks: queries.reduce((sum, { length }) => sum + length / blockSize, 0),
    words,
  };
}

/** The token ids of a block of the workload, by the workload's own rule. */
function writeTokens(content: number, target: Uint32Array, offset: number): void {
  for (let i = 0; i < blockSize; i++) {
    const position = (Math.imul(content, blockSize) + i) >>> 0;
    target[offset + i] = ((Math.imul(position, 0x9e3779b1) ^ (position >>> 15)) >>> 0) % 128_000;
  }
}

/** A 64-bit engine name for a block of the workload. */
function nameOf(path: number): bigint {
  let a = Math.imul(path, 0x9e3779b1);
  let b = Math.imul(path ^ 0x5bd1e995, 0x85ebca6b);
  a = Math.imul(a ^ (a >>> 15), 0x2c1b3c6d);
  b = Math.imul(b ^ (b >>> 13), 0x297a2d39);
  return (BigInt((a ^ (a >>> 12)) >>> 0) << 32n) | BigInt((b ^ (b >>> 15)) >>> 0);
}
