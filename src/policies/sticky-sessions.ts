/** The routing-key override around a policy that is used without a router (ST-1, CC-14). */
import { RoutingConfigError } from '../errors.js';
import type { OptionsOf } from '../options/spec.js';
import { overrideTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';
import { createRoutingKeyOverride } from '../sticky/override.js';
import { PinMap } from '../sticky/pins.js';
import type { StandalonePolicy } from './standalone.js';

/** Options of `stickySessions`: where keys come from, how new ones are placed, how long pins live. */
export type StickyOptions = OptionsOf<typeof overrideTable>;

/**
 * Keeps keyed requests at their worker: `stickySessions(leastLoad())`. The key is the request's `routingKey`, its rid
 * without turn and retry suffixes, or a header of `routingKeyHeaders`; requests without a key are the policy's own.
 *
 * @param policy used in its place from now on; not `manual` or `consistentHashing`, which have `routingKeyOverride`
 * @param options all optional
 * @throws RoutingConfigError for an option that cannot be used, or one of the two policies above
 */
export function stickySessions(policy: StandalonePolicy, options?: StickyOptions): StandalonePolicy {
  const given = resolveOptions(overrideTable, options);
  if (typeof policy?.wrap !== 'function') throw new RoutingConfigError('policy', policy, 'must be a policy used alone');
  return policy.wrap((inner) => createRoutingKeyOverride(inner, given, { pins: new PinMap(given) }));
}
