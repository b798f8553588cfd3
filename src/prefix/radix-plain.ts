/**
 * A plain prefix tree over arrays of units: correct and slow, the first version behind both trees.
 */
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import type { TreeMatch } from './prefix-tree.js';
import { maxListedTenants } from './prefix-tree.js';

interface PlainNode {
  label: readonly number[];
  readonly uses: Map<WorkerId, number>;
  children: PlainNode[];
}

export interface PlainPlacement {
  readonly namespace: string | undefined;
  readonly units: readonly number[];
  readonly worker: WorkerId;
  readonly use: number;
}

export class PlainTree {
  readonly #page: number;
  readonly #roots = new Map<string | undefined, PlainNode>();
  readonly #tenants = new Set<WorkerId>();
  maxTreeSize: number;
  lastUse = 0;

  constructor(maxTreeSize: number, page: number) {
    this.maxTreeSize = maxTreeSize;
    this.#page = page;
  }

  get size(): number {
    let size = 0;
    for (const root of this.#roots.values()) walk(root, (node) => (size += node.label.length * node.uses.size));
    return size;
  }

  get tenantCount(): number {
    return this.#tenants.size;
  }

  get nodeCount(): number {
    let count = 0;
    for (const root of this.#roots.values()) walk(root, () => count++);
    return count - this.#roots.size;
  }

  match(units: readonly number[], namespace: string | undefined): TreeMatch {
    let node = this.#roots.get(namespace);
    let deepest: PlainNode | undefined;
    let matched = 0;
    while (node !== undefined) {
      const found: { child: PlainNode; agree: number } | undefined = this.#agreeingChild(node, units, matched);
      if (found === undefined) break;
      deepest = found.child;
      matched += found.agree;
      node = found.agree === found.child.label.length ? found.child : undefined;
    }
    const tenants = deepest === undefined ? [] : [...deepest.uses].sort(newestFirst).map(([worker]) => worker);
    return { matchedUnits: matched, requestUnits: units.length, tenants: tenants.slice(0, maxListedTenants) };
  }

  insert(units: readonly number[], worker: WorkerId, namespace: string | undefined): number {
    this.addTenant(worker);
    if (units.length < this.#page) return 0;
    const use = this.lastUse + 1;
    this.insertPlacement(units, worker, use, namespace);
    return use;
  }

  insertPlacement(units: readonly number[], worker: WorkerId, use: number, namespace: string | undefined): boolean {
    this.addTenant(worker);
    const path = units.slice(0, units.length - (units.length % this.#page));
    this.lastUse = Math.max(this.lastUse, use);
    if (path.length === 0 || this.#heldUse(path, worker, namespace) >= use) return false;
    let node = this.#roots.get(namespace) ?? { label: [], uses: new Map(), children: [] };
    this.#roots.set(namespace, node);
    let position = 0;
    while (position < path.length) {
      const found = this.#agreeingChild(node, path, position);
      let next: PlainNode;
      if (found === undefined) {
        next = { label: path.slice(position), uses: new Map(), children: [] };
        node.children.push(next);
      } else {
        next = found.child;
        if (found.agree < next.label.length) split(next, found.agree);
      }
      next.uses.set(worker, Math.max(next.uses.get(worker) ?? 0, use));
      position += next.label.length;
      node = next;
    }
    this.evictTo(this.maxTreeSize);
    return true;
  }

  addTenant(worker: WorkerId): void {
    this.#tenants.add(worker);
  }

  removeTenant(worker: WorkerId): void {
    this.#tenants.delete(worker);
    for (const root of this.#roots.values()) {
      walk(root, (node) => node.uses.delete(worker));
      tidy(root);
    }
  }

  hasTenant(worker: WorkerId): boolean {
    return this.#tenants.has(worker);
  }

  tenants(): WorkerId[] {
    return [...this.#tenants];
  }

  sizeOf(worker: WorkerId): number {
    let size = 0;
    for (const root of this.#roots.values()) {
      walk(root, (node) => (size += node.uses.has(worker) ? node.label.length : 0));
    }
    return size;
  }

  maintain(_budget: MaintenanceBudget): boolean {
    return false;
  }

  evictTo(units: number): number {
    let evicted = 0;
    let size = this.size;
    while (size > units) {
      let oldest = { use: Infinity, node: undefined as PlainNode | undefined, worker: '' };
      for (const root of this.#roots.values()) {
        walk(root, (node) => {
          for (const [worker, use] of node.uses) {
            if (use < oldest.use && !node.children.some((child) => child.uses.has(worker))) {
              oldest = { use, node, worker };
            }
          }
        });
      }
      if (oldest.node === undefined) break;
      oldest.node.uses.delete(oldest.worker);
      size -= oldest.node.label.length;
      evicted += oldest.node.label.length;
      for (const root of this.#roots.values()) tidy(root);
    }
    return evicted;
  }

  /** Oldest use first. */
  placements(): PlainPlacement[] {
    const found: PlainPlacement[] = [];
    const visit = (node: PlainNode, path: readonly number[], namespace: string | undefined): void => {
      const units = [...path, ...node.label];
      for (const [worker, use] of node.uses) {
        if (!node.children.some((child) => child.uses.get(worker) === use))
          found.push({ namespace, units, worker, use });
      }
      for (const child of node.children) visit(child, units, namespace);
    };
    for (const [namespace, root] of this.#roots) visit(root, [], namespace);
    return found.sort((a, b) => a.use - b.use);
  }

  #agreeingChild(
    node: PlainNode,
    units: readonly number[],
    from: number,
  ): { child: PlainNode; agree: number } | undefined {
    for (const child of node.children) {
      let agree = 0;
      while (agree < child.label.length && units[from + agree] === child.label[agree]) agree++;
      agree -= agree % this.#page;
      if (agree > 0) return { child, agree };
    }
    return undefined;
  }

  #heldUse(path: readonly number[], worker: WorkerId, namespace: string | undefined): number {
    let node = this.#roots.get(namespace);
    let position = 0;
    let use = 0;
    while (node !== undefined && position < path.length) {
      const found: { child: PlainNode; agree: number } | undefined = this.#agreeingChild(node, path, position);
      if (found === undefined) return 0;
      position += found.agree;
      use = found.child.uses.get(worker) ?? 0;
      if (found.agree < found.child.label.length && position < path.length) return 0;
      node = found.child;
    }
    return use;
  }
}

function newestFirst([a, useA]: [string, number], [b, useB]: [string, number]): number {
  return useB - useA || (a < b ? -1 : 1);
}

function split(node: PlainNode, at: number): void {
  const tail: PlainNode = { label: node.label.slice(at), uses: new Map(node.uses), children: node.children };
  node.label = node.label.slice(0, at);
  node.children = [tail];
}

/** Drops nodes nobody holds and joins a node with its only child when both have the same tenants and uses (B07). */
function tidy(node: PlainNode): void {
  for (const child of node.children) tidy(child);
  node.children = node.children.filter((child) => child.uses.size > 0);
  const only = node.children.length === 1 ? node.children[0] : undefined;
  if (only === undefined || node.label.length === 0 || node.uses.size !== only.uses.size) return;
  for (const [worker, use] of node.uses) if (only.uses.get(worker) !== use) return;
  node.label = [...node.label, ...only.label];
  node.children = only.children;
}

function walk(node: PlainNode, visit: (node: PlainNode) => void): void {
  visit(node);
  for (const child of node.children) walk(child, visit);
}
