/** A policy of our own used alone, to see what policies are given. */
import { resolveOptions } from '../../src/options/validate.js';
import { Decision, type Policy, type RingLookup } from '../../src/policies/policy.js';
import { type RuntimeOptions, runtimeTable } from '../../src/policies/runtime-options.js';
import { type MemberRing, standalone } from '../../src/policies/standalone.js';
import type { Candidate } from '../../src/workers/candidate.js';

export const two: readonly Candidate[] = [
  { id: 'a', inFlight: 1 },
  { id: 'b', inFlight: 2 },
];

/** It takes the first candidate, unless told otherwise. */
export function alone(policy: Partial<Policy>, options?: RuntimeOptions, ring?: RingLookup | MemberRing) {
  const full: Policy = {
    name: 'custom',
    needs: {},
    decide: (_request, { workers }) => new Decision(workers[0]),
    ...policy,
  };
  return standalone(full, resolveOptions(runtimeTable, options), ring);
}
