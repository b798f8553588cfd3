/**
 * The command-line flags of SMG that concern routing, and where each one goes (spec 10, CF-2). Seconds become
 * milliseconds. What the flags mean and accept stands in the table of options; this one only translates.
 */
import type { PolicyName } from '../policies/policy.js';

/** How the text after a flag is read. `seconds` is a number times 1 000. */
export type FlagReading = 'text' | 'number' | 'seconds' | 'switch' | 'texts' | 'numbers';

/** One flag. It sets `option` of the policies named, else of the section, else of the router. */
export interface Flag {
  readonly as: FlagReading;
  readonly option: string;
  readonly policies?: readonly PolicyName[];
  readonly section?: 'circuitBreaker' | 'health' | 'retry' | 'host';
  /** What a switch sets its option to, when that is not `true`. */
  readonly sets?: unknown;
}

/** Flags in the order they are applied: `--disable-retries` follows the flag it overrules. */
export const flagTable: { readonly [flag: string]: Flag } = {
  policy: { as: 'text', option: 'policy' },
  'prefill-policy': { as: 'text', option: 'prefillPolicy' },
  'decode-policy': { as: 'text', option: 'decodePolicy' },
  'encode-policy': { as: 'text', option: 'encodePolicy' },
  'pd-disaggregation': { as: 'switch', option: 'mode', sets: 'pd' },

  'cache-threshold': { as: 'number', option: 'cacheThreshold', policies: ['cache_aware'] },
  'balance-abs-threshold': { as: 'number', option: 'balanceAbsThreshold', policies: ['cache_aware', 'bucket'] },
  'balance-rel-threshold': { as: 'number', option: 'balanceRelThreshold', policies: ['cache_aware', 'bucket'] },
  'balance-token-usage-threshold': { as: 'number', option: 'balanceTokenUsageThreshold', policies: ['cache_aware'] },
  'overload-token-usage-threshold': { as: 'number', option: 'overloadTokenUsageThreshold', policies: ['cache_aware'] },
  'overlap-decay': { as: 'number', option: 'overlapDecay', policies: ['cache_aware'] },
  'selection-temperature': { as: 'number', option: 'selectionTemperature', policies: ['cache_aware'] },
  'max-tree-size': { as: 'number', option: 'maxTreeSize', policies: ['cache_aware'] },
  'block-size': { as: 'number', option: 'blockSize', policies: ['cache_aware'] },
  'cache-index': { as: 'text', option: 'cacheIndex', policies: ['cache_aware'] },
  'cache-boundaries': { as: 'numbers', option: 'cacheBoundaries', policies: ['cache_aware', 'prefix_hash'] },
  'cache-ttl-secs': { as: 'seconds', option: 'cacheTtlMs', policies: ['cache_aware'] },
  'kv-indexer-ttl-secs': { as: 'seconds', option: 'kvIndexerTtlMs', policies: ['cache_aware'] },
  'kv-indexer-max-entries': { as: 'number', option: 'kvIndexerMaxEntries', policies: ['cache_aware'] },
  'least-load-kv-pressure-weight': { as: 'number', option: 'kvPressureWeight', policies: ['least_load'] },
  'least-load-default-throughput': { as: 'number', option: 'defaultThroughput', policies: ['least_load'] },
  'least-load-mean-prefill-tokens': { as: 'number', option: 'meanPrefillTokens', policies: ['least_load'] },
  'least-load-max-waiting-requests': { as: 'number', option: 'maxWaitingRequests', policies: ['least_load'] },
  'power-of-two-load-metric': { as: 'text', option: 'loadMetric', policies: ['power_of_two'] },
  'prefix-token-count': { as: 'number', option: 'prefixTokenCount', policies: ['prefix_hash'] },
  'prefix-hash-load-factor': { as: 'number', option: 'loadFactor', policies: ['prefix_hash'] },
  'prefix-hash-balance-abs-threshold': { as: 'number', option: 'balanceAbsThreshold', policies: ['prefix_hash'] },

  // Shared by the override, by manual, and (the interval) by cache_aware: one value for all of them.
  'eviction-interval': { as: 'seconds', option: 'evictionIntervalMs' },
  'routing-key-override': { as: 'switch', option: 'routingKeyOverride' },
  'routing-key-headers': { as: 'texts', option: 'routingKeyHeaders' },
  'assignment-mode': { as: 'text', option: 'assignmentMode' },
  'max-idle-secs': { as: 'seconds', option: 'maxIdleMs' },

  'worker-overload-protection': { as: 'switch', option: 'workerOverloadProtection' },
  'worker-overload-waiting-requests': { as: 'number', option: 'workerOverloadWaitingRequests' },
  'worker-overload-token-usage': { as: 'number', option: 'workerOverloadTokenUsage' },
  'load-monitor-interval': { as: 'seconds', option: 'loadMonitorIntervalMs' },
  'pd-pairing-mode': { as: 'text', option: 'pdPairingMode' },
  'drain-settle-secs': { as: 'seconds', option: 'drainSettleMs' },

  'cb-failure-threshold': { as: 'number', option: 'failureThreshold', section: 'circuitBreaker' },
  'cb-success-threshold': { as: 'number', option: 'successThreshold', section: 'circuitBreaker' },
  'cb-timeout-duration-secs': { as: 'seconds', option: 'timeoutDurationMs', section: 'circuitBreaker' },
  'cb-window-duration-secs': { as: 'seconds', option: 'windowDurationMs', section: 'circuitBreaker' },
  'disable-circuit-breaker': { as: 'switch', option: 'disableCircuitBreaker' },
  'health-failure-threshold': { as: 'number', option: 'failureThreshold', section: 'health' },
  'health-success-threshold': { as: 'number', option: 'successThreshold', section: 'health' },
  'retry-max-retries': { as: 'number', option: 'maxAttempts', section: 'retry' },
  'retry-initial-backoff-ms': { as: 'number', option: 'baseMs', section: 'retry' },
  'retry-backoff-multiplier': { as: 'number', option: 'factor', section: 'retry' },
  'retry-max-backoff-ms': { as: 'number', option: 'maxMs', section: 'retry' },
  'retry-jitter-factor': { as: 'number', option: 'jitter', section: 'retry' },
  'disable-retries': { as: 'switch', option: 'maxAttempts', section: 'retry', sets: 1 },

  'disable-load-monitoring': { as: 'switch', option: 'disableLoadMonitoring', section: 'host' },
  'engine-metrics': { as: 'switch', option: 'engineMetrics', section: 'host' },
  'pd-admission-wait-secs': { as: 'seconds', option: 'pdAdmissionWaitMs', section: 'host' },
  'health-check-interval-secs': { as: 'seconds', option: 'healthCheckIntervalMs', section: 'host' },
  'health-check-timeout-secs': { as: 'seconds', option: 'healthCheckTimeoutMs', section: 'host' },
  'dp-aware': { as: 'switch', option: 'dpAware', section: 'host' },
};

/** Other spellings: second names, and those of the Python launcher. */
export const flagAliases: { readonly [flag: string]: string } = {
  'cache-match-threshold': 'cache-threshold',
  'spill-abs-threshold': 'balance-abs-threshold',
  'spill-rel-threshold': 'balance-rel-threshold',
  'eviction-interval-secs': 'eviction-interval',
  'load-monitor-interval-secs': 'load-monitor-interval',
  'sticky-sessions': 'routing-key-override',
  'sticky-key-idle-secs': 'max-idle-secs',
};

/** What the host does itself; returned beside the router's options (CF-2). */
export const hostTable = {
  /** Do not poll loads just to route. */
  disableLoadMonitoring: { kind: 'boolean', default: false, id: 'CF-81' },
  /** Poll loads for engine metrics whatever the policy. */
  engineMetrics: { kind: 'boolean', default: false, id: 'CF-82' },
  /** How long a request waits for room in a decode worker's admission window; 0 = not at all (LM-33). */
  pdAdmissionWaitMs: { kind: 'number', default: 30_000, min: 0, unit: 'ms', id: 'CF-84' },
  /** Interval of health probes. */
  healthCheckIntervalMs: { kind: 'number', default: 60_000, above: 0, unit: 'ms', id: 'CF-101' },
  /** Time a probe may take. */
  healthCheckTimeoutMs: { kind: 'number', default: 5000, above: 0, unit: 'ms', id: 'CF-101' },
  /** Register every data-parallel rank as a worker of its own (WK-15). */
  dpAware: { kind: 'boolean', default: false, id: 'CF-103' },
} as const;
