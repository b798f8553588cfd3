/**
 * The one table of options: names, defaults, ranges and units (spec 10). The doc comment of an entry is what editors,
 * the API reference and the option tables of the documentation show. Durations are milliseconds, ratios are 0–1.
 *
 * One constant a policy, so that a bundle which imports one policy carries that policy's options only (LB-62); tables
 * that are put together from others say that they may be dropped, which bundlers do not assume of a spread.
 */
import { ascending, headerNames, statusCodes } from './lists.js';

/** Options of `cache_aware`. */
export const cacheAwareTable = {
  /** Share of the request that must match for affinity; 0 = any match, 1 = never (CA-34). */
  cacheThreshold: { kind: 'number', default: 0.3, min: 0, max: 1, unit: 'ratio', id: 'CF-20' },
  /** Requests above the fleet mean before a holder counts as hot (CA-10). */
  balanceAbsThreshold: { kind: 'integer', default: 64, min: 0, unit: 'requests', id: 'CF-21' },
  /** Multiple of the fleet mean before a holder counts as hot (CA-10). */
  balanceRelThreshold: { kind: 'number', default: 1.5, min: 1, id: 'CF-22' },
  /** Spread of KV-cache usage over the fleet above which affinity is ignored; 1 or more = off (CA-20). */
  balanceTokenUsageThreshold: { kind: 'number', default: 1, above: 0, unit: 'ratio', id: 'CF-23' },
  /** KV-cache usage of the fullest worker above which affinity is ignored; 1 or more = off (CA-20). */
  overloadTokenUsageThreshold: { kind: 'number', default: 1, above: 0, unit: 'ratio', id: 'CF-24' },
  /** How strongly a holder's queue discounts its overlap; 0 = off (CA-50). */
  overlapDecay: { kind: 'number', default: 0, min: 0, id: 'CF-25' },
  /** Softmax temperature over overlap scores; 0 = always the best (CA-52). */
  selectionTemperature: { kind: 'number', default: 0, min: 0, id: 'CF-26' },
  /** Interval of the eviction and expiry passes; 0 = none, the tree budget holds at insert anyway (LB-32). */
  evictionIntervalMs: { kind: 'number', default: 120_000, min: 0, unit: 'ms', id: 'CF-27' },
  /** Budget of one tree, in characters or tokens, shared by all workers of the model (CA-42). */
  maxTreeSize: { kind: 'integer', default: 67_108_864, min: 1, unit: 'units', id: 'CF-28' },
  /** Tokens in a page of the token tree, and in a block of the KV index until it learns better (CA-91). */
  blockSize: { kind: 'integer', default: 16, min: 1, unit: 'tokens', id: 'CF-29' },
  /** What prefixes are looked up in: radix trees and KV events, or hashes at fixed boundaries (CA-3). */
  cacheIndex: { kind: 'choice', values: ['tree', 'hash'], default: 'tree', id: 'CF-30' },
  /** Token positions at which the hash index remembers heads; required by `cacheIndex: 'hash'` (CA-70). */
  cacheBoundaries: { kind: 'ascending', read: ascending as typeof ascending, default: [], unit: 'tokens', id: 'CF-31' },
  /** How long a remembered head stays live after its last use (CA-72). */
  cacheTtlMs: { kind: 'number', default: 180_000, min: 1000, unit: 'ms', id: 'CF-32' },
  /** KV-index entries neither stored nor read for this long are pruned; 0 or unset = never (CA-96). */
  kvIndexerTtlMs: { kind: 'number', min: 0, unit: 'ms', id: 'CF-33' },
  /** KV-index entries above which the oldest tenth is pruned; 0 or unset = no ceiling (CA-96). */
  kvIndexerMaxEntries: { kind: 'integer', min: 0, unit: 'entries', id: 'CF-34' },
} as const;

/** Tokens of a request whose size is unknown (EW-13). On its own, since every policy credits by it. */
export const defaultMeanPrefillTokens = 1024;

/** Options of `least_load`. */
export const leastLoadTable = {
  /** Weight of the KV-pressure term, in seconds; 0 removes it (EW-11). */
  kvPressureWeight: { kind: 'number', default: 0.15, min: 0, unit: 's', id: 'CF-40' },
  /** Tokens per second assumed for a worker that reports no throughput (EW-7). */
  defaultThroughput: { kind: 'number', default: 2000, above: 0, unit: 'tokens/s', id: 'CF-41' },
  /** Tokens assumed for a request whose size is unknown (EW-4, EW-13). */
  meanPrefillTokens: {
    kind: 'integer',
    default: defaultMeanPrefillTokens as 1024,
    min: 1,
    unit: 'tokens',
    id: 'CF-42',
  },
  /** Waiting requests, credit included, at which a worker is skipped; 0 = no cap (EW-40). */
  maxWaitingRequests: { kind: 'integer', default: 0, min: 0, unit: 'requests', id: 'CF-43' },
} as const;

/** Options of `power_of_two`. */
export const powerOfTwoTable = {
  /** What candidates are compared by: the score of a pair, in-flight counts of a pair, or of the whole fleet (P2-2..4). */
  loadMetric: {
    kind: 'choice',
    values: ['expected_wait', 'requests', 'least_requests'],
    default: 'expected_wait',
    id: 'CF-44',
  },
} as const;

/** Options of `bucket`. */
export const bucketTable = {
  /** Units routed in 5 s by which the busiest may exceed the idlest worker (BU-6). Characters or tokens. */
  balanceAbsThreshold: { kind: 'integer', default: 64, min: 0, unit: 'units', id: 'CF-21' },
  /** Multiple of the idlest worker's units that the busiest may reach (BU-6). */
  balanceRelThreshold: { kind: 'number', default: 1.5, min: 1, id: 'CF-22' },
  /** Which legs get boundaries; `any` lets every pool have its own (LM-14). */
  legs: { kind: 'choice', values: ['prefill', 'any'], default: 'prefill', id: 'CF-117' },
} as const;

/** Where routing keys come from; shared by the policies and the override that read them. */
const keySourceTable = {
  /** Header names that may carry the routing key, in order of preference (ST-20). */
  routingKeyHeaders: {
    kind: 'headerNames',
    read: headerNames as typeof headerNames,
    default: ['x-smg-routing-key'],
    id: 'CF-61',
  },
  /** Pin keyed requests on top of any policy, and let the body's rid be a key (ST-1, ST-10). */
  routingKeyOverride: { kind: 'boolean', default: false, id: 'CF-60' },
} as const;

/** Life of pins; shared by `manual` and the override. */
const pinTable = {
  /** Idle time after which a pin is forgotten; 0 = never (ST-60). */
  maxIdleMs: { kind: 'number', default: 14_400_000, min: 0, unit: 'ms', id: 'CF-63' },
  /** Interval of the sweep that frees idle pins; 0 = never (ST-60). */
  evictionIntervalMs: { kind: 'number', default: 120_000, min: 0, unit: 'ms', id: 'CF-27' },
  /** Pins kept at most, least recently used first (ST-60). */
  maxPins: { kind: 'integer', default: 1_000_000, min: 1, unit: 'entries', id: 'CF-107' },
  /** How a key without a usable pin is placed; unset: `delegate` for the override, `random` for `manual` (ST-50). */
  assignmentMode: { kind: 'choice', values: ['random', 'min_load', 'min_group', 'delegate'], id: 'CF-62' },
} as const;

/** Options of `consistent_hashing`. */
export const consistentHashingTable: typeof keySourceTable = keySourceTable;

const prefixHashOwnTable = {
  /** Tokens of the request's head that are hashed; 4 characters count as one token (PH-2). */
  prefixTokenCount: { kind: 'integer', default: 256, min: 1, unit: 'tokens', id: 'CF-50' },
  /** Multiple of the fleet mean above which a ring worker may count as overloaded (PH-8). */
  loadFactor: { kind: 'number', default: 1.25, min: 1, id: 'CF-51' },
  /** Requests above the fleet mean below which it never does; 0 = purely relative (PH-8). */
  balanceAbsThreshold: { kind: 'integer', default: 10, min: 0, unit: 'requests', id: 'CF-52' },
  /** Token positions at which heads are hashed, deepest first (PH-3). */
  cacheBoundaries: { kind: 'ascending', read: ascending as typeof ascending, default: [], unit: 'tokens', id: 'CF-31' },
} as const;

/** Options of `prefix_hash`. */
export const prefixHashTable: typeof prefixHashOwnTable & Pick<typeof keySourceTable, 'routingKeyHeaders'> =
  /* @__PURE__ */ (() => ({
    ...prefixHashOwnTable,
    routingKeyHeaders: keySourceTable.routingKeyHeaders,
  }))();

/** Options of `manual`. */
export const manualTable: typeof pinTable & Pick<typeof keySourceTable, 'routingKeyOverride'> =
  /* @__PURE__ */ (() => ({
    ...pinTable,
    routingKeyOverride: keySourceTable.routingKeyOverride,
  }))();

/** Options of the routing-key override when it wraps a policy that is used alone. */
export const overrideTable: typeof pinTable & Pick<typeof keySourceTable, 'routingKeyHeaders'> =
  /* @__PURE__ */ (() => ({
    ...pinTable,
    routingKeyHeaders: keySourceTable.routingKeyHeaders,
  }))();

/** Policies without options. */
export const noOptionsTable = {} as const;

/** Circuit breaker (CB-50). */
export const circuitBreakerTable = {
  /** Consecutive failed requests that open the breaker (CB-2). */
  failureThreshold: { kind: 'integer', default: 10, min: 1, unit: 'requests', id: 'CF-90' },
  /** Consecutive successes that close a half-open breaker (CB-5). */
  successThreshold: { kind: 'integer', default: 3, min: 1, unit: 'requests', id: 'CF-91' },
  /** Time an open breaker blocks (CB-4). */
  timeoutDurationMs: { kind: 'number', default: 60_000, above: 0, unit: 'ms', id: 'CF-92' },
  /** Accepted for compatibility and validated; there is no window (CB-1). */
  windowDurationMs: { kind: 'number', default: 120_000, above: 0, unit: 'ms', id: 'CF-93' },
} as const;

/** Health probes: what `recordProbe` applies (WK-19). */
export const healthTable = {
  /** Consecutive failed probes that make a ready worker not ready. */
  failureThreshold: { kind: 'integer', default: 3, min: 1, unit: 'probes', id: 'CF-100' },
  /** Consecutive successful probes that make it ready. */
  successThreshold: { kind: 'integer', default: 2, min: 1, unit: 'probes', id: 'CF-100' },
} as const;

/** Retries of `route()` (LB-25). */
export const retryTable = {
  /** Attempts in all, the first included. */
  maxAttempts: { kind: 'integer', default: 5, min: 1, unit: 'attempts', id: 'CF-119' },
  /** Wait before the second attempt. */
  baseMs: { kind: 'number', default: 50, min: 0, unit: 'ms', id: 'CF-119' },
  /** Growth of the wait from attempt to attempt. */
  factor: { kind: 'number', default: 1.5, min: 1, id: 'CF-119' },
  /** Longest wait. */
  maxMs: { kind: 'number', default: 30_000, min: 0, unit: 'ms', id: 'CF-119' },
  /** Share of the wait that is drawn at random, both ways. */
  jitter: { kind: 'number', default: 0.2, min: 0, max: 1, unit: 'ratio', id: 'CF-119' },
} as const;

const routerOwnTable = {
  /** Regular requests, prefill/decode pairs, or encode/prefill/decode (LM-1). */
  mode: { kind: 'choice', values: ['regular', 'pd', 'epd'], default: 'regular', id: 'CF-105' },
  /** Policy of models that no worker label decides: a name, `{ name, ...options }`, a function; unset: `cache_aware`. */
  policy: { kind: 'opaque', id: 'CF-10' },
  /** Policy of the prefill leg; unset: `policy` (LM-2). */
  prefillPolicy: { kind: 'opaque', id: 'CF-11' },
  /** Policy of the decode leg; unset: `policy` (LM-2). */
  decodePolicy: { kind: 'opaque', id: 'CF-11' },
  /** Policy of the encode leg: `random`, `round_robin` or `consistent_hashing`; unset: the last (LM-2). */
  encodePolicy: { kind: 'opaque', id: 'CF-12' },
  /** Options, by policy name, of policies that worker labels name (LM-22). */
  policyOptions: { kind: 'opaque', id: 'CF-116' },
  /** Veto workers whose KV usage reaches 0.9 (OV-3). */
  workerOverloadProtection: { kind: 'boolean', default: false, id: 'CF-70' },
  /** Waiting requests at which a worker is vetoed; unset = never (OV-1). */
  workerOverloadWaitingRequests: { kind: 'integer', min: 1, unit: 'requests', id: 'CF-71' },
  /** KV usage at which a worker is vetoed; unset = never, 0.9 with `workerOverloadProtection` (OV-1). */
  workerOverloadTokenUsage: { kind: 'number', above: 0, max: 1, unit: 'ratio', id: 'CF-72' },
  /** How often the host polls loads; says when reports age out and what a shed answers as retry-after (CF-80). */
  loadMonitorIntervalMs: { kind: 'number', default: 10_000, above: 0, unit: 'ms', id: 'CF-80' },
  /** Age at which a report stops counting; unset = three poll intervals, `Infinity` = never (LR-30). */
  loadReportMaxAgeMs: { kind: 'number', above: 0, infinite: true, unit: 'ms', id: 'CF-106' },
  /** Which prefill and decode workers may pair (LM-31). */
  pdPairingMode: { kind: 'choice', values: ['off', 'lenient', 'strict'], default: 'lenient', id: 'CF-85' },
  /** Circuit breaker of every worker (CB-1). */
  circuitBreaker: { kind: 'section', options: circuitBreakerTable as typeof circuitBreakerTable, id: 'CF-90' },
  /** Breakers never open, a worker's own `cbFailureThreshold` aside; outcomes are still counted (CB-9). */
  disableCircuitBreaker: { kind: 'boolean', default: false, id: 'CF-94' },
  /** Thresholds of `recordProbe` (WK-19). */
  health: { kind: 'section', options: healthTable as typeof healthTable, id: 'CF-100' },
  /** How long a draining worker is kept; 0 = removed at once (WK-19). */
  drainSettleMs: { kind: 'number', default: 5000, min: 0, unit: 'ms', id: 'CF-102' },
  /** Age at which an open lease is released with the event `leaseExpired`, at most 144 in one call; unset = never (LB-23, LB-5). */
  maxLeaseAgeMs: { kind: 'number', above: 0, unit: 'ms', id: 'CF-108' },
  /** Time one `maintain()` call may take (LB-5). */
  maintenanceBudgetMs: { kind: 'number', default: 1, above: 0, unit: 'ms', id: 'CF-118' },
  /** Limits and backoff of `route()` (LB-25). */
  retry: { kind: 'section', options: retryTable as typeof retryTable, id: 'CF-119' },
  /** Monotonic milliseconds; unset = `performance.now()` (LB-2). */
  clock: { kind: 'opaque', id: 'CF-109' },
  /** Uniform numbers in [0, 1); unset = unseeded (LB-2). */
  random: { kind: 'opaque', id: 'CF-109' },
  /** Seed of the built-in generator: a 32-bit integer or a string. Not together with `random` (LB-2). */
  seed: { kind: 'opaque', id: 'CF-109' },
  /** 64-bit hash, well mixed in all its bits; unset = XXH64 (LB-4, `Hash64`). */
  hash: { kind: 'opaque', id: 'CF-109' },
  /** Requested model id → canonical id; an alias never shadows a registered model (WK-14). */
  modelAliases: { kind: 'opaque', id: 'WK-14' },
} as const;

/** Options of a router. */
export const routerTable: typeof routerOwnTable & typeof keySourceTable & typeof pinTable = /* @__PURE__ */ (() => ({
  ...routerOwnTable,
  ...keySourceTable,
  ...pinTable,
}))();

/** A worker's own overload thresholds (OV-4). */
export const workerOverloadTable = {
  /** Waiting requests, summed over ranks (OV-1). */
  waitingRequests: { kind: 'integer', min: 1, unit: 'requests', id: 'CF-73' },
  /** KV usage, mean over ranks (OV-1). */
  tokenUsage: { kind: 'number', above: 0, max: 1, unit: 'ratio', id: 'CF-73' },
} as const;

/** A worker's own breaker settings; what is unset comes from the router (CB-40). */
export const workerResilienceTable = {
  /** Consecutive failed requests that open the breaker. */
  cbFailureThreshold: { kind: 'integer', min: 1, unit: 'requests', id: 'CF-95' },
  /** Consecutive successes that close it. */
  cbSuccessThreshold: { kind: 'integer', min: 1, unit: 'requests', id: 'CF-95' },
  /** Time it blocks. */
  cbTimeoutMs: { kind: 'number', above: 0, unit: 'ms', id: 'CF-95' },
  /** Accepted and validated; there is no window (CB-1). */
  cbWindowMs: { kind: 'number', above: 0, unit: 'ms', id: 'CF-95' },
  /** This worker's breaker never opens, unless `cbFailureThreshold` is given too (CB-9). */
  disableCircuitBreaker: { kind: 'boolean', default: false, id: 'CF-95' },
  /** Statuses that record nothing; replaces the default 429 (CB-21). */
  capacityStatusCodes: { kind: 'statusCodes', read: statusCodes as typeof statusCodes, default: [429], id: 'CF-95' },
  /** Statuses that are failures; replaces the default 408, 429, 500, 502, 503, 504 (CB-21). */
  retryableStatusCodes: {
    kind: 'statusCodes',
    read: statusCodes as typeof statusCodes,
    default: [408, 429, 500, 502, 503, 504],
    id: 'CF-95',
  },
} as const;
