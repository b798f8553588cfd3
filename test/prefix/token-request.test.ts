/** One request as the token tree reads it: whole pages, copied unless it is a large array. */
import { describe, expect, it } from 'vitest';
import { TokenRequest } from '../../src/prefix/token-request.js';

/** What is copied at most: the size of the memory that is kept. */
const copied = 4096;

function ids(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i + 1);
}

describe('TokenRequest', () => {
  const request = new TokenRequest(16);
  const own = request.words;

  it('starts empty, with memory of its own', () => {
    expect([request.length, request.isInPlace]).toEqual([0, false]);
    expect(own.at).toEqual(new Uint32Array(copied));
  });

  it.each([
    ['a list', (count: number) => ids(count)],
    ['an array', (count: number) => Uint32Array.from(ids(count))],
  ])('CA-33: copies the whole pages of %s that is not large', (_name, make) => {
    for (const [given, length] of [
      [0, 0],
      [15, 0],
      [16, 16],
      [40, 32],
      [copied, copied],
      [copied + 1, copied],
      [copied + 15, copied],
    ] as const) {
      const tokens = make(given);
      request.read(tokens);
      expect([request.length, request.isInPlace]).toEqual([length, false]);
      expect(request.words).toBe(own);
      tokens.fill(0);
      expect(Array.from(request.words.at.subarray(0, length))).toEqual(ids(length));
    }
  });

  it('reads a large array in place, and lets go of it', () => {
    const tokens = Uint32Array.from(ids(copied + 16));
    request.read(tokens);
    expect([request.length, request.isInPlace]).toEqual([copied + 16, true]);
    expect(request.words.at).toBe(tokens);
    request.release();
    expect(request.isInPlace).toBe(false);
    expect(request.words).toBe(own);
  });

  it('copies a large list to memory of its own, and lets go of it', () => {
    const tokens = ids(copied + 20);
    request.read(tokens);
    expect([request.length, request.isInPlace]).toEqual([copied + 16, false]);
    expect(request.words).not.toBe(own);
    expect(Array.from(request.words.at)).toEqual(ids(copied + 16));
    request.release();
    expect(request.words).toBe(own);
  });

  it('LB-42: what is refused leaves the last request as it was', () => {
    request.read(ids(32));
    expect(() => request.read([...ids(40), -1, ...ids(40)])).toThrow(/^tokens: expected ids .+, got -1 at 40$/);
    expect(() => request.read('1,2' as never)).toThrow(TypeError);
    expect([request.length, request.isInPlace]).toEqual([32, false]);
    expect(Array.from(request.words.at.subarray(0, 32))).toEqual(ids(32));
  });
});
