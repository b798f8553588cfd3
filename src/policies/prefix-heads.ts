/**
 * The heads of a request that `prefix_hash` places on the ring (PH-1..PH-4, PH-11), each with its level: the boundary in
 * tokens, or 0 for a routing key and for the fixed-depth head.
 *
 * A head shorter than its budget is hashed whole (B12). Text is cut between code points, reading no further than the
 * deepest head; token ids are hashed as little-endian 32-bit words from one buffer that is kept.
 */
import { refuse } from '../errors.js';
import { isTokenId, type TokenIds } from '../prefix/token-ids.js';
import type { RequestView } from '../request.js';
import type { Hash64 } from '../runtime/hash.js';
import { isPairAt } from '../runtime/text.js';
import { type KeyRules, resolveRoutingKey } from '../sticky/routing-key.js';

/** What of the options of `prefix_hash` says what is hashed. */
export interface HeadOptions {
  /** Tokens of the fixed-depth head. */
  readonly prefixTokenCount: number;
  /** Tokens at which further heads end, ascending; empty = the fixed-depth head only. */
  readonly cacheBoundaries: readonly number[];
  /** Headers whose routing key is hashed instead, in lower case. */
  readonly routingKeyHeaders: readonly string[];
}

/** One head. */
export interface PrefixHead {
  /** Where it ends: a boundary in tokens, or 0 for a routing key and for the fixed-depth head. */
  readonly level: number;
  /** Where on the ring it is looked up: 64 bits. */
  readonly hash: bigint;
}

/** What a token counts as in text (PH-2). */
const charactersPerToken = 4;

/** The heads of requests, by one set of options. */
export class PrefixHeads {
  readonly #hash: Hash64;
  readonly #options: HeadOptions;
  readonly #keyRules: KeyRules;
  #bytes: DataView<ArrayBuffer> | undefined;

  constructor(hash: Hash64, options: HeadOptions) {
    this.#hash = hash;
    this.#options = options;
    this.#keyRules = { rid: false, headers: options.routingKeyHeaders, stripHeaders: false };
  }

  /**
   * The heads, deepest first, hashed one by one as they are asked for; none when the request holds nothing to hash
   * (PH-1d).
   *
   * @throws TypeError on `tokens` for an id that is no 32-bit unsigned integer (LB-42)
   */
  *of(request: RequestView): Generator<PrefixHead> {
    const routing = resolveRoutingKey(request, this.#keyRules);
    if (routing !== undefined) {
      yield { level: 0, hash: this.#hash(routing.key) };
      return;
    }
    const { routingTokens, text } = request;
    if (routingTokens !== undefined) yield* this.#ofTokens(routingTokens);
    else if (text !== undefined && text !== '') yield* this.#ofText(text);
  }

  *#ofTokens(tokens: TokenIds): Generator<PrefixHead> {
    const levels = this.#options.cacheBoundaries.filter((boundary) => boundary <= tokens.length);
    const fixedDepth = Math.min(tokens.length, this.#options.prefixTokenCount);
    const bytes = this.#littleEndian(tokens, levels.at(-1) ?? fixedDepth);
    if (levels.length === 0) yield { level: 0, hash: this.#hash(bytes) };
    for (const level of levels.reverse()) yield { level, hash: this.#hash(bytes.subarray(0, level * 4)) };
  }

  *#ofText(text: string): Generator<PrefixHead> {
    const reached: { readonly level: number; readonly end: number }[] = [];
    let end = 0;
    let characters = 0;
    for (const level of this.#options.cacheBoundaries) {
      const next = advance(text, end, level * charactersPerToken - characters);
      if (next === undefined) break;
      end = next;
      characters = level * charactersPerToken;
      reached.push({ level, end });
    }
    if (reached.length === 0) {
      const fixedEnd = advance(text, 0, this.#options.prefixTokenCount * charactersPerToken) ?? text.length;
      yield { level: 0, hash: this.#hash(text.slice(0, fixedEnd)) };
    }
    for (const head of reached.reverse()) yield { level: head.level, hash: this.#hash(text.slice(0, head.end)) };
  }

  #littleEndian(tokens: TokenIds, count: number): Uint8Array {
    if (this.#bytes === undefined || this.#bytes.byteLength < count * 4) {
      this.#bytes = new DataView(new ArrayBuffer(count * 4));
    }
    const bytes = this.#bytes;
    for (let i = 0; i < count; i++) {
      const id = tokens[i] as number;
      if (!isTokenId(id)) throw refuse('tokens', 'integers from 0 to 4294967295', id);
      bytes.setUint32(i * 4, id, true);
    }
    return new Uint8Array(bytes.buffer, 0, count * 4);
  }
}

/** Where `count` more characters (code points) from `start` end, or undefined when the text has fewer. */
function advance(text: string, start: number, count: number): number | undefined {
  // Text without surrogate pairs, which is nearly all text, is only searched for one.
  const plain = text.slice(start, start + count);
  const firstPair = plain.search(/[\ud800-\udbff]/);
  if (firstPair < 0) return plain.length === count ? start + count : undefined;
  let end = start + firstPair;
  for (let left = count - firstPair; left > 0; left--) {
    if (end >= text.length) return undefined;
    end += isPairAt(text, end) ? 2 : 1;
  }
  return end;
}
