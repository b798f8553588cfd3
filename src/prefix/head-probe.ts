/**
 * The heads of one request: the 64-bit hashes of (namespace, boundary, the tokens up to it) at every boundary the request
 * reaches, in ascending order (CA-71). One running hash, whose state at each boundary is closed aside, so the longest
 * part is read once. One probe is reused from request to request; it is valid until it reads the next.
 */
import { hashText } from '../runtime/hash-text.js';
import { TokenHash } from './token-hash.js';
import { badToken, copyTokens, type TokenIds } from './token-ids.js';

/** The heads of one request, as a hash index looks them up. */
export class HeadProbe {
  /** Number of applicable boundaries. */
  count = 0;
  #boundaries: readonly number[] = [];
  readonly #lanes: number[] = [];
  readonly #hash = new TokenHash();
  #copy = new Uint32Array(0);

  /** The boundary at a position, in tokens. */
  boundary(index: number): number {
    return this.#boundaries[index] as number;
  }

  /** The lower 32 bits of a head's key. */
  low(index: number): number {
    return this.#lanes[2 * index] as number;
  }

  /** The upper 32 bits of a head's key. */
  high(index: number): number {
    return this.#lanes[2 * index + 1] as number;
  }

  /**
   * Takes up another request.
   *
   * @internal `HashIndex.probe` does
   * @throws TypeError on `tokens` when a plain list holds something else than ids, as far as it is read
   */
  read(tokens: TokenIds, namespace: string | undefined, boundaries: readonly number[]): void {
    this.count = 0;
    this.#boundaries = boundaries;
    let count = 0;
    while (count < boundaries.length && (boundaries[count] as number) <= tokens.length) count++;
    if (count === 0) return;
    const ids = this.#checked(tokens, boundaries[count - 1] as number);
    const hash = this.#hash;
    startFor(hash, namespace);
    let from = 0;
    for (let i = 0; i < count; i++) {
      const boundary = boundaries[i] as number;
      // Ids are absorbed in pairs from position 0 on, an odd last one only aside: a head's hash does not depend on
      // which other boundaries there are.
      const paired = boundary - (boundary % 2);
      hash.mix(ids, from, paired);
      from = paired;
      const { low, high } = hash;
      hash.mix(ids, paired, boundary);
      hash.low ^= boundary;
      hash.close();
      this.#lanes[2 * i] = hash.low;
      this.#lanes[2 * i + 1] = hash.high;
      hash.start(low, high);
    }
    this.count = count;
  }

  #checked(tokens: TokenIds, length: number): Uint32Array {
    if (tokens instanceof Uint32Array) return tokens;
    if (this.#copy.length < length) this.#copy = new Uint32Array(length);
    const bad = copyTokens(tokens, 0, length, this.#copy);
    if (bad >= 0) throw badToken(tokens, bad);
    return this.#copy;
  }
}

function startFor(hash: TokenHash, namespace: string | undefined): void {
  if (namespace === undefined) {
    hash.start(0x243f6a88, 0x85a308d3);
    return;
  }
  const digits = hashText(namespace);
  hash.start(Number.parseInt(digits.slice(0, 8), 16), Number.parseInt(digits.slice(8), 16));
}
