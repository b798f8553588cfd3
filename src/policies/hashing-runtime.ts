/** What the policies that hash need from their surroundings when they are used alone (LB-4, CC-10). */
import { RoutingConfigError } from '../errors.js';
import { Ring } from '../hashing/ring.js';
import type { Hash64 } from '../runtime/hash.js';
import type { RingLookup } from './policy.js';
import { hashOf, type RuntimeOptions, ringOf } from './runtime-options.js';

/** Runtime options of `consistentHashing` and `prefixHash`. */
export interface HashingRuntimeOptions extends RuntimeOptions {
  /** Made by `await loadHash()`, or the host's own (LB-4). */
  readonly hash: Hash64;
}

/**
 * The injected hash, and the injected ring or an empty one that follows the ids given.
 *
 * @throws RoutingConfigError when the hash is missing or either cannot be used
 */
export function hashingRuntimeOf(given: { readonly hash?: unknown; readonly ring?: unknown }): {
  readonly hash: Hash64;
  readonly ring: RingLookup;
} {
  const hash = hashOf(given);
  if (hash === undefined) {
    throw new RoutingConfigError('hash', hash, 'must be given: `await loadHash()`, or a 64-bit hash of your own');
  }
  return { hash, ring: ringOf(given) ?? new Ring(hash) };
}
