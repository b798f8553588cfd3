/**
 * The prefix tree of token requests (section D of spec 05): a unit is a token id, and only whole pages of `blockSize`
 * ids are matched, kept and split at (CA-30, CA-39). Labels are compared in bulk; a match and the insert that follows
 * share one descent. Any 32-bit ids, any page size.
 */
import { checkObject, RoutingConfigError } from '../errors.js';
import { allOf } from '../runtime/all-of.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import { checkNamespace } from './namespace.js';
import type { PrefixTree, RestoreResult, TreeMatch, TreePiece, TreePlacement } from './prefix-tree.js';
import { printTree } from './print-tree.js';
import { RadixCore } from './radix-core.js';
import { childOf, RadixNode } from './radix-node.js';
import { RadixPath } from './radix-path.js';
import { isKnown, matchAt, merge, record } from './radix-record.js';
import { TokenLabels, type TokenSlab } from './radix-tokens.js';
import { checkedBudget, evictTreeTo, maintainTree, settle } from './radix-upkeep.js';
import { checkTokenList, isTokenId, type TokenIds } from './token-ids.js';
import { TokenRequest } from './token-request.js';
import { type LabelReader, piecesOf, placementsOf, restorePiece } from './tree-snapshot.js';
import { checkUse } from './use.js';

/** How large a token tree may grow, and its pages. */
export interface TokenTreeOptions {
  /** Budget in tokens, summed over tenants (CF-28). */
  readonly maxTreeSize: number;
  /** Tokens per page, a positive integer. */
  readonly blockSize: number;
  /**
   * Salt of the page hash, a 32-bit integer; no result depends on it. Give a secret one where clients choose the tokens,
   * so that none can make pages collide and the tree slow. Default 0.
   */
  readonly salt?: number | undefined;
}

/** A prefix tree over token ids that works in whole pages of `blockSize` ids (CA-30, CA-33, CA-39). */
export class TokenTree implements PrefixTree<TokenIds, number[]> {
  readonly #labels: TokenLabels;
  readonly #core: RadixCore<TokenSlab>;
  readonly #pageSize: number;
  readonly #path = new RadixPath<TokenSlab>();
  readonly #request: TokenRequest;
  /** The request `#path` belongs to, at which version of the tree; undefined when it belongs to none. */
  #tokens: TokenIds | undefined = undefined;
  #namespace: string | undefined = undefined;
  #version = 0;
  /** What `#agreeingChild` tells besides the child: the key it looked for, and the ids the child agrees for. */
  #key = 0;
  #agreed = 0;

  /** @throws RoutingConfigError when the budget is no number above 0, or the page size no positive integer */
  constructor(options: TokenTreeOptions) {
    const { blockSize } = checkObject(options);
    if (!Number.isSafeInteger(blockSize) || blockSize < 1) {
      throw new RoutingConfigError('blockSize', blockSize, 'must be a positive integer');
    }
    this.#pageSize = blockSize;
    this.#request = new TokenRequest(blockSize);
    this.#labels = new TokenLabels(blockSize, options.salt ?? 0);
    this.#core = new RadixCore(this.#labels, checkedBudget(options.maxTreeSize));
  }

  get size(): number {
    return this.#core.tenants.size;
  }

  get tenantCount(): number {
    return this.#core.tenants.count;
  }

  get nodeCount(): number {
    return this.#core.nodeCount;
  }

  get lastUse(): number {
    return this.#core.lastUse;
  }

  get maxTreeSize(): number {
    return this.#core.maxTreeSize;
  }

  set maxTreeSize(units: number) {
    this.#core.maxTreeSize = checkedBudget(units);
  }

  match(tokens: TokenIds, namespace?: string): TreeMatch {
    this.#descend(tokens, namespace);
    return matchAt(this.#core, this.#path);
  }

  insert(tokens: TokenIds, worker: WorkerId, namespace?: string): number {
    checkTokenList(tokens);
    if (!this.#continues(tokens, namespace)) this.#descend(tokens, namespace);
    this.#tokens = undefined;
    const tenant = this.#core.tenants.numberOf(worker);
    if (this.#request.length === 0) return 0;
    const end = this.#endNode(namespace);
    this.#request.release();
    return record(this.#core, end, tenant);
  }

  insertPlacement(tokens: TokenIds, worker: WorkerId, use: number, namespace?: string): boolean {
    checkUse(use);
    this.#descend(tokens, namespace);
    this.#tokens = undefined;
    const core = this.#core;
    const path = this.#path;
    const tenant = core.tenants.numberOf(worker);
    core.lastUse = Math.max(core.lastUse, use);
    if (this.#request.length === 0) return false;
    const isNew = path.knownUnits < this.#request.length || !isKnown(core, path, tenant, use);
    if (isNew) merge(core, this.#endNode(namespace), tenant, use);
    this.#request.release();
    return isNew;
  }

  addTenant(worker: WorkerId): void {
    this.#core.tenants.numberOf(worker);
  }

  removeTenant(worker: WorkerId): void {
    if (this.#core.tenants.remove(worker)) settle(this.#core, 0);
  }

  sizeOf(worker: WorkerId): number {
    return this.#core.tenants.sizeOf(worker);
  }

  hasTenant(worker: WorkerId): boolean {
    return this.#core.tenants.has(worker);
  }

  tenants(): WorkerId[] {
    return this.#core.tenants.ids();
  }

  maintain(budget: MaintenanceBudget): boolean {
    // Lets go of the last match, whose request may be large.
    this.#tokens = undefined;
    this.#request.release();
    return maintainTree(this.#core, budget);
  }

  evictTo(units: number): number {
    return evictTreeTo(this.#core, units);
  }

  pieces(placementsPerPiece?: number): Generator<TreePiece<number[]>, void, undefined> {
    return piecesOf(this.#core, tokenReader, placementsPerPiece);
  }

  placements(): Generator<TreePlacement<TokenIds>, void, undefined> {
    return placementsOf(this.#core, tokenReader);
  }

  restore(piece: TreePiece<number[]>, accepts: (worker: WorkerId) => boolean): RestoreResult {
    return restorePiece(this, tokenReader, piece, accepts);
  }

  printTree(): string {
    return printTree(this.#core, tokenReader);
  }

  /** Whether `#path` still is where a descent for this request would end. */
  #continues(tokens: TokenIds, namespace: string | undefined): boolean {
    if (this.#tokens !== tokens || this.#namespace !== namespace || this.#version !== this.#core.version) return false;
    const path = this.#path;
    if (path.requestUnits !== tokens.length) return false;
    if (!this.#request.isInPlace || path.knownUnits === this.#request.length) return true;
    // The array is read in place and might have been written to: what made the path end here must still hold.
    if (path.partial !== undefined) {
      return this.#agreedPages(path.knownUnits, path.partial, path.agreed) === 0;
    }
    return path.last === undefined || this.#agreeingChild(path.last, path.position) === undefined;
  }

  /** Walks down as far as whole pages agree and leaves in `#path` where that is (CA-31). */
  #descend(tokens: TokenIds, namespace: string | undefined): void {
    checkNamespace(namespace);
    this.#request.read(tokens);
    const core = this.#core;
    const path = this.#path;
    const length = this.#request.length;
    // While a removed worker's holdings wait to be reclaimed, nodes may be held by nobody who is readable.
    const mayBeDead = core.tenants.deadHoldings > 0;
    let node = core.roots.of(namespace);
    let deepest: RadixNode<TokenSlab> | undefined;
    let partial: RadixNode<TokenSlab> | undefined;
    let readable = true;
    let position = 0;
    let agreed = 0;
    let matchedUnits = 0;
    while (node !== undefined && position < length) {
      const child = this.#agreeingChild(node, position);
      if (child === undefined) break;
      if (mayBeDead && readable) readable = core.isReadable(child);
      if (readable) {
        matchedUnits += this.#agreed;
        deepest = child;
      }
      if (this.#agreed < child.units) {
        partial = child;
        agreed = this.#agreed;
        break;
      }
      position += this.#agreed;
      node = child;
    }
    path.last = node;
    path.position = position;
    path.partial = partial;
    path.agreed = agreed;
    path.knownUnits = position + agreed;
    path.matchedUnits = matchedUnits;
    path.deepest = deepest;
    path.requestUnits = tokens.length;
    this.#tokens = tokens;
    this.#namespace = namespace;
    this.#version = core.version;
  }

  /** The child that agrees with the request from `position` on for a page at least. Sets `#key` and `#agreed`. */
  #agreeingChild(node: RadixNode<TokenSlab>, position: number): RadixNode<TokenSlab> | undefined {
    this.#key = this.#labels.pageKey(this.#request.words.at, position);
    let child = childOf(node, this.#key);
    while (child !== undefined) {
      this.#agreed = this.#agreedPages(position, child, 0);
      if (this.#agreed > 0) return child;
      child = child.twin;
    }
    return undefined;
  }

  /** Ids, in whole pages, that the request from `position` on shares with a node's label from `skipped` on. */
  #agreedPages(position: number, node: RadixNode<TokenSlab>, skipped: number): number {
    const count = Math.min(node.units - skipped, this.#request.length - position);
    const agreed = this.#request.words.agreement(position, node.label.words, node.extent + skipped, count);
    return agreed - (agreed % this.#pageSize);
  }

  /** The node that ends where the request does: found, split off or added. */
  #endNode(namespace: string | undefined): RadixNode<TokenSlab> {
    const core = this.#core;
    const { last, partial, agreed, knownUnits } = this.#path;
    const parent = partial === undefined ? last : core.split(partial, agreed);
    if (knownUnits === this.#request.length && parent !== undefined) return parent;
    const leaf = new RadixNode(this.#labels.empty, parent ?? core.roots.add(namespace as string));
    this.#labels.put(leaf, this.#request.words, knownUnits, this.#request.length - knownUnits);
    // The descent ended by looking for this page, unless it ended inside a node or had nowhere to look.
    core.addNode(partial === undefined && last !== undefined ? this.#key : this.#labels.keyOf(leaf), leaf);
    return leaf;
  }
}

const tokenReader: LabelReader<TokenSlab, number[], Uint32Array> = {
  partOf: (node) => Array.from(node.label.words.at.subarray(node.extent, node.extent + node.units)),
  unitsOf: joined,
  isPart: (value): value is number[] => Array.isArray(value) && value.length > 0 && allOf(value, isTokenId),
};

function joined(parts: readonly (readonly number[])[]): Uint32Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const tokens = new Uint32Array(length);
  let end = 0;
  for (const part of parts) {
    tokens.set(part, end);
    end += part.length;
  }
  return tokens;
}
