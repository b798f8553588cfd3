/**
 * When a prefix tree evicts and reclaims. Inside an insert, work is bounded by counts, so that it is the same in every
 * run (LB-3); in `maintain` by the caller's budget (LB-5).
 *
 * Why the budget holds at insert (LB-32): every holding is at least one unit. A removal frees at least as many units as
 * it leaves holdings to reclaim, and while the free budget is smaller than that number an insert reclaims as many
 * holdings as it adds units. So once the tree is full again none is left, and each eviction frees a unit. An insert also
 * evicts as many holdings as a split it caused has copied, so that the bound on holdings holds as well (LB-31).
 */
import { checkNumber, RoutingConfigError } from '../errors.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { RadixCore } from './radix-core.js';

/** Holdings reclaimed or evicted by any call, apart from what its own units require. */
const holdingsPerCall = 256;

/** Between two looks at the budget. */
const holdingsPerLook = 8;

/** After an insert of `added` units, or a removal. */
export function settle<Label>(core: RadixCore<Label>, added: number): void {
  const { tenants } = core;
  const copied = core.copiedHoldings;
  core.copiedHoldings = 0;
  if (tenants.deadHoldings === 0 && !core.isOverBudget()) return;
  for (let reclaimed = 0; tenants.deadHoldings > 0; reclaimed++) {
    const isTight = tenants.size + tenants.deadHoldings > core.maxTreeSize;
    if (reclaimed >= (isTight ? holdingsPerCall + added : holdingsPerCall)) break;
    core.reclaimOne();
  }
  const evictions = holdingsPerCall + added + copied;
  for (let evicted = 0; evicted < evictions && core.isOverBudget(); evicted++) core.evictOldest();
  core.labels.compact();
}

/** Reclaims and evicts until done or out of budget; returns whether work is left. */
export function maintainTree<Label>(core: RadixCore<Label>, budget: MaintenanceBudget): boolean {
  const { tenants } = core;
  for (;;) {
    for (let i = 0; i < holdingsPerLook; i++) {
      if (tenants.deadHoldings > 0) core.reclaimOne();
      else if (core.isOverBudget()) core.evictOldest();
      else if (!core.labels.compactSome()) return false;
    }
    if (budget.spent()) return true;
  }
}

/** Evicts until `size` ≤ `units`, in one go. Returns the units evicted. @throws TypeError when `units` is no number */
export function evictTreeTo<Label>(core: RadixCore<Label>, units: number): number {
  checkNumber(units, 'units');
  let evicted = 0;
  while (core.tenants.size > units) {
    const freed = core.evictOldest();
    if (freed < 0) break;
    evicted += freed;
  }
  core.labels.compact();
  return evicted;
}

/** @throws RoutingConfigError for a budget that is no number above 0 (CF-28) */
export function checkedBudget(units: number): number {
  if (typeof units !== 'number' || !(units > 0)) throw new RoutingConfigError('maxTreeSize', units, 'must be above 0');
  return units;
}
