/**
 * 32-bit words compared and copied in bulk. Where the runtime has a `Buffer` (Node, Bun, Deno) its memcmp and memcpy
 * do the work on long runs; elsewhere loops give the same results. This file is all the package knows of `Buffer`.
 */

/** The part of Node's Buffer in use. */
interface ByteView {
  /** 0 when the bytes of this view from `start` to `end` equal those of `target`. */
  compare(target: ByteView, targetStart: number, targetEnd: number, start: number, end: number): number;
  copy(target: ByteView, targetStart: number, start: number, end: number): number;
}

interface BufferScope {
  readonly Buffer?: { from(memory: ArrayBufferLike, byteOffset: number, byteLength: number): ByteView };
}

/** Up to this many words a loop is faster than a call. */
const shortRun = 96;

/** An array of words with a byte view beside it. */
export class Words {
  readonly at: Uint32Array;
  readonly #bytes: ByteView | undefined;

  constructor(words: Uint32Array) {
    this.at = words;
    const scope = globalThis as unknown as BufferScope;
    this.#bytes = scope.Buffer?.from(words.buffer, words.byteOffset, words.byteLength);
  }

  /** How many of the `count` words from `from` on equal those of `other` from `otherFrom` on, before the first that does not. */
  agreement(from: number, other: Words, otherFrom: number, count: number): number {
    let agreed = 0;
    const bytes = this.#bytes;
    const otherBytes = other.#bytes;
    if (count > shortRun && bytes !== undefined && otherBytes !== undefined) {
      if (isEqual(bytes, from, otherBytes, otherFrom, count)) return count;
      let step = shortRun;
      while (agreed + step < count && isEqual(bytes, from + agreed, otherBytes, otherFrom + agreed, step)) {
        agreed += step;
        step *= 2;
      }
      // The first difference is within `step` words from here.
      step = Math.min(step, count - agreed);
      while (step > shortRun) {
        const half = step >> 1;
        if (isEqual(bytes, from + agreed, otherBytes, otherFrom + agreed, half)) {
          agreed += half;
          step -= half;
        } else {
          step = half;
        }
      }
    }
    return agreed + agreementByLoop(this.at, from + agreed, other.at, otherFrom + agreed, count - agreed);
  }

  /** Copies `count` words of `source`, from `from` on, to `to`. */
  copyFrom(to: number, source: Words, from: number, count: number): void {
    const bytes = this.#bytes;
    const sourceBytes = source.#bytes;
    if (count <= shortRun) {
      for (let i = 0; i < count; i++) this.at[to + i] = source.at[from + i] as number;
    } else if (bytes !== undefined && sourceBytes !== undefined) {
      sourceBytes.copy(bytes, to * 4, from * 4, (from + count) * 4);
    } else {
      this.at.set(source.at.subarray(from, from + count), to);
    }
  }
}

function isEqual(bytes: ByteView, from: number, otherBytes: ByteView, otherFrom: number, count: number): boolean {
  return bytes.compare(otherBytes, otherFrom * 4, (otherFrom + count) * 4, from * 4, (from + count) * 4) === 0;
}

/** Four words a turn, which is about twice as fast as one. */
function agreementByLoop(a: Uint32Array, aFrom: number, b: Uint32Array, bFrom: number, count: number): number {
  let i = 0;
  for (; i + 4 <= count; i += 4) {
    const first =
      ((a[aFrom + i] as number) ^ (b[bFrom + i] as number)) |
      ((a[aFrom + i + 1] as number) ^ (b[bFrom + i + 1] as number));
    const second =
      ((a[aFrom + i + 2] as number) ^ (b[bFrom + i + 2] as number)) |
      ((a[aFrom + i + 3] as number) ^ (b[bFrom + i + 3] as number));
    if ((first | second) !== 0) break;
  }
  while (i < count && a[aFrom + i] === b[bFrom + i]) i++;
  return i;
}
