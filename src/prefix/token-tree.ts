/** The prefix tree of token requests: a unit is a token id, in whole pages (CA-30). */
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import type { PrefixTree, RestoreResult, TreeMatch, TreePiece, TreePlacement } from './prefix-tree.js';
import { PlainTree } from './radix-plain.js';
import type { TokenIds } from './routing-tokens.js';

export interface TokenTreeOptions {
  /** Budget in tokens, summed over tenants (CF-28). */
  readonly maxTreeSize: number;
  /** Tokens per page; only whole pages are kept and matched. */
  readonly blockSize: number;
}

export class TokenTree implements PrefixTree<TokenIds, number[]> {
  readonly #plain: PlainTree;

  constructor(options: TokenTreeOptions) {
    this.#plain = new PlainTree(options.maxTreeSize, options.blockSize);
  }

  get size(): number {
    return this.#plain.size;
  }

  get tenantCount(): number {
    return this.#plain.tenantCount;
  }

  get nodeCount(): number {
    return this.#plain.nodeCount;
  }

  get lastUse(): number {
    return this.#plain.lastUse;
  }

  get maxTreeSize(): number {
    return this.#plain.maxTreeSize;
  }

  set maxTreeSize(units: number) {
    this.#plain.maxTreeSize = units;
  }

  match(tokens: TokenIds, namespace?: string): TreeMatch {
    return this.#plain.match(Array.from(tokens), namespace);
  }

  insert(tokens: TokenIds, worker: WorkerId, namespace?: string): number {
    return this.#plain.insert(Array.from(tokens), worker, namespace);
  }

  insertPlacement(tokens: TokenIds, worker: WorkerId, use: number, namespace?: string): boolean {
    return this.#plain.insertPlacement(Array.from(tokens), worker, use, namespace);
  }

  addTenant(worker: WorkerId): void {
    this.#plain.addTenant(worker);
  }

  removeTenant(worker: WorkerId): void {
    this.#plain.removeTenant(worker);
  }

  sizeOf(worker: WorkerId): number {
    return this.#plain.sizeOf(worker);
  }

  hasTenant(worker: WorkerId): boolean {
    return this.#plain.hasTenant(worker);
  }

  tenants(): WorkerId[] {
    return this.#plain.tenants();
  }

  maintain(budget: MaintenanceBudget): boolean {
    return this.#plain.maintain(budget);
  }

  evictTo(units: number): number {
    return this.#plain.evictTo(units);
  }

  *pieces(_placementsPerPiece?: number): Generator<TreePiece<number[]>, void, undefined> {}

  *placements(): Generator<TreePlacement<TokenIds>, void, undefined> {
    for (const { units, ...rest } of this.#plain.placements()) yield { ...rest, units };
  }

  restore(_piece: TreePiece<number[]>, _accepts: (worker: WorkerId) => boolean): RestoreResult {
    return { restored: 0, skipped: 0 };
  }

  printTree(): string {
    return '';
  }
}
