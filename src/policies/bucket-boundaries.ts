/**
 * The size ranges of `bucket`: each worker owns an inclusive range of request sizes, ascending and without gaps, the
 * last one open (BU-2). Pure functions. Sizes are characters or tokens.
 */
import { checkNumber, refuse } from '../errors.js';

/** The request sizes a worker owns, in characters or tokens (BU-2). */
export interface BucketRange {
  /** Smallest, inclusive. */
  readonly low: number;
  /** Largest, inclusive; `Infinity` for the last worker. */
  readonly high: number;
}

/** The result of a check that changed something. */
export interface BucketAdjustment {
  /** Units of recent traffic per worker; compared with at the next check. */
  readonly share: number;
  /** One a worker, in order. */
  readonly ranges: readonly BucketRange[];
}

/** Sizes below this are split evenly before any traffic was seen (BU-4, CF-110). */
const baseRange = 4096;

/** The even split that a fleet starts with, and starts anew whenever a worker comes or goes (BU-4, BU-5). */
export function initialBucketRanges(workerCount: number): BucketRange[] {
  const gap = Math.max(1, Math.floor(baseRange / workerCount));
  return Array.from({ length: workerCount }, (_, i) => ({
    low: i * gap,
    high: i === workerCount - 1 ? Infinity : (i + 1) * gap - 1,
  }));
}

/**
 * One check (BU-9, BU-10): ranges that give every worker the same share of the units seen. O(s log s + n) for s sizes.
 *
 * @param workerCount workers in the pool
 * @param sizes sizes of the requests in the window, in any order; not changed
 * @param previousShare share at the last adjustment, 0 before the first
 * @returns undefined when nothing changes: no traffic, no worker, or a share within a factor of two of the last
 * @throws TypeError for a count that is no integer ≥ 0, and for sizes or a share that are no numbers
 */
export function bucketRecompute(
  workerCount: number,
  sizes: ArrayLike<number>,
  previousShare: number,
): BucketAdjustment | undefined {
  if (!Number.isSafeInteger(workerCount) || workerCount < 0) throw refuse('workerCount', 'an integer ≥ 0', workerCount);
  checkNumber(previousShare, 'previousShare');
  checkSizes(sizes);
  if (sizes.length === 0 || workerCount === 0) return undefined;
  const ascending = Float64Array.from(sizes).sort();
  let total = 0;
  for (const size of ascending) total += size;
  const share = Math.floor(total / workerCount);
  if (previousShare !== 0 && share <= 2 * previousShare && previousShare <= 2 * share) return undefined;
  const ranges: BucketRange[] = [];
  let low = 0;
  let next = 0;
  for (let i = 0; i < workerCount - 1; i++) {
    let sum = 0;
    let reached = -1;
    while (next < ascending.length && reached < 0) {
      const size = ascending[next] as number;
      sum += size;
      next += 1;
      if (sum >= share) reached = size;
    }
    const high = reached > low ? reached : low + share;
    ranges.push({ low, high });
    low = high + 1;
  }
  ranges.push({ low, high: Infinity });
  return { share, ranges };
}

function checkSizes(sizes: ArrayLike<number>): void {
  if (ArrayBuffer.isView(sizes) && !(sizes instanceof DataView) && typeof sizes[0] !== 'bigint') return;
  if (!Array.isArray(sizes)) throw refuse('sizes', 'an array of numbers', sizes);
  for (const [i, size] of sizes.entries()) checkNumber(size, `sizes[${i}]`);
}
