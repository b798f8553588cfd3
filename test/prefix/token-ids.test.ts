import { describe, expect, it } from 'vitest';
import { badToken, copyTokens } from '../../src/prefix/token-ids.js';

describe('copyTokens', () => {
  it('LB-42: copies ids and points at the first entry that is none', () => {
    const target = new Uint32Array(4);
    expect(copyTokens([9, 0, 1, 2 ** 32 - 1, -5], 1, 4, target)).toBe(-1);
    expect(Array.from(target)).toEqual([0, 1, 2 ** 32 - 1, 0]);
    for (const bad of [-1, 1.5, 2 ** 32, Number.NaN, '1', null, undefined, {}, 1n, true]) {
      expect(copyTokens([1, bad as number, -7], 0, 3, target)).toBe(1);
    }
    expect(copyTokens([1, 2], 0, 3, target)).toBe(2);
    expect(badToken([1, 'x'], 1)).toBeInstanceOf(TypeError);
    expect(badToken([1, 'x'], 1).message).toBe('tokens: expected ids from 0 to 4294967295, got "x" at 1');
  });
});
