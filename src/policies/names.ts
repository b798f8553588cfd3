/** Policy names as they arrive from configuration and from worker labels (PO-3). */
import { nearestName } from '../options/validate.js';
import type { PolicyName } from './policy.js';

/** All ten, in the order the documentation lists them. */
export const policyNames: readonly PolicyName[] = [
  'cache_aware',
  'least_load',
  'power_of_two',
  'consistent_hashing',
  'bucket',
  'passthrough',
  'prefix_hash',
  'manual',
  'round_robin',
  'random',
];

/** Reads a name whatever its case and underscores, as labels write it: `PowerOfTwo`, `cacheaware` (PO-3). */
export function parsePolicyName(text: string): PolicyName | undefined {
  const folded = fold(text);
  return policyNames.find((name) => fold(name) === folded);
}

/** The known name that was probably meant. */
export function nearestPolicyName(text: string): string | undefined {
  return nearestName(text, policyNames);
}

function fold(text: string): string {
  return text.toLowerCase().replaceAll('_', '');
}
