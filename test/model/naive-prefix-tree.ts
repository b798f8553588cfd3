/**
 * A plain prefix tree over arrays of units: no cursor, no flat memory, no lists, every question answered by looking at
 * all nodes. It states what the trees of the package must do, for tests to compare them with.
 */
import { maxListedTenants, type TreeMatch } from '../../src/prefix/prefix-tree.js';

interface NaiveNode {
  label: readonly number[];
  parent: NaiveNode | undefined;
  uses: Map<string, number>;
  children: NaiveNode[];
}

export interface NaivePlacement {
  readonly namespace: string | undefined;
  readonly units: readonly number[];
  readonly worker: string;
  readonly use: number;
}

export class NaivePrefixTree {
  readonly #page: number;
  readonly #roots = new Map<string | undefined, NaiveNode>();
  readonly #tenants = new Set<string>();
  maxTreeSize: number;
  lastUse = 0;

  constructor(maxTreeSize: number, page: number) {
    this.maxTreeSize = maxTreeSize;
    this.#page = page;
  }

  get size(): number {
    return this.#nodes().reduce((size, node) => size + node.label.length * node.uses.size, 0);
  }

  get nodeCount(): number {
    return this.#nodes().length;
  }

  sizeOf(worker: string): number {
    return this.#nodes().reduce((size, node) => size + (node.uses.has(worker) ? node.label.length : 0), 0);
  }

  tenants(): string[] {
    return [...this.#tenants];
  }

  match(units: readonly number[], namespace?: string): TreeMatch {
    const { node, agree, matched } = this.#descend(units, namespace);
    const deepest = agree > 0 || node?.parent !== undefined ? node : undefined;
    const tenants = deepest === undefined ? [] : [...deepest.uses].sort(newestFirst).map(([worker]) => worker);
    return { matchedUnits: matched, requestUnits: units.length, tenants: tenants.slice(0, maxListedTenants) };
  }

  insert(units: readonly number[], worker: string, namespace?: string): number {
    this.#tenants.add(worker);
    if (units.length < this.#page) return 0;
    const use = this.lastUse + 1;
    this.insertPlacement(units, worker, use, namespace);
    return use;
  }

  insertPlacement(units: readonly number[], worker: string, use: number, namespace?: string): boolean {
    this.#tenants.add(worker);
    this.lastUse = Math.max(this.lastUse, use);
    const path = units.slice(0, units.length - (units.length % this.#page));
    if (path.length === 0) return false;
    const { node, matched } = this.#descend(path, namespace);
    if (matched === path.length && (node?.uses.get(worker) ?? 0) >= use) return false;
    let above = this.#roots.get(namespace) ?? { label: [], parent: undefined, uses: new Map(), children: [] };
    this.#roots.set(namespace, above);
    for (let at = 0; at < path.length; at += above.label.length) {
      above = this.#nodeAt(above, path.slice(at));
      above.uses.set(worker, Math.max(above.uses.get(worker) ?? 0, use));
    }
    this.evictTo(this.maxTreeSize);
    return true;
  }

  addTenant(worker: string): void {
    this.#tenants.add(worker);
  }

  removeTenant(worker: string): void {
    this.#tenants.delete(worker);
    const held = this.#nodes().filter((node) => node.uses.delete(worker));
    for (const node of held) this.#tidy(node);
  }

  evictTo(units: number): number {
    let evicted = 0;
    for (let size = this.size; size > units; ) {
      let oldest: { node: NaiveNode; worker: string; use: number } | undefined;
      for (const node of this.#nodes()) {
        for (const [worker, use] of node.uses) {
          const isLeaf = !node.children.some((child) => child.uses.has(worker));
          if (isLeaf && (oldest === undefined || use < oldest.use)) oldest = { node, worker, use };
        }
      }
      if (oldest === undefined) throw new Error('a size above 0 without a leaf');
      oldest.node.uses.delete(oldest.worker);
      size -= oldest.node.label.length;
      evicted += oldest.node.label.length;
      this.#tidy(oldest.node);
    }
    return evicted;
  }

  /** Oldest use first. */
  placements(): NaivePlacement[] {
    const found: NaivePlacement[] = [];
    for (const [namespace, root] of this.#roots) {
      for (const node of nodesBelow(root)) {
        const units: number[] = [];
        for (let above: NaiveNode | undefined = node; above !== undefined; above = above.parent)
          units.unshift(...above.label);
        for (const [worker, use] of node.uses) {
          const goesOn = node.children.some((child) => child.uses.get(worker) === use);
          if (!goesOn) found.push({ namespace, units, worker, use });
        }
      }
    }
    return found.sort((a, b) => a.use - b.use);
  }

  #nodes(): NaiveNode[] {
    return [...this.#roots.values()].flatMap(nodesBelow);
  }

  /** The deepest node that shares a page or more with the request, and how much of its label agrees. */
  #descend(
    units: readonly number[],
    namespace: string | undefined,
  ): { node: NaiveNode | undefined; agree: number; matched: number } {
    let node = this.#roots.get(namespace);
    let agree = 0;
    let matched = 0;
    while (node !== undefined && agree === node.label.length) {
      const next: { child: NaiveNode; agree: number } | undefined = this.#agreeing(node, units.slice(matched));
      if (next === undefined) break;
      node = next.child;
      agree = next.agree;
      matched += agree;
    }
    return { node, agree, matched };
  }

  #agreeing(node: NaiveNode, units: readonly number[]): { child: NaiveNode; agree: number } | undefined {
    for (const child of node.children) {
      let agree = 0;
      while (agree < child.label.length && units[agree] === child.label[agree]) agree++;
      agree -= agree % this.#page;
      if (agree > 0) return { child, agree };
    }
    return undefined;
  }

  /** The child that ends within `units` or with them: found, cut to fit, or new. */
  #nodeAt(parent: NaiveNode, units: readonly number[]): NaiveNode {
    const found = this.#agreeing(parent, units);
    if (found === undefined) {
      const leaf: NaiveNode = { label: units, parent, uses: new Map(), children: [] };
      parent.children.push(leaf);
      return leaf;
    }
    const { child, agree } = found;
    if (agree < child.label.length) {
      const tail: NaiveNode = { ...child, label: child.label.slice(agree), parent: child, uses: new Map(child.uses) };
      for (const below of tail.children) below.parent = tail;
      child.label = child.label.slice(0, agree);
      child.children = [tail];
    }
    return child;
  }

  /** After a holder left: drops nodes nobody holds, joins what a removal made alike (B07). */
  #tidy(node: NaiveNode): void {
    let current = node;
    while (current.parent !== undefined && current.uses.size === 0 && current.children.length === 0) {
      const { parent } = current;
      parent.children = parent.children.filter((child) => child !== current);
      current = parent;
    }
    join(current);
    if (current === node && current.parent !== undefined) join(current.parent);
  }
}

function nodesBelow(root: NaiveNode): NaiveNode[] {
  return root.children.flatMap((child) => [child, ...nodesBelow(child)]);
}

function newestFirst([a, useA]: [string, number], [b, useB]: [string, number]): number {
  return useB - useA || (a < b ? -1 : 1);
}

/** Takes a node's only child in when both have the same tenants and uses. */
function join(node: NaiveNode): void {
  const [only] = node.children;
  if (node.parent === undefined || only === undefined || node.children.length > 1) return;
  if (node.uses.size !== only.uses.size) return;
  for (const [worker, use] of node.uses) if (only.uses.get(worker) !== use) return;
  node.label = [...node.label, ...only.label];
  node.children = only.children;
  for (const child of node.children) child.parent = node;
}
