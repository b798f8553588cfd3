/**
 * What the two prefix trees have in common for those who use them. A tree remembers which workers were given which
 * prompts, as a radix tree per (model, kind): a unit is a Unicode code point in the `StringTree`, a token id in the
 * `TokenTree`, which works in whole pages (CA-30). Inside the trees a worker is called a tenant.
 *
 * Every insert has a use: the reading of the tree's own counter, 1, 2, 3 … A tenant's use at a node is that of its last
 * insert through the node; it orders tenants (CA-32), evictions (CA-42, CA-43) and merges (LB-34). No clock is involved.
 */
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';

/** The state of the tree for one request, before anything is recorded for it (CA-31, CA-38). */
export interface TreeMatch {
  /** Leading units of the request the tree knows. Token tree: whole pages. */
  readonly matchedUnits: number;
  /** Length of the request in the same units: code points, or token ids not rounded to pages (CA-33). */
  readonly requestUnits: number;
  /** The most recent tenants of the deepest matched node, newest first, at most 8 (CA-32). Empty when nothing matched. */
  readonly tenants: readonly WorkerId[];
}

/** At most this many tenants are listed by a match (CA-31). */
export const maxListedTenants = 8;

/** One remembered placement: `worker` was given `units` as the tree's `use`-th recorded request (LB-34). */
export interface TreePlacement<Units> {
  /** The key of its cache partition; undefined for requests without one. */
  readonly namespace: string | undefined;
  /** The whole path. Of a string tree this is prompt text. */
  readonly units: Units;
  readonly worker: WorkerId;
  readonly use: number;
}

/**
 * A bounded part of a tree as plain data (arrays, strings and finite numbers: safe for JSON and structured clone).
 * Nodes are listed once, parents before children, so prefixes that placements share are not repeated inside a piece.
 */
export interface TreePiece<Label> {
  /** The workers that `holds` names by index. */
  readonly workers: readonly WorkerId[];
  /** The namespaces whose roots `parents` names; null is the one of requests without a namespace. */
  readonly namespaces: readonly (string | null)[];
  /** Per node: the index of its parent node, or −1 − n for the root of namespace n. */
  readonly parents: readonly number[];
  /** Per node: the units between its parent and itself. */
  readonly labels: readonly Label[];
  /** Placements, oldest use first, three numbers each: node, worker, use. */
  readonly holds: readonly number[];
}

/** What restoring a piece did. */
export interface RestoreResult {
  /** Placements taken over. */
  readonly restored: number;
  /** Placements of workers the caller does not know (LB-33), and malformed ones. */
  readonly skipped: number;
}

/**
 * A prefix tree. Everything is synchronous. Worker ids and namespaces may be any string, `__proto__` included.
 *
 * @typeParam Units what a request is made of: `string`, or token ids
 * @typeParam Label a node's share of it in a snapshot
 */
export interface PrefixTree<Units, Label> {
  /** Units held, summed over tenants: each unit counts once per tenant of its node (CA-39). */
  readonly size: number;
  /** Registered tenants, also those that hold nothing (CA-40). */
  readonly tenantCount: number;
  /** Nodes in memory, roots not counted. */
  readonly nodeCount: number;
  /** The last use given out; 0 before the first insert. */
  readonly lastUse: number;
  /**
   * The budget for `size`, above 0 (CF-28); RoutingConfigError for one that is not. May be changed at any time; a smaller one is reached in bounded steps (LB-32).
   * A tree also keeps at most the larger of 65 536 and a sixteenth of it in (node, tenant) pairs, so that its memory is
   * bounded when nodes hold a unit or two: besides its label a node takes 240 to 350 bytes, a further tenant 90 (LB-31).
   */
  maxTreeSize: number;

  /**
   * Finds the longest known prefix (CA-31). Changes nothing that can be observed (B03).
   *
   * @throws TypeError for a request or a namespace of the wrong type (LB-42)
   */
  match(units: Units, namespace?: string): TreeMatch;
  /**
   * Records the request for `worker`, registering it when necessary, and evicts what the budget requires (LB-32).
   * Right after a `match` of the same units and namespace it continues from there instead of descending again.
   *
   * @returns the use the placement got; 0 when there was nothing to record (no unit, or no whole page)
   * @throws TypeError for a request, a worker or a namespace of the wrong type, before anything changes (LB-42)
   */
  insert(units: Units, worker: WorkerId, namespace?: string): number;
  /**
   * Merges a placement made elsewhere (LB-34): the tenant's use along the path becomes the larger of the known and the
   * given one, so the order in which placements arrive, and repetitions, make no difference.
   *
   * @returns whether anything changed
   * @throws TypeError as `insert`, and for a use no tree can have given out, before anything changes
   */
  insertPlacement(units: Units, worker: WorkerId, use: number, namespace?: string): boolean;

  /** Registers a worker that holds nothing yet (CA-40). Does nothing when it is registered. @throws TypeError for no string */
  addTenant(worker: WorkerId): void;
  /** Forgets a worker: unreadable and its size gone at once; the memory is reclaimed by later calls (CA-44). */
  removeTenant(worker: WorkerId): void;
  /** Units held by one worker; 0 for one that is not registered. */
  sizeOf(worker: WorkerId): number;
  /** Whether a worker is registered. */
  hasTenant(worker: WorkerId): boolean;
  /** Registered workers in registration order. */
  tenants(): WorkerId[];

  /** Reclaims and evicts until nothing is left to do or the budget is spent; returns whether work is left (LB-5). */
  maintain(budget: MaintenanceBudget): boolean;
  /**
   * Evicts in one go, least recently used first, until `size` ≤ `units` (CA-42). Returns the units evicted.
   *
   * @throws TypeError when `units` is no number
   */
  evictTo(units: number): number;

  /**
   * The placements as snapshot pieces of at most `placementsPerPiece` (default 256), fewer when prompts are long, oldest
   * use first (LB-33). Other calls may come between pieces: what is recorded meanwhile may be included or not, nothing is
   * listed wrongly, and each recording makes the next piece larger by one placement at most.
   *
   * @throws TypeError with the first piece, when `placementsPerPiece` is no number
   */
  pieces(placementsPerPiece?: number): Generator<TreePiece<Label>, void, undefined>;
  /** The placements one by one, oldest use first, each with its whole path. */
  placements(): Generator<TreePlacement<Units>, void, undefined>;
  /**
   * Merges a piece, for the workers `accepts` knows. Malformed parts are skipped and counted (LB-33).
   *
   * @throws TypeError when `accepts` is no function
   */
  restore(piece: TreePiece<Label>, accepts: (worker: WorkerId) => boolean): RestoreResult;

  /** The tree as indented text, for debugging. It shows prompt text and worker ids: never log it in production. */
  printTree(): string;
}
