/** Credit: work selected for a worker since its last report (EW-12). The pair itself is kept by the worker's owner. */
import { defaultMeanPrefillTokens } from '../options/table.js';
import type { TokenIds } from '../prefix/token-ids.js';

/**
 * Tokens that selecting a worker for this request credits (EW-13).
 *
 * @param tokens the request's token ids, also those of a hint; an empty list counts 0
 * @param meanPrefillTokens what a request of unknown size counts; the deciding policy's own, absent = 1024
 */
export function creditTokensOf(
  tokens: TokenIds | undefined,
  meanPrefillTokens: number = defaultMeanPrefillTokens,
): number {
  return tokens === undefined ? meanPrefillTokens : tokens.length;
}
