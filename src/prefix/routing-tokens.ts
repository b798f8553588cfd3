/**
 * Token ids and the `x-smg-routing-tokens` hint (section H of spec 05).
 *
 * A `number[]` from outside may hold anything, and is checked as far as it is read (LB-42); a `Uint32Array` cannot.
 */
import { refuse, show } from '../errors.js';

/** Token ids, 0 to 2³²−1. A `Uint32Array` needs no check and is the fastest form. */
export type TokenIds = readonly number[] | Uint32Array;

/**
 * Copies the ids from `from` to `to` of a list into `target`, from its start.
 *
 * @returns the position of the first entry that is no token id, or -1 when all are
 */
export function copyTokens(tokens: readonly number[], from: number, to: number, target: Uint32Array): number {
  for (let i = from; i < to; i++) {
    const id: unknown = tokens[i];
    if (typeof id !== 'number') return i;
    target[i - from] = id;
    // What does not survive the conversion to 32 bits is no id: fractions, signs, NaN.
    if (target[i - from] !== id) return i;
  }
  return -1;
}

/** @throws TypeError on `tokens` when they are no list at all */
export function checkTokenList(tokens: TokenIds): void {
  if (tokens instanceof Uint32Array || Array.isArray(tokens)) return;
  throw refuse('tokens', 'a Uint32Array or an array of integers', tokens);
}

/** The error for an entry that is no token id. */
export function badToken(tokens: readonly unknown[], position: number): TypeError {
  return new TypeError(`tokens: expected ids from 0 to 4294967295, got ${show(tokens[position])} at ${position}`);
}

const maxHintIds = 512;
const maxHintBytes = 4096;

/**
 * Reads the hint: comma-separated decimal ids without spaces, signs or empty items; at most 512 ids and 4096 bytes;
 * leading zeros are accepted (CA-110). Anything else is as if the header were absent.
 */
export function parseRoutingTokens(header: string | undefined): TokenIds | undefined {
  if (typeof header !== 'string' || header.length === 0 || header.length > maxHintBytes) return undefined;
  const ids = new Uint32Array(maxHintIds);
  let count = 0;
  let id = -1;
  for (let i = 0; i <= header.length; i++) {
    const unit = i < header.length ? header.charCodeAt(i) : 44;
    if (unit >= 48 && unit <= 57) {
      id = (id < 0 ? 0 : id) * 10 + (unit - 48);
      if (id > 0xffffffff) return undefined;
    } else if (unit === 44 && id >= 0 && count < maxHintIds) {
      ids[count++] = id;
      id = -1;
    } else {
      return undefined;
    }
  }
  return ids.slice(0, count);
}
