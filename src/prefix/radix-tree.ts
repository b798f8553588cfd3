/**
 * What both prefix trees do the same, whatever their units are: everything around a `RadixCore` that does not descend.
 * How requests are compared, and with it `match` and the inserts, is each tree's own.
 */
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import type { PrefixTree, RestoreResult, TreeMatch, TreePiece, TreePlacement } from './prefix-tree.js';
import { printTree } from './print-tree.js';
import type { RadixCore } from './radix-core.js';
import { checkedBudget, evictTreeTo, maintainTree, settle } from './radix-upkeep.js';
import { type LabelReader, piecesOf, placementsOf, restorePiece } from './tree-snapshot.js';

/**
 * A prefix tree without its descent.
 *
 * @typeParam Stored a label as nodes keep it
 * @typeParam Label a label as plain data
 * @typeParam Units a whole request
 */
export abstract class RadixTree<Stored, Label, Units> implements PrefixTree<Units, Label> {
  readonly #core: RadixCore<Stored>;
  readonly #reader: LabelReader<Stored, Label, Units>;

  constructor(core: RadixCore<Stored>, reader: LabelReader<Stored, Label, Units>) {
    this.#core = core;
    this.#reader = reader;
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

  abstract match(units: Units, namespace?: string): TreeMatch;

  abstract insert(units: Units, worker: WorkerId, namespace?: string): number;

  abstract insertPlacement(units: Units, worker: WorkerId, use: number, namespace?: string): boolean;

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
    return maintainTree(this.#core, budget);
  }

  evictTo(units: number): number {
    return evictTreeTo(this.#core, units);
  }

  pieces(placementsPerPiece?: number): Generator<TreePiece<Label>, void, undefined> {
    return piecesOf(this.#core, this.#reader, placementsPerPiece);
  }

  placements(): Generator<TreePlacement<Units>, void, undefined> {
    return placementsOf(this.#core, this.#reader);
  }

  restore(piece: TreePiece<Label>, accepts: (worker: WorkerId) => boolean): RestoreResult {
    return restorePiece(this, this.#reader, piece, accepts);
  }

  printTree(): string {
    return printTree(this.#core, this.#reader);
  }
}
