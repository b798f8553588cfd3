import { describe, expect, it } from 'vitest';
import { BlockKey } from '../../src/prefix/block-key.js';

function keyOf(name: unknown): string | undefined {
  const key = new BlockKey();
  return key.read(name) ? `${key.high >>> 0}:${key.low >>> 0}` : undefined;
}

const bigEndian = (value: bigint, length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => Number((value >> BigInt(8 * (length - 1 - i))) & 255n));

describe('BlockKey', () => {
  it('CA-90: equal integers are one key in every form', () => {
    for (const value of [0n, 1n, 255n, 256n, 0xffffffffn, 2n ** 32n, 2n ** 53n - 1n]) {
      const forms = [value, Number(value), String(value), `000${value}`, bigEndian(value, 8), bigEndian(value, 32)];
      expect(new Set(forms.map(keyOf))).toEqual(new Set([`${value >> 32n}:${value & 0xffffffffn}`]));
    }
    expect(keyOf(Uint8Array.of(1, 2))).toBe(keyOf(258));
  });

  it('CA-90: names up to 2⁶⁴ are exact', () => {
    const seen = new Set<string | undefined>();
    for (const value of [2n ** 53n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n, 18388723977999946127n]) {
      expect(keyOf(value)).toBe(`${value >> 32n}:${value & 0xffffffffn}`);
      expect(keyOf(String(value))).toBe(keyOf(value));
      expect(keyOf(bigEndian(value, 8))).toBe(keyOf(value));
      seen.add(keyOf(value));
    }
    expect(seen.size).toBe(5);
  });

  it('CA-90: a signed name is the unsigned one of the same 64 bits', () => {
    expect(keyOf(-1)).toBe(keyOf(2n ** 64n - 1n));
    expect(keyOf(-1n)).toBe(keyOf(2n ** 64n - 1n));
    expect(keyOf('-1')).toBe(keyOf(2n ** 64n - 1n));
    expect(keyOf(-(2n ** 63n))).toBe(keyOf(2n ** 63n));
    expect(keyOf(-(2 ** 40))).toBe(keyOf(-(2n ** 40n)));
    expect(keyOf(-(2n ** 63n) - 1n)).toBeUndefined();
  });

  it('CA-90: long names are folded, the same way in every form, and every byte counts', () => {
    const sha = (2n ** 256n * 7n) / 11n;
    expect(keyOf(bigEndian(sha, 32))).toBe(keyOf(sha));
    expect(keyOf(String(sha))).toBe(keyOf(sha));
    expect(keyOf(bigEndian(sha, 40))).toBe(keyOf(sha));
    const seen = new Set<string | undefined>([keyOf(sha)]);
    for (let bit = 0n; bit < 256n; bit++) seen.add(keyOf(sha ^ (1n << bit)));
    expect(seen.size).toBe(257);
    expect(keyOf(2n ** 64n)).not.toBe(keyOf(0));
  });

  it('CA-90: names go up to 64 bytes, and to 155 digits behind a sign or a zero', () => {
    const largest = 2n ** 512n - 1n;
    expect(keyOf(new Uint8Array(64).fill(255))).toBe(keyOf(largest));
    expect(keyOf(`0${largest}`)).toBe(keyOf(largest));
    expect(keyOf(largest)).toBeDefined();
    expect(keyOf(largest + 1n)).toBeUndefined();
    // Longer strings are refused before they are read, whatever number they spell.
    expect(keyOf(`00${largest}`)).toBeUndefined();
  });

  it('CA-90: what may have lost digits, or is no integer, is refused', () => {
    const refused: readonly unknown[] = [
      2 ** 53,
      -(2 ** 53),
      1.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      '',
      '-',
      '1.0',
      ' 1',
      '0x1f',
      '1e3',
      '+1',
      'abc',
      '9'.repeat(1000),
      2n ** 513n,
      new Uint8Array(0),
      new Uint8Array(65),
      new Uint16Array(4),
      [1],
      {},
      null,
      undefined,
      true,
    ];
    for (const name of refused) expect(keyOf(name)).toBeUndefined();
  });
});
