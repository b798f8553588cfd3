/** The option types of the ten policies, read off the one table, and the table of each by name. */
import { RoutingConfigError } from '../errors.js';
import type { PolicyName } from '../policies/policy.js';
import type { OptionsOf, OptionTable, Resolved } from './spec.js';
import {
  bucketTable,
  cacheAwareTable,
  consistentHashingTable,
  leastLoadTable,
  manualTable,
  noOptionsTable,
  powerOfTwoTable,
  prefixHashTable,
} from './table.js';

/** Options of `cache_aware`; every one has a default. */
export type CacheAwareOptions = OptionsOf<typeof cacheAwareTable>;
/** Options of `least_load`; every one has a default. */
export type LeastLoadOptions = OptionsOf<typeof leastLoadTable>;
/** Options of `power_of_two`; every one has a default. */
export type PowerOfTwoOptions = OptionsOf<typeof powerOfTwoTable>;
/** Options of `bucket`; every one has a default. */
export type BucketOptions = OptionsOf<typeof bucketTable>;
/** Options of `consistent_hashing`; every one has a default. */
export type ConsistentHashingOptions = OptionsOf<typeof consistentHashingTable>;
/** Options of `prefix_hash`; every one has a default. */
export type PrefixHashOptions = OptionsOf<typeof prefixHashTable>;
/** Options of `manual`; every one has a default. */
export type ManualOptions = OptionsOf<typeof manualTable>;
/** `random`, `round_robin` and `passthrough` have no options. */
export type NoOptions = OptionsOf<typeof noOptionsTable>;

/** Options by policy name. */
export interface PolicyOptionsByName {
  readonly cache_aware: CacheAwareOptions;
  readonly least_load: LeastLoadOptions;
  readonly power_of_two: PowerOfTwoOptions;
  readonly consistent_hashing: ConsistentHashingOptions;
  readonly bucket: BucketOptions;
  readonly passthrough: NoOptions;
  readonly prefix_hash: PrefixHashOptions;
  readonly manual: ManualOptions;
  readonly round_robin: NoOptions;
  readonly random: NoOptions;
}

/** The table of each policy. */
export const policyTables: Readonly<Record<PolicyName, OptionTable>> = {
  cache_aware: cacheAwareTable,
  least_load: leastLoadTable,
  power_of_two: powerOfTwoTable,
  consistent_hashing: consistentHashingTable,
  bucket: bucketTable,
  passthrough: noOptionsTable,
  prefix_hash: prefixHashTable,
  manual: manualTable,
  round_robin: noOptionsTable,
  random: noOptionsTable,
};

/**
 * What no single entry of the table can say: the hash index needs boundaries (CF-30).
 *
 * @throws RoutingConfigError
 */
export function checkCacheAwareOptions(options: Resolved<typeof cacheAwareTable>, path: string): void {
  if (options.cacheIndex === 'hash' && options.cacheBoundaries.length === 0) {
    throw new RoutingConfigError(
      `${path}cacheBoundaries`,
      options.cacheBoundaries,
      "must name at least one boundary when cacheIndex is 'hash'",
    );
  }
}
