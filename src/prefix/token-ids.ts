/**
 * Token ids as requests and events bring them. A `number[]` from outside may hold anything, and is checked as far as it is
 * read (LB-42); a `Uint32Array` cannot.
 */
import { refuse, show } from '../errors.js';

/** Token ids, 0 to 2³²−1. A `Uint32Array` needs no check and is the fastest form. */
export type TokenIds = readonly number[] | Uint32Array;

/** What survives the conversion to an unsigned 32-bit integer: no fractions, no signs, no NaN. */
export function isTokenId(value: unknown): value is number {
  return typeof value === 'number' && value >>> 0 === value;
}

/** @throws TypeError on `tokens` when they are no list at all */
export function checkTokenList(tokens: TokenIds): void {
  if (tokens instanceof Uint32Array || Array.isArray(tokens)) return;
  throw refuse('tokens', 'a Uint32Array or an array of integers', tokens);
}

/**
 * Copies the ids from `from` to `to` of a list into `target`, from its start.
 *
 * @returns the position of the first entry that is no token id, or -1 when all are
 */
export function copyTokens(tokens: readonly number[], from: number, to: number, target: Uint32Array): number {
  for (let i = from; i < to; i++) {
    const id: unknown = tokens[i];
    if (!isTokenId(id)) return i;
    target[i - from] = id;
  }
  return -1;
}

/** The error for an entry that is no token id. */
export function badToken(tokens: readonly unknown[], position: number): TypeError {
  return new TypeError(`tokens: expected ids from 0 to 4294967295, got ${show(tokens[position])} at ${position}`);
}
