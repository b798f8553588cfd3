/**
 * `least_load`: the candidate with the lowest expected wait, ties uniform; with `maxWaitingRequests` workers whose queue
 * is full are left out first (LL-1, EW-40). A single candidate is scored and credited like any other (EW-50). O(n).
 */
import type { LeastLoadOptions } from '../options/policy-options.js';
import type { Resolved } from '../options/spec.js';
import { leastLoadTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';
import type { Policy } from './policy.js';
import { type RuntimeOptions, runtimeTable } from './runtime-options.js';
import { decideByWait, describeByWait } from './scored-decision.js';
import { type StandalonePolicy, standalone } from './standalone.js';

/** The policy of one pool (LL-1). */
export function createLeastLoad(options: Resolved<typeof leastLoadTable>): Policy {
  return {
    name: 'least_load',
    needs: { reports: true },
    meanPrefillTokens: options.meanPrefillTokens,
    decide: (_request, { workers }, ctx) => decideByWait(workers, ctx, options),
    describe: (_request, { workers }, ctx) => describeByWait(workers, ctx, options),
  };
}

/**
 * `least_load` without a router: lowest expected wait over all candidates (LL-1). Nothing is selected, with reason
 * `waiting_cap`, when every candidate reports a full queue (EW-42).
 *
 * @throws RoutingConfigError for an unknown or invalid option
 */
export function leastLoad(options?: LeastLoadOptions & RuntimeOptions): StandalonePolicy {
  const resolved = resolveOptions({ ...leastLoadTable, ...runtimeTable }, options);
  return standalone(createLeastLoad(resolved), resolved);
}
