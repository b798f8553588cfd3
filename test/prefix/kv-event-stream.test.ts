import { describe, expect, it } from 'vitest';
import { nextSequence } from '../../src/prefix/kv-event-stream.js';

const bytes = (...list: readonly number[]): Uint8Array => Uint8Array.from(list);

describe('nextSequence', () => {
  it('CA-92: the first batch sets the base, whatever its number', () => {
    for (const first of [0, 1, 42, 2 ** 52]) {
      expect(nextSequence(undefined, first)).toEqual({ result: 'apply', last: first, received: first });
    }
  });

  it('CA-92: the successor applies, what is not larger is stale, what is further on is a gap', () => {
    expect(nextSequence(5, 6)).toEqual({ result: 'apply', last: 6, received: 6 });
    expect(nextSequence(5, 5)).toEqual({ result: 'stale', last: 5, received: 5 });
    expect(nextSequence(5, 4)).toEqual({ result: 'stale', last: 5, received: 4 });
    expect(nextSequence(5, 7)).toEqual({ result: 'gap', last: 5, expected: 6, received: 7 });
    expect(nextSequence(5, 900)).toEqual({ result: 'gap', last: 5, expected: 6, received: 900 });
  });

  it('CA-92: 0 after a number above 0 is a restart, 0 after 0 a repetition', () => {
    expect(nextSequence(500, 0)).toEqual({ result: 'restarted', last: 0, received: 0 });
    expect(nextSequence(1, 0)).toEqual({ result: 'restarted', last: 0, received: 0 });
    expect(nextSequence(0, 0)).toEqual({ result: 'stale', last: 0, received: 0 });
    expect(nextSequence(0, 1)).toEqual({ result: 'apply', last: 1, received: 1 });
    expect(nextSequence(0, -0)).toEqual({ result: 'stale', last: 0, received: 0 });
  });

  it('CA-92: numbers beyond 2⁵³ stay exact, up to 2⁶³', () => {
    const { MAX_SAFE_INTEGER } = Number;
    expect(nextSequence(MAX_SAFE_INTEGER - 1, MAX_SAFE_INTEGER).result).toBe('apply');
    expect(nextSequence(MAX_SAFE_INTEGER, 2n ** 53n)).toEqual({
      result: 'apply',
      last: 2n ** 53n,
      received: 2n ** 53n,
    });
    expect(nextSequence(2n ** 53n, 2n ** 53n + 1n).result).toBe('apply');
    expect(nextSequence(2n ** 53n + 1n, 2n ** 53n).result).toBe('stale');
    expect(nextSequence(2n ** 53n, MAX_SAFE_INTEGER).result).toBe('stale');
    expect(nextSequence(2n ** 60n, 0).result).toBe('restarted');
    expect(nextSequence(MAX_SAFE_INTEGER, 2n ** 53n + 5n)).toEqual({
      result: 'gap',
      last: MAX_SAFE_INTEGER,
      expected: 2n ** 53n,
      received: 2n ** 53n + 5n,
    });
    expect(nextSequence(undefined, 2n ** 63n)).toEqual({ result: 'apply', last: 2n ** 63n, received: 2n ** 63n });
    expect(nextSequence(2n ** 63n, 2n ** 63n).result).toBe('stale');
  });

  it('CA-92: equal numbers in other forms are equal', () => {
    expect(nextSequence(6, 7n)).toEqual({ result: 'apply', last: 7, received: 7 });
    expect(nextSequence(255, bytes(0, 0, 0, 0, 0, 0, 1, 0))).toEqual({ result: 'apply', last: 256, received: 256 });
    const framed = bytes(9, 9, 0, 0, 0, 0, 0, 0, 0, 3).subarray(2);
    expect(nextSequence(2, framed)).toEqual({ result: 'apply', last: 3, received: 3 });
    expect(nextSequence(undefined, bytes(0x7f, 255, 255, 255, 255, 255, 255, 255)).last).toBe(2n ** 63n - 1n);
    expect(nextSequence(undefined, bytes(0x80, 0, 0, 0, 0, 0, 0, 0)).last).toBe(2n ** 63n);
    expect(nextSequence(undefined, 0n)).toEqual({ result: 'apply', last: 0, received: 0 });
    expect(nextSequence(9, 0n)).toEqual({ result: 'restarted', last: 0, received: 0 });
    expect(nextSequence(undefined, BigInt(Number.MAX_SAFE_INTEGER)).last).toBe(Number.MAX_SAFE_INTEGER);
    // The last number, too, may come in another form than it was given.
    expect(nextSequence(5n, 6)).toEqual({ result: 'apply', last: 6, received: 6 });
    expect(nextSequence(5n, 7)).toEqual({ result: 'gap', last: 5n, expected: 6, received: 7 });
  });

  it('LB-42: a last number that is none is refused by name', () => {
    for (const [last, shown] of [
      [-1, '-1'],
      [1.5, '1.5'],
      ['7', '"7"'],
      [null, 'null'],
      [2n ** 63n + 1n, '9223372036854775809n'],
    ] as const) {
      expect(() => nextSequence(last as never, 6)).toThrow(
        new TypeError(`last: expected a sequence number, got ${shown}`),
      );
    }
  });

  it('CA-92, B87: what is no such number is rejected and leaves the state alone', () => {
    const malformed: readonly unknown[] = [
      bytes(0, 0, 7),
      bytes(),
      bytes(0, 0, 0, 0, 0, 0, 0, 0, 7),
      bytes(0xff, 255, 255, 255, 255, 255, 255, 255),
      Number.NaN,
      Number.POSITIVE_INFINITY,
      '7',
      -1,
      -1n,
      1.5,
      2 ** 53,
      2 ** 64,
      2n ** 63n + 1n,
      2n ** 64n,
      null,
      undefined,
      {},
      [7],
      true,
    ];
    for (const received of malformed) {
      expect(nextSequence(6, received)).toEqual({ result: 'rejected', last: 6 });
      expect(nextSequence(undefined, received)).toEqual({ result: 'rejected', last: undefined });
    }
  });
});
