/** Options of routers and policies, hostile in any part. */

import { loadHash, type PolicyConfig, type RouterOptions } from 'kvroute';
import { fc } from '../support/property.js';
import { hostile, hostileRecord, mostly } from './hostile.js';

const hash = await loadHash();
const fraction = fc.constantFrom(0, 0.3, 1, 1.5);
const count = fc.constantFrom(0, 1, 8, 64);
const milliseconds = fc.constantFrom(0, 1, 1000, Infinity);
const headers = fc.array(mostly(fc.constantFrom('x-key', 'X-SMG-Routing-Key', 'bad name')), { maxLength: 2 });
const boundaries = fc.array(mostly(fc.constantFrom(4, 8, 16)), { maxLength: 3 });
const names = ['random', 'round_robin', 'passthrough', 'least_load', 'power_of_two', 'cache_aware', 'bucket'] as const;
const hashing = ['consistent_hashing', 'prefix_hash', 'manual'] as const;

const own = {
  cacheThreshold: fraction,
  balanceAbsThreshold: count,
  balanceRelThreshold: fraction,
  evictionIntervalMs: milliseconds,
  maxTreeSize: count,
  cacheIndex: fc.constantFrom('tree', 'hash'),
  cacheBoundaries: boundaries,
  cacheTtlMs: milliseconds,
  blockSize: count,
  prefixTokenCount: count,
  loadFactor: fraction,
  routingKeyHeaders: headers,
  routingKeyOverride: fc.boolean(),
  maxIdleMs: milliseconds,
  maxPins: count,
  assignmentMode: fc.constantFrom('random', 'min_load', 'min_group'),
  maxWaitingRequests: count,
  kvPressureWeight: fraction,
};

/** Options of one policy: those it does not know are refused. */
export const policyOptions: fc.Arbitrary<unknown> = fc
  .subarray(Object.keys(own) as (keyof typeof own)[], { maxLength: 2 })
  .chain((chosen) =>
    hostileRecord({
      ...Object.fromEntries(chosen.map((name) => [name, own[name]])),
      hash: fc.constant(hash),
      clock: fc.constant(() => 0),
      seed: count,
    }),
  );

const policy = fc.oneof(
  fc.constantFrom(...names, ...hashing),
  hostileRecord({ name: fc.constantFrom(...names, ...hashing), cacheThreshold: fraction, legs: fc.constant('any') }),
);

/** Options of `createRouter`, sound or not. */
export const routerOptions: fc.Arbitrary<unknown> = hostileRecord({
  mode: fc.constantFrom('regular', 'pd', 'epd'),
  policy,
  prefillPolicy: policy,
  decodePolicy: policy,
  encodePolicy: fc.constantFrom('random', 'round_robin'),
  policyOptions: hostileRecord({ cache_aware: hostileRecord({ cacheThreshold: fraction }), least_load: hostile }),
  clock: fc.constant(() => 0),
  seed: count,
  hash: fc.constant(hash),
  modelAliases: hostileRecord({ alias: fc.constant('m') }),
  routingKeyHeaders: headers,
  maxIdleMs: milliseconds,
  maxPins: count,
  retry: hostileRecord({ maxAttempts: count, baseMs: milliseconds, jitter: fraction }),
  circuitBreaker: hostileRecord({ failureThreshold: count, timeoutDurationMs: milliseconds }),
  workerOverloadTokenUsage: fraction,
  maintenanceBudgetMs: milliseconds,
  maxLeaseAgeMs: milliseconds,
});

/** Sound options of a router that is played with. */
export const soundRouterOptions: fc.Arbitrary<RouterOptions> = fc.record({
  policy: fc.constantFrom<PolicyConfig>(
    ...names.filter((name) => name !== 'bucket'),
    ...hashing,
    { name: 'cache_aware', cacheIndex: 'hash', cacheBoundaries: [4, 8] } as const,
    { name: 'bucket', legs: 'any' } as const,
  ),
  routingKeyOverride: fc.boolean(),
  seed: fc.nat(99),
  maxIdleMs: fc.constant(0),
});
