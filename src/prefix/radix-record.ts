/** What both prefix trees do where a descent has ended: telling what was found, and recording the request there. */
import type { WorkerId } from '../workers/candidate.js';
import { maxListedTenants, type TreeMatch } from './prefix-tree.js';
import type { RadixCore } from './radix-core.js';
import type { RadixNode } from './radix-node.js';
import type { RadixPath } from './radix-path.js';
import { settle } from './radix-upkeep.js';

/** What a match returns. */
export function matchAt<Label>(core: RadixCore<Label>, path: RadixPath<Label>): TreeMatch {
  const { matchedUnits, requestUnits, deepest } = path;
  const tenants: WorkerId[] = deepest === undefined ? [] : core.tenantsOf(deepest, maxListedTenants);
  return { matchedUnits, requestUnits, tenants };
}

/** Records the request that ends at a node; returns its use. */
export function record<Label>(core: RadixCore<Label>, end: RadixNode<Label>, tenant: number): number {
  const before = core.tenants.size;
  const use = ++core.lastUse;
  core.recordings++;
  core.hold(end, tenant, use);
  settle(core, core.tenants.size - before);
  return use;
}

/** As `record`, for a use that was given out elsewhere. */
export function merge<Label>(core: RadixCore<Label>, end: RadixNode<Label>, tenant: number, use: number): void {
  const before = core.tenants.size;
  core.recordings++;
  core.holdMerged(end, tenant, use);
  settle(core, core.tenants.size - before);
}

/** Whether a tenant holds the node that a request the tree knows in full leads to, with this use or a later one. */
export function isKnown<Label>(core: RadixCore<Label>, path: RadixPath<Label>, tenant: number, use: number): boolean {
  const known = core.holders.find((path.partial ?? path.last) as RadixNode<Label>, tenant);
  return known !== 0 && core.holdings.use(known) >= use;
}
