/**
 * Reading a prefix tree out and back in (LB-33, LB-34). The ends of a tree with their uses describe it completely (see
 * `Ends`), so a snapshot lists them, oldest first, in pieces; inside a piece each node is written once. Merging the
 * pieces into an empty tree, in any order, gives the same tree.
 */
import { checkNumber, refuse } from '../errors.js';
import type { WorkerId } from '../workers/candidate.js';
import { EndsWalk } from './ends-walk.js';
import { indexIn } from './index-in.js';
import type { PrefixTree, RestoreResult, TreePiece, TreePlacement } from './prefix-tree.js';
import type { RadixCore } from './radix-core.js';
import type { RadixNode } from './radix-node.js';
import { isUse } from './use.js';

/** How a tree's labels are read: `Part` is a label as plain data, `Units` a whole request. */
export interface LabelReader<Label, Part, Units> {
  partOf(node: RadixNode<Label>): Part;
  unitsOf(parts: readonly Part[]): Units;
  /** Whether a value from a snapshot is a label that is not empty. */
  isPart(value: unknown): value is Part;
}

const defaultPlacementsPerPiece = 256;

/** A piece whose labels hold this many units is full with fewer placements: long prompts must not make it slow. */
const unitsPerPiece = 16_384;

/**
 * The pieces of a tree, which may change between two of them (see `EndsWalk`).
 *
 * @throws TypeError with the first piece, for a number of placements that is no number
 */
export function* piecesOf<Label, Part>(
  core: RadixCore<Label>,
  reader: LabelReader<Label, Part, unknown>,
  placementsPerPiece: number = defaultPlacementsPerPiece,
): Generator<TreePiece<Part>, void, undefined> {
  checkNumber(placementsPerPiece, 'placementsPerPiece');
  const walk = new EndsWalk(core);
  let piece = new PieceWriter(core, reader);
  for (let ends = walk.next(); ends.length > 0; ends = walk.next()) {
    for (const end of ends) piece.add(end);
    if (piece.placements < placementsPerPiece && piece.units < unitsPerPiece) continue;
    yield piece.written();
    piece = new PieceWriter(core, reader);
  }
  if (piece.placements > 0) yield piece.written();
}

/** The placements one by one; the tree may change in between, as for `piecesOf`. */
export function* placementsOf<Label, Part, Units>(
  core: RadixCore<Label>,
  reader: LabelReader<Label, Part, Units>,
): Generator<TreePlacement<Units>, void, undefined> {
  const walk = new EndsWalk(core);
  for (let ends = walk.next(); ends.length > 0; ends = walk.next()) {
    for (const end of ends) {
      // It may have gone while the last one was looked at; its place may have been given to another end, which is as good.
      const worker = core.ends.has(end) ? core.tenants.workerOf(core.holdings.tenant(end)) : undefined;
      if (worker === undefined) continue;
      const parts: Part[] = [];
      let node = core.holdings.node(end);
      for (; node.parent !== undefined; node = node.parent) parts.push(reader.partOf(node));
      const use = core.holdings.use(end);
      yield { namespace: core.roots.namespaceOf(node), units: reader.unitsOf(parts.reverse()), worker, use };
    }
  }
}

class PieceWriter<Label, Part> {
  placements = 0;
  /** Units of the labels written. */
  units = 0;
  readonly #core: RadixCore<Label>;
  readonly #reader: LabelReader<Label, Part, unknown>;
  readonly #nodes = new Map<RadixNode<Label>, number>();
  readonly #workers = new Map<WorkerId, number>();
  readonly #namespaces = new Map<string | null, number>();
  readonly #parents: number[] = [];
  readonly #labels: Part[] = [];
  readonly #holds: number[] = [];

  constructor(core: RadixCore<Label>, reader: LabelReader<Label, Part, unknown>) {
    this.#core = core;
    this.#reader = reader;
  }

  add(end: number): void {
    const { holdings, tenants } = this.#core;
    const worker = tenants.workerOf(holdings.tenant(end)) as WorkerId;
    this.placements += 1;
    this.#holds.push(this.#indexOf(holdings.node(end)), indexIn(this.#workers, worker), holdings.use(end));
  }

  written(): TreePiece<Part> {
    return {
      workers: [...this.#workers.keys()],
      namespaces: [...this.#namespaces.keys()],
      parents: this.#parents,
      labels: this.#labels,
      holds: this.#holds,
    };
  }

  /** The index of a node in the piece; writes it, and what is missing above it, when it is new. */
  #indexOf(node: RadixNode<Label>): number {
    const missing: RadixNode<Label>[] = [];
    let above: RadixNode<Label> = node;
    let index: number | undefined;
    for (;;) {
      index = this.#nodes.get(above);
      if (index !== undefined) break;
      if (above.parent === undefined) {
        index = -1 - indexIn(this.#namespaces, this.#core.roots.namespaceOf(above) ?? null);
        break;
      }
      missing.push(above);
      above = above.parent;
    }
    for (let i = missing.length - 1; i >= 0; i--) {
      const next = missing[i] as RadixNode<Label>;
      this.#parents.push(index);
      this.#labels.push(this.#reader.partOf(next));
      this.units += next.units;
      index = this.#parents.length - 1;
      this.#nodes.set(next, index);
    }
    return index;
  }
}

/** Merges a piece. It comes from outside: what does not fit is skipped and counted (LB-33). */
export function restorePiece<Label, Part, Units>(
  tree: PrefixTree<Units, Part>,
  reader: LabelReader<Label, Part, Units>,
  piece: TreePiece<Part>,
  accepts: (worker: WorkerId) => boolean,
): RestoreResult {
  if (typeof accepts !== 'function') throw refuse('accepts', 'a function', accepts);
  const { workers, namespaces, parents, labels, holds } = (piece ?? {}) as TreePiece<Part>;
  if (![workers, namespaces, parents, labels, holds].every(Array.isArray)) return { restored: 0, skipped: 1 };
  let restored = 0;
  let skipped = 0;
  // Placements share beginnings: each label is checked once.
  const areParts: boolean[] = [];
  for (let i = 0; i < holds.length; i += 3) {
    const worker = workers[givenIndex(holds[i + 1])];
    const use = holds[i + 2];
    const parts: Part[] = [];
    let node = givenIndex(holds[i]);
    while (node >= 0) {
      const part = labels[node] as Part;
      const parent: unknown = parents[node];
      // Parents come first: anything else might never end.
      if (!Number.isInteger(parent) || (parent as number) >= node) break;
      areParts[node] ??= reader.isPart(part);
      if (!areParts[node]) break;
      parts.push(part);
      node = parent as number;
    }
    const namespace = node < 0 ? namespaces[-1 - node] : undefined;
    const isWhole = parts.length > 0 && (namespace === null || typeof namespace === 'string');
    if (!isWhole || typeof worker !== 'string' || !isUse(use) || !accepts(worker)) {
      skipped++;
      continue;
    }
    tree.insertPlacement(reader.unitsOf(parts.reverse()), worker, use, namespace ?? undefined);
    restored++;
  }
  return { restored, skipped };
}

/** The index that a piece from outside gives; what is none leads nowhere. */
function givenIndex(value: unknown): number {
  return typeof value === 'number' ? value : Number.NaN;
}
