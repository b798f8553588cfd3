/**
 * Reads the names engines give their blocks into 64-bit keys of two int32 lanes. Equal integers give equal keys in every
 * form (see `BlockHash`). A name that fits 64 bits is its own key; a longer one (vLLM's SHA-256 names have 256 bits) is
 * folded to 64, so two of them are confused with a probability of 2⁻⁶⁴ a pair. Nothing is rounded: a number that may
 * have lost digits is refused.
 */
import { avalanche } from '../runtime/hash-text.js';

const maxBytes = 64;
/** Decimal digits of 2⁵¹². */
const maxDigits = 155;
const smallestSigned: bigint = -(2n ** 63n);
const largestUnsigned: bigint = 2n ** 64n - 1n;
const decimal: RegExp = /^-?[0-9]+$/;

export class BlockKey {
  low = 0;
  high = 0;
  readonly #view = new DataView(new ArrayBuffer(8));

  /** Takes the key of a name; false when it is none, and then the lanes mean nothing. */
  read(name: unknown): boolean {
    switch (typeof name) {
      case 'bigint':
        return this.#readInteger(name);
      case 'number':
        return this.#readNumber(name);
      case 'string':
        if (name.length > maxDigits + 1 || !decimal.test(name)) return false;
        return name.length <= 15 ? this.#readNumber(Number(name)) : this.#readInteger(BigInt(name));
      default:
        return name instanceof Uint8Array && this.#readBytes(name);
    }
  }

  #readNumber(value: number): boolean {
    if (!Number.isSafeInteger(value)) return false;
    this.low = value | 0;
    this.high = Math.floor(value / 4294967296) | 0;
    return true;
  }

  #readInteger(value: bigint): boolean {
    if (value < smallestSigned) return false;
    if (value > largestUnsigned) return this.#readBytes(bigEndian(value));
    // Two's complement of 64 bits: engines print the same name signed or unsigned.
    this.#view.setBigInt64(0, value);
    this.high = this.#view.getInt32(0);
    this.low = this.#view.getInt32(4);
    return true;
  }

  #readBytes(bytes: Uint8Array): boolean {
    if (bytes.length === 0 || bytes.length > maxBytes) return false;
    let first = 0;
    while (bytes[first] === 0) first++;
    if (bytes.length - first > 8) this.#fold(bytes, first);
    else {
      this.low = 0;
      this.high = 0;
      for (let i = first; i < bytes.length; i++) {
        this.high = (this.high << 8) | (this.low >>> 24);
        this.low = (this.low << 8) | (bytes[i] as number);
      }
    }
    return true;
  }

  #fold(bytes: Uint8Array, first: number): void {
    let low = 0x9e3779b1 ^ (bytes.length - first);
    let high = 0x85ebca6b;
    for (let i = first; i < bytes.length; i++) {
      low = Math.imul(low ^ (bytes[i] as number), 0xcc9e2d51);
      low ^= low >>> 15;
      high = Math.imul(high + low, 0x1b873593);
      high ^= high >>> 13;
    }
    this.low = avalanche(low);
    this.high = avalanche(high ^ this.low);
  }
}

/** The bytes of an integer > 0, the highest first. */
function bigEndian(value: bigint): Uint8Array {
  const digits = value.toString(16);
  const padded = digits.length % 2 === 0 ? digits : `0${digits}`;
  return Uint8Array.from(padded.match(/../g) as string[], (pair) => Number.parseInt(pair, 16));
}
