/**
 * The token ids of one request in the form the token tree works on: whole pages, as `Words`. A list of numbers is
 * checked as far as it is read, which is up to its last whole page (LB-42). Lists, and arrays that are not large, are
 * copied, so that an insert records what its match saw; larger arrays are read in place.
 */
import { Words } from '../runtime/words.js';
import { badToken, checkTokenList, isTokenId, type TokenIds } from './token-ids.js';

/** Longer arrays are read in place; longer lists are copied to memory of their own. */
const copiedTokens = 4096;

export class TokenRequest {
  readonly #pageSize: number;
  readonly #copy = new Words(new Uint32Array(copiedTokens));
  words: Words = this.#copy;
  /** Ids in whole pages. */
  length = 0;
  /** Whether `words` is the caller's memory. */
  isInPlace = false;

  constructor(pageSize: number) {
    this.#pageSize = pageSize;
  }

  /** @throws TypeError on `tokens`, before anything changes */
  read(tokens: TokenIds): void {
    const isArray = tokens instanceof Uint32Array;
    checkTokenList(tokens);
    const length = tokens.length - (tokens.length % this.#pageSize);
    let words = this.#copy;
    if (isArray) {
      if (length > copiedTokens) words = new Words(tokens);
      else words.at.set(tokens.length <= copiedTokens ? tokens : tokens.subarray(0, length));
    } else {
      for (let i = 0; i < length; i++) {
        if (!isTokenId(tokens[i])) throw badToken(tokens, i);
      }
      if (length > copiedTokens) words = new Words(new Uint32Array(length));
      words.at.set(tokens.length === length ? tokens : tokens.slice(0, length));
    }
    this.words = words;
    this.length = length;
    this.isInPlace = isArray && words !== this.#copy;
  }

  /** Lets go of a large request. */
  release(): void {
    this.words = this.#copy;
    this.isInPlace = false;
  }
}
