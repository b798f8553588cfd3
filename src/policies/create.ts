/**
 * Makes the policy of a pool from its plan, and reshapes a running one when the options change (LB-35): what a policy
 * learned stays wherever the policy itself stays.
 */
import type { KvEventIndex } from '../prefix/kv-event-index.js';
import type { PolicyPlan } from '../router-options.js';
import type { Hash64 } from '../runtime/hash.js';
import { createRoutingKeyOverride, type OverriddenPolicy, type OverrideSettings } from '../sticky/override.js';
import type { PinMap } from '../sticky/pins.js';
import type { WorkerId } from '../workers/candidate.js';
import { createBucket } from './bucket.js';
import { createCacheAware } from './cache-aware.js';
import { createConsistentHashing } from './consistent-hashing.js';
import { createLeastLoad } from './least-load.js';
import { createManual } from './manual.js';
import { createPassthrough } from './passthrough.js';
import type { Leg, Policy, PolicyEvents, PolicyName } from './policy.js';
import { checkedPolicy } from './policy-check.js';
import { createPowerOfTwo } from './power-of-two.js';
import { createPrefixHash } from './prefix-hash.js';
import { createRandom } from './random.js';
import { createRoundRobin } from './round-robin.js';

/** What the policies of a router share, and where theirs stands. */
export interface PoolSurroundings {
  readonly leg: Leg;
  readonly hash: Hash64;
  readonly pins: PinMap;
  /** The KV-event index of the pool's model, when it holds anything. */
  readonly kvIndex: () => KvEventIndex | undefined;
  readonly events: PolicyEvents;
  /** Salts hashes that hostile requests could otherwise aim at. */
  readonly salt: number;
  readonly sticky: OverrideSettings & { readonly routingKeyOverride: boolean };
}

/** Options of a named policy, as the table resolved them. The plan has matched name and options. */
type Creator = (options: never, around: PoolSurroundings) => Policy;

const creators: Readonly<Record<PolicyName, Creator>> = {
  cache_aware: (options, { kvIndex, events, salt }) => createCacheAware(options, { kvIndex, events, salt }),
  least_load: (options) => createLeastLoad(options),
  power_of_two: (options) => createPowerOfTwo(options),
  consistent_hashing: (options, { hash }) => createConsistentHashing(options, { hash }),
  bucket: (options) => createBucket(options),
  passthrough: (_options, { events }) => createPassthrough(events),
  prefix_hash: (options, { hash }) => createPrefixHash(options, { hash }),
  manual: (options, { pins }) => createManual(options, { pins }),
  round_robin: () => createRoundRobin(),
  random: () => createRandom(),
};

/** Policies that read routing keys themselves are never wrapped (MA-13); encode legs are keyed by media (LM-34). */
function isSticky(plan: PolicyPlan, { leg, sticky }: PoolSurroundings): boolean {
  return sticky.routingKeyOverride && leg !== 'encode' && plan.name !== 'manual' && plan.name !== 'consistent_hashing';
}

/**
 * The policy of one pool, with the override around it where the router has that switched on.
 *
 * @throws what a host's own policy factory throws; RoutingConfigError when that makes no policy
 */
export function createPolicy(plan: PolicyPlan, around: PoolSurroundings): Policy {
  const policy =
    plan.create === undefined ? creators[plan.name](plan.options as never, around) : checkedPolicy(plan.create());
  return isSticky(plan, around) ? createRoutingKeyOverride(policy, around.sticky, { pins: around.pins }) : policy;
}

/** The policy below the override, or the policy itself. */
export function innerPolicy(policy: Policy): Policy {
  return isOverridden(policy) ? policy.inner : policy;
}

/** Whether the running policy can go on under the plan: the plan wants the same one, and it can take the plan's options. */
export function staysUnder(plan: PolicyPlan, running: Policy, before: PolicyPlan): boolean {
  if (plan.name !== before.name || plan.create !== before.create) return false;
  return innerPolicy(running).configure !== undefined || Object.keys(plan.options).length === 0;
}

/**
 * The running policy with the options of a plan that it can go on under. One of the host's own has none, and is not
 * touched.
 *
 * @param members ids of the pool's workers, for an override that is switched on now
 */
export function reshapePolicy(
  running: Policy,
  plan: PolicyPlan,
  around: PoolSurroundings,
  members: Iterable<WorkerId>,
): Policy {
  const inner = innerPolicy(running);
  if (plan.create === undefined) inner.configure?.(plan.options);
  if (!isSticky(plan, around)) return inner;
  if (!isOverridden(running)) {
    return createRoutingKeyOverride(inner, around.sticky, { pins: around.pins, registered: members });
  }
  running.configureOverride(around.sticky);
  return running;
}

function isOverridden(policy: Policy): policy is OverriddenPolicy {
  return 'configureOverride' in policy;
}
