/**
 * Request sizes that lead `bucket` to given ranges at its next check (BU-10). Each range but the last is closed by the
 * size at which its worker's share is reached, so copies of its upper end, as many as make a share, produce it; one
 * large request rounds the total up to the same share for everybody.
 */
import { UnmappableRow } from './row.js';

/** @param highs the upper ends in order; null, the last one, is open */
export function sizesFor(highs: readonly (number | null)[]): number[] {
  const ends = highs.slice(0, -1) as number[];
  // A share of 0 gives every worker one size (BU-11, the last line).
  if (highs.at(-1) === null && ends.every((high, i) => high === i)) return new Array<number>(highs.length).fill(0);
  if (highs.at(-1) !== null || ends.some((high, i) => !(high > (ends[i - 1] ?? -1) + 1))) {
    throw new UnmappableRow('ranges must ascend, hold more than one size each and end open');
  }
  if (ends.length === 0) return [];
  const share = (highs.length + 1) * Math.max(...ends);
  const sizes = ends.flatMap((high) => new Array<number>(Math.ceil(share / high)).fill(high));
  const sum = sizes.reduce((total, size) => total + size, 0);
  return [...sizes, highs.length * share - sum];
}
