/**
 * The options of spec 10, row by row: default, both ends of the range, what lies just outside, and other types. The
 * numbers are those of the specification, not of the table under test. Durations are milliseconds (CF-1).
 */
import { createRouter, loadHash, type RouterOptions, RoutingConfigError } from 'kvroute';
import { manualClock } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { hostTable } from '../../src/migrate/flag-table.js';
import { policyTables } from '../../src/options/policy-options.js';
import type { OptionTable } from '../../src/options/spec.js';
import { routerTable, workerOverloadTable, workerResilienceTable } from '../../src/options/table.js';
import { resolveOptions } from '../../src/options/validate.js';

/** What is no number that any option takes. */
const noNumbers = [Number.NaN, -Infinity, null, '1', true, [1], {}, 1n];
const noBooleans = [null, 'true', 0, 1, {}];
const noTexts = [null, 0, true, ['random'], {}, '', 'unknown'];
const { cache_aware, least_load, power_of_two, prefix_hash, bucket, manual, consistent_hashing } = policyTables;

interface Row {
  readonly id: string;
  readonly table: OptionTable;
  readonly option: string;
  readonly default: unknown;
  readonly accepted: readonly unknown[];
  readonly refused: readonly unknown[];
}

function row(
  id: string,
  table: OptionTable,
  option: string,
  byDefault: unknown,
  accepted: readonly unknown[],
  refused: readonly unknown[],
): Row {
  return { id, table, option, default: byDefault, accepted, refused };
}

/** Integers from `min` on. */
const integer = (id: string, table: OptionTable, option: string, byDefault: unknown, min: number): Row =>
  row(id, table, option, byDefault, [min, min + 1, 2 ** 31], [min - 1, min + 0.5, Infinity, ...noNumbers]);

/** Finite numbers from `min` on. */
const number = (id: string, table: OptionTable, option: string, byDefault: unknown, min: number): Row =>
  row(id, table, option, byDefault, [min, min + 0.5, 1e9], [min - 1e-6, -1e9, Infinity, ...noNumbers]);

/** Finite numbers above 0. */
const positive = (id: string, table: OptionTable, option: string, byDefault: unknown): Row =>
  row(id, table, option, byDefault, [1e-6, 1, 1e9], [0, -0, -1e-6, Infinity, ...noNumbers]);

const boolean = (id: string, table: OptionTable, option: string): Row =>
  row(id, table, option, false, [false, true], noBooleans);

const choice = (id: string, table: OptionTable, option: string, byDefault: unknown, values: readonly string[]): Row =>
  row(id, table, option, byDefault, values, noTexts);

const section = (name: 'circuitBreaker' | 'health' | 'retry'): OptionTable => routerTable[name].options;
const codes = [[], [100, 599], [429]];
const noCodes = [[99], [600], [429.5], ['429'], [null], 429, null];

const rows: readonly Row[] = [
  row('CF-20', cache_aware, 'cacheThreshold', 0.3, [0, 0.3, 1], [-1e-6, 1 + 1e-6, Infinity, ...noNumbers]),
  integer('CF-21', cache_aware, 'balanceAbsThreshold', 64, 0),
  integer('CF-21', bucket, 'balanceAbsThreshold', 64, 0),
  number('CF-22', cache_aware, 'balanceRelThreshold', 1.5, 1),
  number('CF-22', bucket, 'balanceRelThreshold', 1.5, 1),
  positive('CF-23', cache_aware, 'balanceTokenUsageThreshold', 1),
  positive('CF-24', cache_aware, 'overloadTokenUsageThreshold', 1),
  number('CF-25', cache_aware, 'overlapDecay', 0, 0),
  number('CF-26', cache_aware, 'selectionTemperature', 0, 0),
  number('CF-27', cache_aware, 'evictionIntervalMs', 120_000, 0),
  number('CF-27', routerTable, 'evictionIntervalMs', 120_000, 0),
  integer('CF-28', cache_aware, 'maxTreeSize', 67_108_864, 1),
  integer('CF-29', cache_aware, 'blockSize', 16, 1),
  choice('CF-30', cache_aware, 'cacheIndex', 'tree', ['tree', 'hash']),
  ...[cache_aware, prefix_hash].map((table) =>
    row(
      'CF-31',
      table,
      'cacheBoundaries',
      [],
      [[], [1], [1, 2, 4096]],
      [[0], [2, 2], [3, 2], [1.5], ['1'], '1,2', 4, null],
    ),
  ),
  number('CF-32', cache_aware, 'cacheTtlMs', 180_000, 1000),
  number('CF-33', cache_aware, 'kvIndexerTtlMs', undefined, 0),
  integer('CF-34', cache_aware, 'kvIndexerMaxEntries', undefined, 0),
  number('CF-40', least_load, 'kvPressureWeight', 0.15, 0),
  positive('CF-41', least_load, 'defaultThroughput', 2000),
  integer('CF-42', least_load, 'meanPrefillTokens', 1024, 1),
  integer('CF-43', least_load, 'maxWaitingRequests', 0, 0),
  choice('CF-44', power_of_two, 'loadMetric', 'expected_wait', ['expected_wait', 'requests', 'least_requests']),
  integer('CF-50', prefix_hash, 'prefixTokenCount', 256, 1),
  number('CF-51', prefix_hash, 'loadFactor', 1.25, 1),
  integer('CF-52', prefix_hash, 'balanceAbsThreshold', 10, 0),
  ...[routerTable, consistent_hashing].flatMap((table) => [
    boolean('CF-60', table, 'routingKeyOverride'),
    row(
      'CF-61',
      table,
      'routingKeyHeaders',
      ['x-smg-routing-key'],
      [[], ['x-a', 'x-b']],
      [['x a'], ['x:a'], [''], ['ä'], [1], 'x-a', null],
    ),
  ]),
  ...[routerTable, manual].flatMap((table) => [
    choice('CF-62', table, 'assignmentMode', undefined, ['random', 'min_load', 'min_group', 'delegate']),
    number('CF-63', table, 'maxIdleMs', 14_400_000, 0),
    integer('CF-107', table, 'maxPins', 1_000_000, 1),
  ]),
  boolean('CF-70', routerTable, 'workerOverloadProtection'),
  ...(
    [
      ['CF-71', routerTable, 'workerOverloadWaitingRequests'],
      ['CF-73', workerOverloadTable, 'waitingRequests'],
    ] as const
  ).map(([id, table, option]) => integer(id, table, option, undefined, 1)),
  ...(
    [
      ['CF-72', routerTable, 'workerOverloadTokenUsage'],
      ['CF-73', workerOverloadTable, 'tokenUsage'],
    ] as const
  ).map(([id, table, option]) =>
    row(id, table, option, undefined, [1e-6, 0.9, 1], [0, -0.1, 1 + 1e-6, Infinity, ...noNumbers]),
  ),
  positive('CF-80', routerTable, 'loadMonitorIntervalMs', 10_000),
  boolean('CF-81', hostTable, 'disableLoadMonitoring'),
  boolean('CF-82', hostTable, 'engineMetrics'),
  number('CF-84', hostTable, 'pdAdmissionWaitMs', 30_000, 0),
  choice('CF-85', routerTable, 'pdPairingMode', 'lenient', ['off', 'lenient', 'strict']),
  integer('CF-90', section('circuitBreaker'), 'failureThreshold', 10, 1),
  integer('CF-91', section('circuitBreaker'), 'successThreshold', 3, 1),
  positive('CF-92', section('circuitBreaker'), 'timeoutDurationMs', 60_000),
  positive('CF-93', section('circuitBreaker'), 'windowDurationMs', 120_000),
  boolean('CF-94', routerTable, 'disableCircuitBreaker'),
  integer('CF-95', workerResilienceTable, 'cbFailureThreshold', undefined, 1),
  integer('CF-95', workerResilienceTable, 'cbSuccessThreshold', undefined, 1),
  positive('CF-95', workerResilienceTable, 'cbTimeoutMs', undefined),
  positive('CF-95', workerResilienceTable, 'cbWindowMs', undefined),
  boolean('CF-95', workerResilienceTable, 'disableCircuitBreaker'),
  row('CF-95', workerResilienceTable, 'capacityStatusCodes', [429], codes, noCodes),
  row('CF-95', workerResilienceTable, 'retryableStatusCodes', [408, 429, 500, 502, 503, 504], codes, noCodes),
  integer('CF-100', section('health'), 'failureThreshold', 3, 1),
  integer('CF-100', section('health'), 'successThreshold', 2, 1),
  positive('CF-101', hostTable, 'healthCheckIntervalMs', 60_000),
  positive('CF-101', hostTable, 'healthCheckTimeoutMs', 5000),
  number('CF-102', routerTable, 'drainSettleMs', 5000, 0),
  boolean('CF-103', hostTable, 'dpAware'),
  choice('CF-105', routerTable, 'mode', 'regular', ['regular', 'pd', 'epd']),
  row('CF-106', routerTable, 'loadReportMaxAgeMs', undefined, [1e-6, 1, Infinity], [0, -1, ...noNumbers]),
  positive('CF-108', routerTable, 'maxLeaseAgeMs', undefined),
  choice('CF-117', bucket, 'legs', 'prefill', ['prefill', 'any']),
  positive('CF-118', routerTable, 'maintenanceBudgetMs', 1),
  integer('CF-119', section('retry'), 'maxAttempts', 5, 1),
  number('CF-119', section('retry'), 'baseMs', 50, 0),
  number('CF-119', section('retry'), 'factor', 1.5, 1),
  number('CF-119', section('retry'), 'maxMs', 30_000, 0),
  row('CF-119', section('retry'), 'jitter', 0.2, [0, 0.5, 1], [-1e-6, 1 + 1e-6, Infinity, ...noNumbers]),
];

const refusalOf = async (options: unknown): Promise<RoutingConfigError> => {
  const error: unknown = await createRouter(options as RouterOptions).catch((refused: unknown) => refused);
  expect(error).toBeInstanceOf(RoutingConfigError);
  return error as RoutingConfigError;
};

describe('CF-1, LB-40: an option takes its range and nothing else', () => {
  it.each(rows)('$id: $option', ({ table, option, default: byDefault, accepted, refused }) => {
    expect(resolveOptions(table, {})[option]).toStrictEqual(byDefault);
    expect(resolveOptions(table, { [option]: undefined })[option]).toStrictEqual(byDefault);
    for (const value of accepted) expect(resolveOptions(table, { [option]: value })[option]).toStrictEqual(value);
    for (const value of refused) {
      let error: unknown;
      try {
        resolveOptions(table, { [option]: value }, 'own.');
      } catch (refusal) {
        error = refusal;
      }
      expect(error, String(value)).toBeInstanceOf(RoutingConfigError);
      const { field, value: given, code } = error as RoutingConfigError;
      expect([field, given, code]).toStrictEqual([`own.${option}`, value, 'KVROUTE_CONFIG']);
    }
  });
});

const names = [
  ...['cache_aware', 'least_load', 'power_of_two', 'consistent_hashing', 'passthrough'],
  ...['prefix_hash', 'manual', 'round_robin', 'random'],
] as const;

describe('the options that the table leaves open', () => {
  it('CF-10: the ten policies and no other name; cache_aware by default', async () => {
    expect((await createRouter()).pools()[0]?.policy).toBe('cache_aware');
    for (const policy of names) expect((await createRouter({ policy })).pools()[0]?.policy).toBe(policy);
    expect((await createRouter({ policy: { name: 'bucket', legs: 'any' } })).pools()[0]?.policy).toBe('bucket');
    for (const policy of ['', 'cacheAware', 'cache-aware', 'Random']) {
      expect((await refusalOf({ policy })).field).toBe('policy');
    }
    for (const policy of [null, 5, true, []]) expect((await refusalOf({ policy })).field).toBe('policy');
  });

  it('CF-11, LM-2: the legs run the policy of the router unless they have their own', async () => {
    const policyOf = async (options: RouterOptions): Promise<string[]> =>
      (await createRouter({ mode: 'pd', ...options })).pools().map(({ leg, policy }) => `${leg} ${policy}`);
    expect(await policyOf({ policy: 'random' })).toEqual(['prefill random', 'decode random']);
    for (const policy of names.filter((name) => name !== 'passthrough')) {
      const own = { prefillPolicy: policy, decodePolicy: policy } as const;
      expect(await policyOf(own)).toEqual([`prefill ${policy}`, `decode ${policy}`]);
    }
    expect(await policyOf({ policy: 'random', prefillPolicy: 'bucket' })).toEqual(['prefill bucket', 'decode random']);
  });

  it.each([
    ['prefillPolicy', 'passthrough'],
    ['decodePolicy', 'passthrough'],
    ['decodePolicy', 'bucket'],
    ['prefillPolicy', 'unknown'],
    ['decodePolicy', 5],
  ])('CF-11, PT-3, LM-13: %s is not %s', async (field, policy) => {
    expect((await refusalOf({ mode: 'pd', [field]: policy })).field).toBe(field);
    expect((await refusalOf({ [field]: policy })).field).toBe(field);
  });

  it('CF-12: three policies may encode, consistent_hashing unless another is named', async () => {
    const encode = async (options: RouterOptions): Promise<string | undefined> =>
      (await createRouter({ mode: 'epd', ...options })).pools().find(({ leg }) => leg === 'encode')?.policy;
    expect(await encode({})).toBe('consistent_hashing');
    expect(await encode({ encodePolicy: 'random' })).toBe('random');
    expect(await encode({ encodePolicy: 'round_robin' })).toBe('round_robin');
    for (const encodePolicy of ['least_load', 'cache_aware', 'passthrough', 'unknown', 7]) {
      expect((await refusalOf({ mode: 'epd', encodePolicy })).field).toBe('encodePolicy');
    }
  });

  it("CF-30: cacheIndex 'hash' needs boundaries", async () => {
    const { field } = await refusalOf({ policy: { name: 'cache_aware', cacheIndex: 'hash' } });
    expect(field).toMatch(/cacheBoundaries$/);
  });

  it('CF-61: header names come back in lower case', () => {
    const { routingKeyHeaders } = resolveOptions(routerTable, { routingKeyHeaders: ['X-Session', 'x-User'] });
    expect(routingKeyHeaders).toEqual(['x-session', 'x-user']);
  });

  it('CF-62: a key is placed by the policy below the override, at random by manual', async () => {
    const router = await createRouter({ policy: 'manual', routingKeyOverride: true });
    expect(router.pools()[0]?.options).toMatchObject({ assignmentMode: undefined });
  });

  it('CF-64, CF-110, CF-111, CF-112: the constants are no options', async () => {
    const constants = [
      'stickyInflightCap',
      'virtualNodes',
      'maxTenants',
      'bucketAdjustIntervalSecs',
      'loadCheckIntervalMs',
    ];
    for (const name of constants) expect(await refusalOf({ [name]: 2 })).toMatchObject({ field: name, value: 2 });
  });

  it.each(['random', 'round_robin', 'passthrough', 'consistent_hashing', 'manual'])(
    'CF-114: %s has no tunables of its own',
    async (name) => {
      const { field } = await refusalOf({ policy: { name, balanceAbsThreshold: 1 } });
      expect(field).toBe('policy.balanceAbsThreshold');
    },
  );

  it('CF-83: a worker is polled every second at most', async () => {
    const router = await createRouter({ policy: 'least_load' });
    router.addWorker({ id: 'w1', models: ['unset'] });
    router.addWorker({ id: 'w2', models: ['floor'], loadMonitorIntervalMs: 1 });
    router.addWorker({ id: 'w3', models: ['slow'], loadMonitorIntervalMs: 60_000 });
    const intervals = router.pollGroups().map(({ model, intervalMs }) => [model, intervalMs]);
    expect(intervals).toEqual([
      ['unset', 10_000],
      ['floor', 1000],
      ['slow', 60_000],
    ]);
    for (const loadMonitorIntervalMs of [0, -1, Number.NaN, '5', null]) {
      expect(() => router.addWorker({ id: 'wrong', loadMonitorIntervalMs: loadMonitorIntervalMs as number })).toThrow(
        RoutingConfigError,
      );
    }
  });

  it('CF-109: what is injected is a function, a seed an integer or a string', async () => {
    const { clock } = manualClock();
    for (const seed of [0, -1, 2 ** 31, 'text', '']) await createRouter({ seed, clock, hash: await loadHash() });
    for (const seed of [1.5, Number.NaN, Infinity, null, true, {}]) {
      expect((await refusalOf({ seed })).field).toBe('seed');
    }
    expect((await refusalOf({ seed: 1, random: () => 0 })).field).toBe('seed');
    for (const name of ['clock', 'random', 'hash']) {
      for (const value of [1, 'text', {}, null]) expect((await refusalOf({ [name]: value })).field).toBe(name);
    }
  });

  it('CF-115, CF-116: policyOptions hold options by policy name', async () => {
    const router = await createRouter({
      policy: 'random',
      policyOptions: { least_load: { maxWaitingRequests: 3 } },
    });
    router.addWorker({ id: 'w1', models: ['m'], labels: { policy: 'least_load' } });
    const pool = router.pools().find(({ model }) => model === 'm');
    expect(pool).toMatchObject({ policy: 'least_load', options: { maxWaitingRequests: 3, kvPressureWeight: 0.15 } });
    expect((await refusalOf({ policyOptions: { lest_load: {} } })).field).toBe('policyOptions.lest_load');
    const { field } = await refusalOf({ policyOptions: { least_load: { maxWaitingRequests: -1 } } });
    expect(field).toBe('policyOptions.least_load.maxWaitingRequests');
    for (const policyOptions of [null, [], 5]) {
      expect((await refusalOf({ policyOptions })).field).toBe('policyOptions');
    }
  });
});
