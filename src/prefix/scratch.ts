/** Scratch arrays: room for the numbers of one call, kept for the next. */

/** Integers of an array that is kept at most; larger ones serve a single call. */
const largestKept = 32_768;

/** The array when it has room for `length` integers and may be kept, else a new one. What it held is lost. */
export function roomIn(scratch: Int32Array, length: number): Int32Array {
  if (scratch.length >= length && scratch.length <= largestKept) return scratch;
  return new Int32Array(Math.max(length, 128));
}
