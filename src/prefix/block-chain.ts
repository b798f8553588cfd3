/**
 * The chain that identifies blocks: a running hash of all token ids of a prompt, closed at the end of each block (CA-81,
 * CA-86). Where it starts from depends on the block size, so blocks of different sizes never match.
 */
import { avalanche } from '../runtime/hash-text.js';
import { roomIn } from './scratch.js';
import { TokenHash } from './token-hash.js';
import { badToken, copyTokens, type TokenIds } from './token-ids.js';

export class BlockChain {
  readonly #hash = new TokenHash();
  readonly blockSize: number;
  #copy: Uint32Array | undefined;
  #lanes: Int32Array = new Int32Array(128);
  /** Where the next block of the list at hand starts. */
  #from = 0;

  /** @param blockSize tokens in a block, an integer > 0 */
  constructor(blockSize: number) {
    this.blockSize = blockSize;
    this.start();
  }

  /** The lower 32 bits of the chain at the end of the last block. */
  get low(): number {
    return this.#hash.low;
  }

  /** Its upper 32 bits. */
  get high(): number {
    return this.#hash.high;
  }

  /** Starts a prompt. */
  start(): void {
    this.startAfter(avalanche(this.blockSize), avalanche(~this.blockSize));
  }

  /** Goes on behind a block, given its chain. */
  startAfter(low: number, high: number): void {
    this.#hash.start(low, high);
    this.#from = 0;
  }

  /**
   * Goes on by one block of the list, the first one after a start; the next call takes the block after it.
   *
   * @throws TypeError on `tokens` when a plain list holds something else than ids
   */
  next(tokens: TokenIds): void {
    const from = this.#from;
    const to = from + this.blockSize;
    if (tokens instanceof Uint32Array) this.#hash.mix(tokens, from, to);
    else this.#hash.mix(this.#checked(tokens, from, to), 0, this.blockSize);
    this.#hash.close();
    this.#from = to;
  }

  /** Goes on by several blocks and returns their chains, low and high lane in turn; valid until the next such call. */
  lanesOf(tokens: TokenIds, blocks: number): Int32Array {
    const lanes = roomIn(this.#lanes, 2 * blocks);
    this.#lanes = lanes;
    for (let i = 0; i < blocks; i++) {
      this.next(tokens);
      lanes[2 * i] = this.#hash.low;
      lanes[2 * i + 1] = this.#hash.high;
    }
    return lanes;
  }

  #checked(tokens: readonly number[], from: number, to: number): Uint32Array {
    this.#copy ??= new Uint32Array(this.blockSize);
    const bad = copyTokens(tokens, from, to, this.#copy);
    if (bad >= 0) throw badToken(tokens, bad);
    return this.#copy;
  }
}
