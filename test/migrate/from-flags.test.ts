import { describe, expect, it } from 'vitest';
import { flagTable } from '../../src/migrate/flag-table.js';
import { fromFlags } from '../../src/migrate/from-flags.js';
import { planRouter } from '../../src/router-options.js';

const words = (line: string): string[] => line.split(' ');
const router = (line: string): object => fromFlags(words(line)).router;

describe('fromFlags', () => {
  it('CF-2: nothing given leaves every default to the router', () => {
    expect(fromFlags([])).toEqual({
      router: {},
      host: {
        disableLoadMonitoring: false,
        engineMetrics: false,
        pdAdmissionWaitMs: 30_000,
        healthCheckIntervalMs: 60_000,
        healthCheckTimeoutMs: 5000,
        dpAware: false,
      },
      workers: [],
      unknown: [],
      unused: [],
    });
  });

  // Every flag with its expected place: [flag and value, expected router part].
  const cases: readonly [string, object][] = [
    ['--policy round_robin', { policy: 'round_robin' }],
    ['--cache-threshold 0.5', { policy: { name: 'cache_aware', cacheThreshold: 0.5 } }],
    ['--cache-match-threshold 0', { policy: { name: 'cache_aware', cacheThreshold: 0 } }],
    ['--balance-abs-threshold 0', { policy: { name: 'cache_aware', balanceAbsThreshold: 0 } }],
    ['--spill-abs-threshold 32', { policy: { name: 'cache_aware', balanceAbsThreshold: 32 } }],
    ['--balance-rel-threshold 1.1', { policy: { name: 'cache_aware', balanceRelThreshold: 1.1 } }],
    ['--spill-rel-threshold=2', { policy: { name: 'cache_aware', balanceRelThreshold: 2 } }],
    ['--balance-token-usage-threshold .3', { policy: { name: 'cache_aware', balanceTokenUsageThreshold: 0.3 } }],
    ['--overload-token-usage-threshold 0.9', { policy: { name: 'cache_aware', overloadTokenUsageThreshold: 0.9 } }],
    ['--overlap-decay 1e-2', { policy: { name: 'cache_aware', overlapDecay: 0.01 } }],
    ['--selection-temperature 0.2', { policy: { name: 'cache_aware', selectionTemperature: 0.2 } }],
    ['--eviction-interval 90', { evictionIntervalMs: 90_000 }],
    ['--eviction-interval-secs 60', { evictionIntervalMs: 60_000 }],
    ['--max-tree-size 1000', { policy: { name: 'cache_aware', maxTreeSize: 1000 } }],
    ['--block-size 32', { policy: { name: 'cache_aware', blockSize: 32 } }],
    [
      '--cache-index hash --cache-boundaries 2048,8192',
      { policy: { name: 'cache_aware', cacheIndex: 'hash', cacheBoundaries: [2048, 8192] } },
    ],
    ['--cache-ttl-secs 60', { policy: { name: 'cache_aware', cacheTtlMs: 60_000 } }],
    ['--kv-indexer-ttl-secs 0', { policy: { name: 'cache_aware', kvIndexerTtlMs: 0 } }],
    ['--kv-indexer-max-entries 9', { policy: { name: 'cache_aware', kvIndexerMaxEntries: 9 } }],
    [
      '--policy least_load --least-load-kv-pressure-weight 0 --least-load-default-throughput 500 --least-load-mean-prefill-tokens 64 --least-load-max-waiting-requests 8',
      {
        policy: {
          name: 'least_load',
          kvPressureWeight: 0,
          defaultThroughput: 500,
          meanPrefillTokens: 64,
          maxWaitingRequests: 8,
        },
      },
    ],
    [
      '--policy power_of_two --power-of-two-load-metric least_requests',
      { policy: { name: 'power_of_two', loadMetric: 'least_requests' } },
    ],
    [
      '--policy prefix_hash --prefix-token-count 128 --prefix-hash-load-factor 2 --prefix-hash-balance-abs-threshold 0 --cache-boundaries 16 32',
      {
        policy: {
          name: 'prefix_hash',
          prefixTokenCount: 128,
          loadFactor: 2,
          balanceAbsThreshold: 0,
          cacheBoundaries: [16, 32],
        },
      },
    ],
    ['--routing-key-override', { routingKeyOverride: true }],
    ['--sticky-sessions', { routingKeyOverride: true }],
    ['--sticky-sessions=false', { routingKeyOverride: false }],
    ['--routing-key-headers x-a x-b,x-c', { routingKeyHeaders: ['x-a', 'x-b', 'x-c'] }],
    [
      '--policy manual --assignment-mode min_load --max-idle-secs 0',
      { policy: 'manual', assignmentMode: 'min_load', maxIdleMs: 0 },
    ],
    ['--sticky-key-idle-secs 1.5', { maxIdleMs: 1500 }],
    [
      '--worker-overload-protection --worker-overload-waiting-requests 8 --worker-overload-token-usage 0.8',
      { workerOverloadProtection: true, workerOverloadWaitingRequests: 8, workerOverloadTokenUsage: 0.8 },
    ],
    ['--load-monitor-interval 5', { loadMonitorIntervalMs: 5000 }],
    ['--pd-pairing-mode strict --pd-disaggregation', { pdPairingMode: 'strict', mode: 'pd' }],
    [
      '--cb-failure-threshold 5 --cb-success-threshold 1 --cb-timeout-duration-secs 30 --cb-window-duration-secs 60',
      {
        circuitBreaker: {
          failureThreshold: 5,
          successThreshold: 1,
          timeoutDurationMs: 30_000,
          windowDurationMs: 60_000,
        },
      },
    ],
    ['--disable-circuit-breaker', { disableCircuitBreaker: true }],
    [
      '--health-failure-threshold 4 --health-success-threshold 1',
      { health: { failureThreshold: 4, successThreshold: 1 } },
    ],
    ['--drain-settle-secs 0', { drainSettleMs: 0 }],
    [
      '--retry-max-retries 3 --retry-initial-backoff-ms 10 --retry-max-backoff-ms 1000 --retry-backoff-multiplier 2 --retry-jitter-factor 0',
      { retry: { maxAttempts: 3, baseMs: 10, maxMs: 1000, factor: 2, jitter: 0 } },
    ],
    ['--disable-retries --retry-max-retries 3', { retry: { maxAttempts: 1 } }],
  ];
  for (const [line, expected] of cases) {
    it(`CF-2: ${line}`, () => {
      const translated = fromFlags(words(line));
      expect(translated.router).toEqual(expected);
      expect([translated.unknown, translated.unused]).toEqual([[], []]);
      expect(() => planRouter(translated.router)).not.toThrow();
    });
  }

  it('CF-2: every flag of the table sets an option that exists', () => {
    for (const [flag, { as, policies, option }] of Object.entries(flagTable)) {
      const { router, host } = fromFlags({
        policy: policies?.[0],
        [flag]: as === 'switch' ? true : as === 'text' || as === 'texts' ? 'x' : 1,
      });
      const place =
        flag === 'policy' || policies === undefined
          ? { ...router, ...router.circuitBreaker, ...router.health, ...router.retry }
          : router.policy;
      expect({ ...(place as object), ...host }, flag).toHaveProperty(option);
    }
  });

  it('CF-81, CF-82, CF-84, CF-101, CF-103: what concerns the host stands beside the router options', () => {
    const { host, router } = fromFlags(
      words(
        '--disable-load-monitoring --engine-metrics --pd-admission-wait-secs 0 --health-check-interval-secs 10 --health-check-timeout-secs 0.5 --dp-aware',
      ),
    );
    expect(host).toEqual({
      disableLoadMonitoring: true,
      engineMetrics: true,
      pdAdmissionWaitMs: 0,
      healthCheckIntervalMs: 10_000,
      healthCheckTimeoutMs: 500,
      dpAware: true,
    });
    expect(router).toEqual({});
    expect(() => fromFlags({ 'health-check-interval-secs': 0 })).toThrowError(
      expect.objectContaining({ field: 'host.healthCheckIntervalMs' }),
    );
  });

  it('LM-4: legs are built from the same flag values, each with the flags of its own policy', () => {
    const line =
      '--pd-disaggregation --policy cache_aware --cache-threshold 0.6 --prefill-policy bucket --balance-abs-threshold 8 --decode-policy least_load --least-load-mean-prefill-tokens 99';
    expect(router(line)).toEqual({
      mode: 'pd',
      policy: { name: 'cache_aware', cacheThreshold: 0.6, balanceAbsThreshold: 8 },
      prefillPolicy: { name: 'bucket', balanceAbsThreshold: 8 },
      decodePolicy: { name: 'least_load', meanPrefillTokens: 99 },
    });
  });

  it('LM-22: flags of a policy that was not chosen have no effect and are named', () => {
    const { router, unused } = fromFlags(words('--policy least_load --cache-threshold 0.5 --cache-boundaries 16'));
    expect(router).toEqual({ policy: 'least_load' });
    expect(unused).toEqual(['--cache-threshold', '--cache-boundaries']);
  });

  it('CF-2: unknown flags are listed with their words skipped, and never an error', () => {
    const line = 'smg launch --model-path meta/Llama --policy random --cache-treshold 0.5 --host=h --verbose';
    const { router, unknown } = fromFlags(words(line));
    expect(router).toEqual({ policy: 'random' });
    expect(unknown).toEqual(['--model-path', '--cache-treshold', '--host', '--verbose']);
    expect(fromFlags(words('--policy random stray')).unknown).toEqual(['stray']);
    expect(fromFlags({ toString: 'x', ['__proto__']: 1, constructor: 2 }).unknown).toEqual([
      'toString',
      '__proto__',
      'constructor',
    ]);
  });

  it('CF-2: names in camel case, with underscores, as flags and with the launcher’s prefix', () => {
    const expected = { policy: { name: 'cache_aware', cacheThreshold: 0.4 } };
    for (const name of ['cacheThreshold', 'cache_threshold', '--cache-threshold', 'router-cache-threshold']) {
      expect(fromFlags({ [name]: 0.4 }).router, name).toEqual(expected);
      expect(fromFlags({ [name]: '0.4' }).router, name).toEqual(expected);
    }
    expect(router('--router-policy random')).toEqual({ policy: 'random' });
    expect(fromFlags({ policy: undefined, cacheIndex: null, stickySessions: true }).router).toEqual({
      routingKeyOverride: true,
    });
  });

  it('CF-2: of a repeated flag the last value counts, lists are joined', () => {
    expect(router('--policy random --policy round_robin')).toEqual({ policy: 'round_robin' });
    expect(router('--routing-key-headers x-a --routing-key-headers x-b')).toEqual({
      routingKeyHeaders: ['x-a', 'x-b'],
    });
    expect(
      fromFlags({ routingKeyHeaders: ['x-a', 'x-b'], policy: 'prefix_hash', cacheBoundaries: [1, 2] }).router,
    ).toEqual({
      routingKeyHeaders: ['x-a', 'x-b'],
      policy: { name: 'prefix_hash', cacheBoundaries: [1, 2] },
    });
  });

  it('CF-1: a value that cannot be read is refused with the flag’s name', () => {
    for (const [line, field, value] of [
      ['--cache-threshold abc', '--cache-threshold', 'abc'],
      ['--cache-threshold 0x10', '--cache-threshold', '0x10'],
      ['--max-idle-secs --policy random', '--max-idle-secs', undefined],
      ['--cache-boundaries 1,x', '--cache-boundaries', 'x'],
      ['--policy', '--policy', undefined],
      ['--dp-aware=maybe', '--dp-aware', 'maybe'],
    ] as const) {
      expect(() => fromFlags(words(line)), line).toThrowError(
        expect.objectContaining({ code: 'KVROUTE_CONFIG', field, value }),
      );
    }
  });

  it('CF-1: ranges are left to the router, which names the option', () => {
    const { router } = fromFlags(words('--cache-threshold -1'));
    expect(router).toEqual({ policy: { name: 'cache_aware', cacheThreshold: -1 } });
    expect(() => planRouter(router)).toThrowError(expect.objectContaining({ field: 'policy.cacheThreshold' }));
  });

  it('LM-1: workers of the command line, with kinds and bootstrap ports', () => {
    expect(fromFlags(words('--worker-urls http://w1:8000 http://w2:8000')).workers).toEqual([
      { url: 'http://w1:8000', kind: 'regular' },
      { url: 'http://w2:8000', kind: 'regular' },
    ]);
    const line =
      '--pd-disaggregation --prefill http://p1:8000 9001 --prefill http://p2:8000 none --decode http://d1:8000';
    const pd = fromFlags(words(line));
    expect(pd.workers).toEqual([
      { url: 'http://p1:8000', kind: 'prefill', bootstrapPort: 9001 },
      { url: 'http://p2:8000', kind: 'prefill' },
      { url: 'http://d1:8000', kind: 'decode' },
    ]);
    expect(pd.router.mode).toBe('pd');
    expect(fromFlags(words(`${line} --encode http://e1:8000`)).router.mode).toBe('epd');
    expect(() => fromFlags(words('--prefill 9001'))).toThrowError(expect.objectContaining({ field: '--prefill' }));
  });
});

it('LB-40: what is no command line is refused by name', () => {
  expect(() => fromFlags('--policy random' as never)).toThrow(/^flags: must be an array of words/);
  expect(() => fromFlags(['--policy', 5] as never)).toThrow(/^flags\[1\]: must be a string, got 5/);
  expect(() => fromFlags({ 'worker-urls': [Object.create(null)] } as never)).toThrow(/^--worker-urls: must be text/);
});
