/** What a host's own factory or call hands over as a policy: checked when it comes, so that nothing fails later. */
import { RoutingConfigError } from '../errors.js';
import type { Policy } from './policy.js';

/** @throws RoutingConfigError when it lacks what every policy has */
export function checkedPolicy(policy: Policy): Policy {
  const { name, needs, decide } = ((policy as Policy | null | undefined) ?? {}) as Partial<Policy>;
  if (typeof name === 'string' && typeof needs === 'object' && needs !== null && typeof decide === 'function') {
    return policy;
  }
  throw new RoutingConfigError('policy', policy, 'must be a policy: an object with name, needs and decide');
}
