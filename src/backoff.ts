/** Waiting between the attempts of one request (LB-25, CF-119). Pure: the host does the waiting. */
import type { Resolved } from './options/spec.js';
import type { retryTable } from './options/table.js';
import type { RandomSource } from './runtime/random.js';

/** Options of retries with their defaults filled in. */
export type RetryOptions = Resolved<typeof retryTable>;

/**
 * Milliseconds to wait after a failed attempt: `baseMs` after the first, `factor` times longer after each further one,
 * moved by up to `jitter` of itself in either direction, and never above `maxMs`.
 *
 * @param attempt number of the attempt that failed, from 1
 */
export function retryDelayMs(attempt: number, retry: RetryOptions, random: RandomSource): number {
  // Grown to infinity, the factor must not turn a base of 0 into NaN.
  const grown = retry.baseMs === 0 ? 0 : retry.baseMs * retry.factor ** (attempt - 1);
  const capped = Math.min(grown, retry.maxMs);
  return Math.min(capped * (1 + retry.jitter * (2 * random() - 1)), retry.maxMs);
}
