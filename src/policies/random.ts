/** `random`: uniform over the candidates, no state. O(1). RA-1. */
import { resolveOptions } from '../options/validate.js';
import { randomIndex } from '../runtime/random.js';
import { Decision, type Policy } from './policy.js';
import { type RuntimeOptions, runtimeTable } from './runtime-options.js';
import { type StandalonePolicy, standalone } from './standalone.js';

/** The policy of one pool (RA-1). */
export function createRandom(): Policy {
  return {
    name: 'random',
    needs: {},
    decide: (_request, candidates, ctx) => new Decision(candidates.at(randomIndex(ctx.random, candidates.size))),
    describe: (_request, { workers }) => ({ tieSet: workers.map(({ id }) => id) }),
  };
}

/**
 * `random` without a router: every candidate is equally likely (RA-1).
 *
 * @throws RoutingConfigError for an unknown or invalid option
 */
export function random(options?: RuntimeOptions): StandalonePolicy {
  return standalone(createRandom(), resolveOptions(runtimeTable, options));
}
