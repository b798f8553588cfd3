/** Unicode code points: the unit of all text sizes (BU-3, PH-2, CA-33). A lone surrogate counts 1. */

const surrogatePair = /[\ud800-\udbff][\udc00-\udfff]/;

/**
 * Number of code points in `text`. O(n), nothing allocated; text without surrogate pairs is only searched for one,
 * which costs next to nothing in strings that the engine stores as Latin-1.
 */
export function countCodePoints(text: string): number {
  const firstPair = text.search(surrogatePair);
  if (firstPair < 0) return text.length;
  let count = firstPair;
  for (let i = firstPair; i < text.length; i++) {
    if (isPairAt(text, i)) i += 1;
    count += 1;
  }
  return count;
}

/** Whether a high and a low surrogate stand at `i` and `i + 1`. */
export function isPairAt(text: string, i: number): boolean {
  const high = text.charCodeAt(i);
  if (high < 0xd800 || high > 0xdbff) return false;
  const low = text.charCodeAt(i + 1);
  return low >= 0xdc00 && low <= 0xdfff;
}
