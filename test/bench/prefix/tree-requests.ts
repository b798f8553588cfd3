/** Reads the workload files of ../shared/bench/workloads.mjs. */
import fs from 'node:fs';

export type Request = string | Uint32Array;

export interface Requests {
  readonly count: number;
  at(index: number): Request;
}

/** A `.str` or `.tok` file: after magic and count, each request's length and then its bytes or ids. */
export function readRequests(file: string): Requests {
  const isText = file.endsWith('.str');
  const bytes = fs.readFileSync(file);
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
  const count = bytes.readUInt32LE(4);
  const starts = new Float64Array(count);
  const lengths = new Int32Array(count);
  let at = isText ? 8 : 2;
  for (let i = 0; i < count; i++) {
    const length = isText ? bytes.readUInt32LE(at) : (words[at] as number);
    at += isText ? 4 : 1;
    starts[i] = at;
    lengths[i] = length;
    at += length;
  }
  return {
    count,
    at: (index) => {
      const start = starts[index] as number;
      const end = start + (lengths[index] as number);
      return isText ? bytes.toString('utf8', start, end) : words.subarray(start, end);
    },
  };
}

/** Ids per block of a Mooncake trace. */
const traceBlock = 512;

/** A `.mck` file: the input length and block numbers of each request; a block's ids follow from its number. */
export function mooncakeRequests(file: string): Requests {
  const bytes = fs.readFileSync(file);
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
  const count = words[1] as number;
  const starts: number[] = [];
  for (let i = 0, at = 2; i < count; i++) {
    starts.push(at);
    at += 2 + (words[at + 1] as number);
  }
  const tokens = new Uint32Array(1 << 20);
  return {
    count,
    at: (index) => {
      const at = starts[index] as number;
      const length = words[at] as number;
      for (let i = 0; i < length; i++) {
        const block = words[at + 2 + Math.floor(i / traceBlock)] as number;
        const x = (block * traceBlock + (i % traceBlock)) >>> 0;
        tokens[i] = ((Math.imul(x, 0x9e3779b1) ^ (x >>> 15)) >>> 0) % 128_000;
      }
      return tokens.subarray(0, length);
    },
  };
}

/** measure.mjs reads no more ids of a request. */
const maxTraceTokens = 130_000;

/** Turns a Mooncake trace into a `.mck` file, as workloads.mjs does. */
export function compactTrace(trace: string, file: string): void {
  const requests = fs
    .readFileSync(trace, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { input_length: number; hash_ids: number[] });
  const words = [0x314b434d, requests.length];
  for (const { input_length: length, hash_ids: blocks } of requests) {
    words.push(Math.min(length, maxTraceTokens), blocks.length, ...blocks);
  }
  fs.writeFileSync(file, Buffer.from(Uint32Array.from(words).buffer));
}
