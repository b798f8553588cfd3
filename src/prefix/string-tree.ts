/**
 * The prefix tree of text requests (section D of spec 05): a unit is a Unicode code point, sizes and ratios count code
 * points whatever the encoding (B02). The descent compares whole labels natively; a match and the insert that follows
 * share one descent. No recursion anywhere: a prompt of many megabytes is an ordinary input (B90).
 */
import { checkObject, refuse } from '../errors.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import { countCodePoints } from '../runtime/text.js';
import type { WorkerId } from '../workers/candidate.js';
import { checkNamespace } from './namespace.js';
import type { PrefixTree, RestoreResult, TreeMatch, TreePiece, TreePlacement } from './prefix-tree.js';
import { printTree } from './print-tree.js';
import { RadixCore } from './radix-core.js';
import { childOf, RadixNode } from './radix-node.js';
import { RadixPath } from './radix-path.js';
import { isKnown, matchAt, merge, record } from './radix-record.js';
import { agreement, codePointsOf, copyText, insidePair, textKey, textLabels } from './radix-text.js';
import { checkedBudget, evictTreeTo, maintainTree, settle } from './radix-upkeep.js';
import { type LabelReader, piecesOf, placementsOf, restorePiece } from './tree-snapshot.js';
import { checkUse } from './use.js';

/** How large a string tree may grow. */
export interface StringTreeOptions {
  /** Budget in code points, summed over tenants (CF-28). */
  readonly maxTreeSize: number;
}

/** A prefix tree over text; units are Unicode code points (CA-30). */
export class StringTree implements PrefixTree<string, string> {
  readonly #core: RadixCore<string>;
  readonly #path = new RadixPath<string>();
  /** The request `#path` belongs to, at which version of the tree; undefined when it belongs to none. */
  #text: string | undefined = undefined;
  #namespace: string | undefined = undefined;
  #version = 0;

  /** @throws RoutingConfigError when the budget is no number above 0 */
  constructor(options: StringTreeOptions) {
    this.#core = new RadixCore(textLabels, checkedBudget(checkObject(options).maxTreeSize));
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

  match(text: string, namespace?: string): TreeMatch {
    checkRequest(text, namespace);
    this.#descend(text, namespace);
    return matchAt(this.#core, this.#path);
  }

  insert(text: string, worker: WorkerId, namespace?: string): number {
    checkRequest(text, namespace);
    const core = this.#core;
    const tenant = core.tenants.numberOf(worker);
    if (text.length === 0) return 0;
    if (this.#text !== text || this.#namespace !== namespace || this.#version !== core.version) {
      this.#descend(text, namespace);
    }
    this.#text = undefined;
    return record(core, this.#endNode(text, namespace), tenant);
  }

  insertPlacement(text: string, worker: WorkerId, use: number, namespace?: string): boolean {
    checkRequest(text, namespace);
    checkUse(use);
    const core = this.#core;
    const tenant = core.tenants.numberOf(worker);
    core.lastUse = Math.max(core.lastUse, use);
    if (text.length === 0) return false;
    this.#descend(text, namespace);
    this.#text = undefined;
    const path = this.#path;
    const isNew = path.position + path.agreed < text.length || !isKnown(core, path, tenant, use);
    if (isNew) merge(core, this.#endNode(text, namespace), tenant, use);
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
    // Lets go of the last match, whose text may be large.
    this.#text = undefined;
    return maintainTree(this.#core, budget);
  }

  evictTo(units: number): number {
    return evictTreeTo(this.#core, units);
  }

  pieces(placementsPerPiece?: number): Generator<TreePiece<string>, void, undefined> {
    return piecesOf(this.#core, textReader, placementsPerPiece);
  }

  placements(): Generator<TreePlacement<string>, void, undefined> {
    return placementsOf(this.#core, textReader);
  }

  restore(piece: TreePiece<string>, accepts: (worker: WorkerId) => boolean): RestoreResult {
    return restorePiece(this, textReader, piece, accepts);
  }

  printTree(): string {
    return printTree(this.#core, textReader);
  }

  /** Walks down as far as the text agrees and leaves in `#path` where that is (CA-31). */
  #descend(text: string, namespace: string | undefined): void {
    const core = this.#core;
    const path = this.#path;
    // While a removed worker's holdings wait to be reclaimed, nodes may be held by nobody who is readable.
    const mayBeDead = core.tenants.deadHoldings > 0;
    const length = text.length;
    let node = core.roots.of(namespace);
    let deepest: RadixNode<string> | undefined;
    let partial: RadixNode<string> | undefined;
    let readable = true;
    let position = 0;
    let agreed = 0;
    let knownUnits = 0;
    let matchedUnits = 0;
    while (node !== undefined && position < length) {
      const key = textKey(text, position);
      if (key === insidePair) {
        // The label ends with a lone surrogate, the text goes on with its partner: they differ in the last unit.
        partial = node;
        agreed = node.length - 1;
        position -= node.length;
        node = node.parent;
        knownUnits--;
        if (readable) matchedUnits--;
        break;
      }
      const child = childOf(node, key);
      if (child === undefined) break;
      const { label } = child;
      let units = child.units;
      const end = position + child.length;
      if (text.substring(position, end) !== label) {
        partial = child;
        agreed = agreement(text, position, label, Math.min(child.length, length - position));
        units = codePointsOf(child, agreed);
      }
      knownUnits += units;
      if (mayBeDead && readable) readable = core.isReadable(child);
      if (readable) {
        matchedUnits += units;
        deepest = child;
      }
      if (partial !== undefined) break;
      position = end;
      node = child;
    }
    const known = position + agreed;
    path.last = node;
    path.position = position;
    path.partial = partial;
    path.agreed = agreed;
    path.knownUnits = knownUnits;
    path.matchedUnits = matchedUnits;
    path.deepest = deepest;
    path.requestUnits = known === length ? knownUnits : knownUnits + countCodePoints(text.substring(known));
    this.#text = text;
    this.#namespace = namespace;
    this.#version = core.version;
  }

  /** The node that ends where the request does: found, split off or added. */
  #endNode(text: string, namespace: string | undefined): RadixNode<string> {
    const core = this.#core;
    const { last, partial, agreed, position, knownUnits, requestUnits } = this.#path;
    const parent = partial === undefined ? last : core.split(partial, agreed);
    const known = position + agreed;
    if (known === text.length && parent !== undefined) return parent;
    const leaf = new RadixNode(copyText(text, known, text.length), parent ?? core.roots.add(namespace as string));
    leaf.length = text.length - known;
    leaf.extent = leaf.length;
    leaf.units = requestUnits - knownUnits;
    core.addNode(textKey(text, known), leaf);
    return leaf;
  }
}

const textReader: LabelReader<string, string, string> = {
  partOf: (node) => node.label,
  unitsOf: (parts) => parts.join(''),
  isPart: (value): value is string => typeof value === 'string' && value.length > 0,
};

function checkRequest(text: string, namespace: string | undefined): void {
  if (typeof text !== 'string') throw refuse('text', 'a string', text);
  checkNamespace(namespace);
}
