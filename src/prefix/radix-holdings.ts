/**
 * Who holds which node: one holding for each (node, tenant) pair, kept as eight 32-bit words in chunks of typed arrays,
 * so that the garbage collector never walks them and growth never copies. A holding is a number; 0 means none. Each is
 * in up to three lists: its node's holders (`Holders`), the ends (`Ends`), and, here, the holdings of its tenant, so
 * that a removed worker's memory is found without a search (CA-44). All operations are O(1).
 */
import type { RadixNode } from './radix-node.js';

const chunkShift = 10;
const holdingsPerChunk = 1 << chunkShift;
const withinChunk = holdingsPerChunk - 1;

const maxSmallInteger = 2 ** 30 - 1;

// The words of a holding; the last of eight is unused.
const holdingWords = 8;
const tenantWord = 0;
const previousOfTenantWord = 1;
const nextOfTenantWord = 2;
export const olderEndWord = 3;
export const newerEndWord = 4;
export const olderHolderWord = 5;
export const newerHolderWord = 6;

/** In `newerEndWord` of a holding that is not an end. */
export const notAnEnd = -1;

class Chunk<Label> {
  readonly words: Int32Array = new Int32Array(holdingsPerChunk * holdingWords);
  /** Uses of holdings that are not their node's newest; that one's is in the node. */
  readonly uses: Float64Array = new Float64Array(holdingsPerChunk);
  readonly nodes: (RadixNode<Label> | undefined)[] = new Array(holdingsPerChunk).fill(undefined);
}

export class Holdings<Label> {
  readonly #chunks: Chunk<Label>[] = [new Chunk()];
  // Holding 0 is never given out: its words are where the list of ends begins and ends.
  #count = 1;
  #firstFree = 0;
  /** First holding of each tenant. */
  readonly #firstOfTenant: number[] = [];

  /** Makes a holding that is in its tenant's list only; `older` is the one it is about to follow in its node's. */
  create(node: RadixNode<Label>, tenant: number, use: number, older = 0): number {
    let holding = this.#firstFree;
    if (holding === 0) {
      holding = this.#count++;
      if (holding >> chunkShift === this.#chunks.length) this.#chunks.push(new Chunk());
    } else {
      this.#firstFree = this.word(holding, nextOfTenantWord);
    }
    const { words, uses, nodes } = this.#chunks[holding >> chunkShift] as Chunk<Label>;
    const slot = holding & withinChunk;
    const at = slot * holdingWords;
    nodes[slot] = node;
    uses[slot] = use;
    words[at + tenantWord] = tenant;
    words[at + newerEndWord] = notAnEnd;
    words[at + olderHolderWord] = older;
    words[at + newerHolderWord] = 0;
    const next = this.#firstOfTenant[tenant] ?? 0;
    words[at + previousOfTenantWord] = 0;
    words[at + nextOfTenantWord] = next;
    if (next !== 0) this.setWord(next, previousOfTenantWord, holding);
    this.#firstOfTenant[tenant] = holding;
    return holding;
  }

  /** Frees a holding that is in its tenant's list only. */
  free(holding: number): void {
    (this.#chunks[holding >> chunkShift] as Chunk<Label>).nodes[holding & withinChunk] = undefined;
    const previous = this.word(holding, previousOfTenantWord);
    const next = this.word(holding, nextOfTenantWord);
    if (previous === 0) this.#firstOfTenant[this.tenant(holding)] = next;
    else this.setWord(previous, nextOfTenantWord, next);
    if (next !== 0) this.setWord(next, previousOfTenantWord, previous);
    this.setWord(holding, nextOfTenantWord, this.#firstFree);
    this.#firstFree = holding;
  }

  node(holding: number): RadixNode<Label> {
    return (this.#chunks[holding >> chunkShift] as Chunk<Label>).nodes[holding & withinChunk] as RadixNode<Label>;
  }

  tenant(holding: number): number {
    return this.word(holding, tenantWord);
  }

  /** 0 when the tenant holds nothing. */
  firstOfTenant(tenant: number): number {
    return this.#firstOfTenant[tenant] ?? 0;
  }

  use(holding: number): number {
    const node = this.node(holding);
    return node.newestHolding === holding ? node.newestUse : this.storedUse(holding);
  }

  setUse(holding: number, use: number): void {
    const node = this.node(holding);
    if (node.newestHolding === holding) node.newestUse = use;
    else this.storeUse(holding, use);
  }

  storedUse(holding: number): number {
    const use = (this.#chunks[holding >> chunkShift] as Chunk<Label>).uses[holding & withinChunk] as number;
    // An engine keeps a small integer in the node itself, and any other number in an object of its own beside it.
    return use <= maxSmallInteger ? use | 0 : use;
  }

  storeUse(holding: number, use: number): void {
    (this.#chunks[holding >> chunkShift] as Chunk<Label>).uses[holding & withinChunk] = use;
  }

  word(holding: number, word: number): number {
    const { words } = this.#chunks[holding >> chunkShift] as Chunk<Label>;
    return words[(holding & withinChunk) * holdingWords + word] as number;
  }

  setWord(holding: number, word: number, value: number): void {
    const { words } = this.#chunks[holding >> chunkShift] as Chunk<Label>;
    words[(holding & withinChunk) * holdingWords + word] = value;
  }
}
