import { describe, expect, it } from 'vitest';
import { TokenHash } from '../../src/prefix/token-hash.js';

function lanesOf(tokens: ArrayLike<number>): readonly [number, number] {
  const hash = new TokenHash();
  hash.start(1, 2);
  hash.mix(tokens, 0, tokens.length);
  hash.close();
  return [hash.low, hash.high];
}

/** Number of equal values in a lane. */
function repeats(lane: Int32Array): number {
  const sorted = lane.slice().sort();
  let count = 0;
  for (let i = 1; i < sorted.length; i++) if (sorted[i] === sorted[i - 1]) count++;
  return count;
}

describe('TokenHash', () => {
  it('CA-86: equal ids give equal lanes, in a plain list and in a typed array', () => {
    for (const tokens of [[1], [1, 2], [0xffffffff, 0x80000000, 7], [5, 4, 3, 2, 1]]) {
      expect(lanesOf(Uint32Array.from(tokens))).toEqual(lanesOf(tokens));
    }
  });

  it('CA-86: the state goes on from a closed piece', () => {
    const whole = new TokenHash();
    whole.start(1, 2);
    whole.mix([1, 2, 3, 4], 0, 2);
    whole.close();
    const { low, high } = whole;
    whole.mix([1, 2, 3, 4], 2, 4);
    whole.close();
    const second = new TokenHash();
    second.start(low, high);
    second.mix([3, 4], 0, 2);
    second.close();
    expect([second.low, second.high]).toEqual([whole.low, whole.high]);
  });

  // 2¹⁶ inputs: a 32-bit lane as good as random repeats once in two such tests.
  const inputs = 1 << 16;
  const families: readonly (readonly [string, (i: number) => readonly number[]])[] = [
    ['one id', (i) => [i]],
    ['top bits of one id', (i) => [i << 16]],
    ['two ids', (i) => [i & 255, i >>> 8]],
    ['top bits of two ids', (i) => [(i & 255) << 24, (i >>> 8) << 24]],
    ['three ids', (i) => [i & 63, (i >>> 6) & 63, i >>> 12]],
    ['ids one step apart', (i) => [i & 255, 0, i >>> 8, 0]],
    ['ids of two steps', (i) => [0, i & 255, i >>> 8, 0]],
    ['the same id throughout', (i) => [i, i, i, i]],
  ];
  it.each(families)('CA-86: both lanes spread inputs that differ in %s', (_, tokensOf) => {
    const low = new Int32Array(inputs);
    const high = new Int32Array(inputs);
    for (let i = 0; i < inputs; i++) [low[i], high[i]] = lanesOf(tokensOf(i)) as [number, number];
    expect(repeats(low)).toBeLessThan(8);
    expect(repeats(high)).toBeLessThan(8);
    expect(new Set(low.map((lane, i) => lane ^ Math.imul(high[i] as number, 0x9e3779b1))).size).toBeGreaterThan(
      inputs - 8,
    );
  });
});
