/**
 * What both prefix trees do alike: recording a path for a tenant, splitting and joining nodes, evicting and reclaiming
 * one holding. When to evict is said in `radix-upkeep.ts`; how labels are stored and compared is the trees' business
 * (`Labels`).
 *
 * Invariants between calls: nobody holds a root; a living tenant of a node holds all nodes above it, with a use at least
 * as late (CA-30); `size` equals a recount (B05, B78); a node somebody holds or that has children, and no other, is in
 * the tree; no node has an only child with the same tenants and uses that a removal left behind (B07).
 *
 * Recording is O(nodes of the path), evicting or reclaiming one holding O(1) apart from joins, which copy at most
 * `maxJoinedUnits`.
 */
import type { WorkerId } from '../workers/candidate.js';
import { Ends } from './radix-ends.js';
import { Holders } from './radix-holders.js';
import { Holdings } from './radix-holdings.js';
import { addChild, hasChildren, onlyChild, RadixNode, removeChild, replaceChild } from './radix-node.js';
import { Roots } from './radix-roots.js';
import { Tenants } from './radix-tenants.js';

/** What a tree knows about its labels. */
export interface Labels<Label> {
  /** The label of roots and of removed nodes. */
  readonly empty: Label;
  /** The key of a node under its parent. */
  keyOf(node: RadixNode<Label>): number;
  /** Cuts a label: the first `length` storage units go to `head`, the rest stays. Sets the units of both. */
  split(node: RadixNode<Label>, head: RadixNode<Label>, length: number): void;
  /** Puts the label of `head`, which is about to go, in front of that of its only child. */
  join(head: RadixNode<Label>, tail: RadixNode<Label>): void;
  /** The node was removed: its label space is free. */
  release(node: RadixNode<Label>): void;
  /** Moves labels out of sparse memory, in proportion to what was released lately. */
  compact(): void;
  /** Moves a few labels; returns whether more would be worth it. */
  compactSome(): boolean;
}

/** Holdings that any tree may keep, and the units of its budget that allow for one more when it is large. */
const minHoldings = 65_536;
const unitsPerHolding = 16;

/** Joining copies labels; longer ones stay apart, so that an eviction step stays short. */
const maxJoinedUnits = 16_384;

export class RadixCore<Label> {
  readonly tenants: Tenants = new Tenants();
  readonly holdings: Holdings<Label> = new Holdings();
  readonly ends: Ends<Label> = new Ends(this.holdings);
  readonly holders: Holders<Label> = new Holders(this.holdings, this.tenants);
  readonly labels: Labels<Label>;
  readonly roots: Roots<Label>;
  /** Nodes in memory, roots not counted. */
  nodeCount = 0;
  /** The last use given out, here or elsewhere. */
  lastUse = 0;
  /** Requests recorded and placements merged. */
  recordings = 0;
  maxTreeSize: number;
  /** Holdings that splits have made since `settle` last took note of them. */
  copiedHoldings = 0;
  /** Changes whenever nodes were removed, split or joined other than by the insert that continues from a match. */
  version = 0;

  constructor(labels: Labels<Label>, maxTreeSize: number) {
    this.labels = labels;
    this.maxTreeSize = maxTreeSize;
    this.roots = new Roots(labels.empty);
  }

  /**
   * Whether something must be evicted. Besides units, holdings count: a tree of labels of a unit or two would take
   * hundreds of times its size in memory otherwise (LB-31). Prompts of ordinary length never come near that bound.
   */
  isOverBudget(): boolean {
    const { size, liveHoldings } = this.tenants;
    return size > this.maxTreeSize || (liveHoldings > minHoldings && liveHoldings > this.maxTreeSize / unitsPerHolding);
  }

  // Reading.

  /** Whether a living tenant holds the node. Always true while nothing waits to be reclaimed. */
  isReadable(node: RadixNode<Label>): boolean {
    for (let holding = node.newestHolding; holding !== 0; holding = this.holders.older(holding)) {
      if (this.tenants.workerOf(this.holdings.tenant(holding)) !== undefined) return true;
    }
    return false;
  }

  /** The living tenants of a node, newest first, at most `limit` (CA-32). */
  tenantsOf(node: RadixNode<Label>, limit: number): WorkerId[] {
    const { holders, holdings, tenants } = this;
    const newest = tenants.workerOf(node.newestTenant);
    if (node.holders === 1) return newest === undefined ? [] : [newest];
    const workers: WorkerId[] = [];
    for (let holding = node.newestHolding; holding !== 0 && workers.length < limit; holding = holders.older(holding)) {
      const worker = tenants.workerOf(holdings.tenant(holding));
      if (worker !== undefined) workers.push(worker);
    }
    return workers;
  }

  // Recording.

  /** Records `use`, later than all others, for a tenant on a node and on all nodes above it. */
  hold(last: RadixNode<Label>, tenant: number, use: number): void {
    const { ends, holders } = this;
    for (let node = last; node.parent !== undefined; node = node.parent) {
      if (node.newestTenant === tenant) {
        node.newestUse = use;
        if (node.endsHere && node !== last) ends.unlink(node, node.newestHolding);
        continue;
      }
      const holding = holders.find(node, tenant);
      if (holding === 0) {
        holders.addNewest(node, tenant, use);
        this.tenants.grow(tenant, node.units);
      } else {
        if (node !== last) ends.unlink(node, holding);
        holders.moveToNewest(node, holding);
        node.newestUse = use;
      }
    }
    ends.renew(last);
  }

  /** As `hold`, for a use that may be older than what is known: uses only rise (LB-34). */
  holdMerged(last: RadixNode<Label>, tenant: number, use: number): void {
    const { ends, holders, holdings } = this;
    for (let node = last; node.parent !== undefined; node = node.parent) {
      let holding = holders.find(node, tenant);
      const known = holding === 0 ? 0 : holdings.use(holding);
      if (holding === 0) {
        holding = holdings.create(node, tenant, use);
        holders.addByUse(node, holding);
        this.tenants.grow(tenant, node.units);
      } else if (known < use) {
        ends.unlink(node, holding);
        holdings.setUse(holding, use);
        holders.moveByUse(node, holding);
      } else if (known > use) {
        // So have all nodes above.
        return;
      }
      if (node !== last) ends.unlink(node, holding);
      else if (known < use) ends.linkByUse(node, holding);
    }
  }

  /** Adds a new leaf under its parent. */
  addNode(key: number, node: RadixNode<Label>): void {
    addChild(node.parent as RadixNode<Label>, key, node);
    this.nodeCount++;
  }

  /** Cuts a node after `length` storage units and returns the new node in front; both have the same living tenants. */
  split(node: RadixNode<Label>, length: number): RadixNode<Label> {
    const parent = node.parent as RadixNode<Label>;
    const head = new RadixNode<Label>(this.labels.empty, parent);
    replaceChild(parent, this.labels.keyOf(node), node, head);
    this.labels.split(node, head, length);
    addChild(head, this.labels.keyOf(node), node);
    node.parent = head;
    this.nodeCount++;
    let newer = 0;
    for (let holding = node.newestHolding; holding !== 0; holding = this.holders.older(holding)) {
      const tenant = this.holdings.tenant(holding);
      if (this.tenants.workerOf(tenant) === undefined) continue;
      const copy = this.holdings.create(head, tenant, this.holdings.use(holding));
      this.holders.add(head, copy, newer);
      this.tenants.grow(tenant, 0);
      this.copiedHoldings++;
      newer = copy;
    }
    return head;
  }

  // Removing.

  /** Takes the least recently used (leaf, tenant) away (CA-42); returns its units, −1 when there is none. */
  evictOldest(): number {
    const { ends, holders, holdings, tenants } = this;
    const end = ends.oldest();
    if (end === 0) return -1;
    const node = holdings.node(end);
    const tenant = holdings.tenant(end);
    const units = tenants.workerOf(tenant) === undefined ? 0 : node.units;
    // The insert that ended here left its use on the node above, unless a later one overwrote it: that node is next.
    // (Merged placements may have given other nodes below it the same use; they come before it.)
    const parent = node.parent as RadixNode<Label>;
    const above = holders.find(parent, tenant);
    if (above !== 0 && !ends.has(above) && holdings.use(above) === holdings.use(end)) {
      ends.linkOldest(parent, above);
    }
    this.#release(end, node);
    return units;
  }

  /** Frees one holding of a removed worker, if any is left. */
  reclaimOne(): void {
    const dead = this.tenants.someDead();
    if (dead === undefined) return;
    const holding = this.holdings.firstOfTenant(dead);
    this.#release(holding, this.holdings.node(holding));
  }

  #release(holding: number, node: RadixNode<Label>): void {
    this.version++;
    this.tenants.shrink(this.holdings.tenant(holding), node.units);
    this.#free(holding, node);
    let current = node;
    while (current.newestHolding === 0 && !hasChildren(current)) {
      const parent = current.parent;
      if (parent === undefined) {
        this.roots.drop(current);
        return;
      }
      this.#removeNode(current, parent);
      current = parent;
    }
    // Only what this removal may have made alike is joined, so that evictions stay as fine as the inserts were.
    const child = onlyChild(current);
    const lower = child !== undefined && this.#join(current, child) ? child : current;
    if (current !== node) return;
    const parent = lower.parent as RadixNode<Label>;
    if (onlyChild(parent) === lower) this.#join(parent, lower);
  }

  #free(holding: number, node: RadixNode<Label>): void {
    this.ends.unlink(node, holding);
    this.holders.remove(node, holding);
    this.holdings.free(holding);
  }

  #removeNode(node: RadixNode<Label>, parent: RadixNode<Label>): void {
    removeChild(parent, this.labels.keyOf(node), node);
    this.labels.release(node);
    // A match remembers its path: what it still refers to must not keep anything alive.
    node.label = this.labels.empty;
    node.parent = undefined;
    this.nodeCount--;
  }

  /** Joins a node with its only child when nothing tells them apart (B07). The child takes the node's place. */
  #join(node: RadixNode<Label>, child: RadixNode<Label>): boolean {
    const { holdings, tenants } = this;
    const parent = node.parent;
    if (parent === undefined || node.units + child.units > maxJoinedUnits || !this.#sameHolders(node, child)) {
      return false;
    }
    const key = this.labels.keyOf(node);
    this.labels.join(node, child);
    child.parent = parent;
    replaceChild(parent, key, node, child);
    while (node.newestHolding !== 0) {
      const holding = node.newestHolding;
      tenants.shrink(holdings.tenant(holding), 0);
      this.#free(holding, node);
    }
    node.label = this.labels.empty;
    node.parent = undefined;
    this.nodeCount--;
    return true;
  }

  #sameHolders(a: RadixNode<Label>, b: RadixNode<Label>): boolean {
    const { holders, holdings } = this;
    let ofA = a.newestHolding;
    let ofB = b.newestHolding;
    while (ofA !== 0 && ofB !== 0) {
      if (holdings.use(ofA) !== holdings.use(ofB) || holdings.tenant(ofA) !== holdings.tenant(ofB)) return false;
      ofA = holders.older(ofA);
      ofB = holders.older(ofB);
    }
    return ofA === ofB;
  }
}
