/** The prefix tree of text requests: a unit is a Unicode code point (CA-30). */
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import type { PrefixTree, RestoreResult, TreeMatch, TreePiece, TreePlacement } from './prefix-tree.js';
import { PlainTree } from './radix-plain.js';

export interface StringTreeOptions {
  /** Budget in code points, summed over tenants (CF-28). */
  readonly maxTreeSize: number;
}

export class StringTree implements PrefixTree<string, string> {
  readonly #plain: PlainTree;

  constructor(options: StringTreeOptions) {
    this.#plain = new PlainTree(options.maxTreeSize, 1);
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

  match(text: string, namespace?: string): TreeMatch {
    return this.#plain.match(codePoints(text), namespace);
  }

  insert(text: string, worker: WorkerId, namespace?: string): number {
    return this.#plain.insert(codePoints(text), worker, namespace);
  }

  insertPlacement(text: string, worker: WorkerId, use: number, namespace?: string): boolean {
    return this.#plain.insertPlacement(codePoints(text), worker, use, namespace);
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

  *pieces(_placementsPerPiece?: number): Generator<TreePiece<string>, void, undefined> {}

  *placements(): Generator<TreePlacement<string>, void, undefined> {
    for (const { units, ...rest } of this.#plain.placements()) yield { ...rest, units: String.fromCodePoint(...units) };
  }

  restore(_piece: TreePiece<string>, _accepts: (worker: WorkerId) => boolean): RestoreResult {
    return { restored: 0, skipped: 0 };
  }

  printTree(): string {
    return '';
  }
}

function codePoints(text: string): number[] {
  return Array.from(text, (unit) => unit.codePointAt(0) ?? 0);
}
