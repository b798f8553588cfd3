/** The exported functions with what they are given, argument by argument. */
import { ok } from 'node:assert/strict';
import fc from 'fast-check';
import * as core from 'kvroute';
import * as engines from 'kvroute/engines';
import * as metrics from 'kvroute/metrics';
import * as testing from 'kvroute/testing';
import { hostile, hostileRecord, mostly } from './hostile.js';
import { candidates, id, report, request, text, tokens, workerSpec } from './inputs.js';
import { policyOptions, routerOptions } from './options.js';

/** A function under test. */
export interface FuzzedFunction {
  /** The entry point and the export. */
  readonly name: string;
  readonly call: (...args: never[]) => unknown;
  /** What each argument is mostly; any of them may be hostile. */
  readonly args: readonly fc.Arbitrary<unknown>[];
  /** Positions of arguments that only the library makes: they are always sound. */
  readonly trusted?: readonly number[];
  /** Data of clients and engines: refuses nothing, whatever it is given. */
  readonly refusesNothing?: boolean;
  /** Looks at a result. @throws when it is none of the function's */
  readonly check?: (result: never) => void;
}

const hash = await core.loadHash();
const policy: core.Policy = {
  name: 'own',
  needs: {},
  decide: ({ exclude }) => new core.Decision(undefined, exclude?.[0]),
};
const { cacheAware, leastLoad, powerOfTwo, bucket, passthrough, manual, roundRobin, random } = core;
const { consistentHashing, prefixHash, KvRouteError, RoutingConfigError, SnapshotError } = core;
const plain = { cacheAware, leastLoad, powerOfTwo, bucket, passthrough, manual, roundRobin, random };
const factories = { ...plain, consistentHashing, prefixHash };
const errors = { KvRouteError, RoutingConfigError, SnapshotError };
const adapter: metrics.MetricsAdapter = { counter: () => {}, gauge: () => {}, histogram: () => {} };
const adapters = hostileRecord(Object.fromEntries(Object.keys(adapter).map((name) => [name, fc.constant(() => {})])));
const router = await core.createRouter();
const worker = router.addWorker({ id: 'w1', url: 'http://w1:8000' });
const summary: core.LoadSummary = {
  report: { waitingRequests: 3, kvCacheUsage: 0.5 },
  waitingRequests: 3,
  waitingTokens: undefined,
  tokensPerSecond: 0,
  kvCacheUsage: 0.5,
  maxRunningRequests: undefined,
  observedAt: 0,
  expiresAt: Infinity,
};
const codes = core.resolveOutcomeCodes(undefined);
const count = fc.constantFrom(0, 1, 3, 100);
/** Work is proportional to them: what is asked for is done, so that enormous ones would be waited for. */
const sizes = fc.oneof(
  count,
  fc.constantFrom('minusOne', 'half', 'nan', 'bigint', 'symbol', 'null', 'numbers', 'revoked').map(($) => ({ $ })),
);
const names = fc.array(mostly(id), { maxLength: 3 });
const optional = fc.constant(undefined);
const bytes = fc.uint8Array({ maxLength: 64 });
const number = fc.oneof(fc.nat(9), fc.double());
const payload = fc.oneof(bytes, fc.string({ unit: 'binary', maxLength: 64 }), fc.jsonValue({ maxDepth: 3 }), hostile);

/** JSON that is nearly sound: some of its bytes are others. */
function bytesOf(body: fc.Arbitrary<unknown>): fc.Arbitrary<Uint8Array> {
  const broken = fc.array(fc.tuple(fc.nat(999), fc.nat(255)), { maxLength: 2 });
  return fc.tuple(body, broken).map(([value, changes]) => {
    const encoded = new TextEncoder().encode(JSON.stringify(value));
    for (const [at, byte] of changes) if (at < encoded.length) encoded[at] = byte;
    return encoded;
  });
}

const part = fc.oneof(text, hostileRecord({ type: fc.constantFrom('text', 'image_url'), text }));
const body = fc.dictionary(
  fc.constantFrom('messages', 'prompt', 'input', 'input_ids', 'text', 'system', 'model', 'rid', 'stream', 'cache_salt'),
  fc.oneof(part, fc.array(part), fc.array(fc.record({ role: text, content: part })), tokens, number),
);
const rank = fc.dictionary(
  fc.constantFrom('dp_rank', 'num_running_reqs', 'num_waiting_reqs', 'token_usage', 'gen_throughput', '__proto__'),
  number,
);
const loads = fc.record({ loads: fc.array(rank, { maxLength: 3 }) });
const metricName = fc.constantFrom('vllm:kv_cache_usage_perc', 'sglang:num_queue_reqs', 'trtllm_kv_cache_utilization');
const metricsText = fc.array(
  fc.tuple(metricName, fc.constantFrom('', '{', '{a="b"}'), number).map(([n, l, v]) => `${n}${l} ${v}\n`),
);
const loadPayload = fc.oneof(
  loads,
  bytesOf(loads),
  metricsText.map((lines) => lines.join('')),
  payload,
);
const requestKind = fc.constantFrom(
  'openai_chat',
  'openai_completions',
  'openai_responses',
  'anthropic_messages',
  'sglang_generate',
);
const loadKind = fc.constantFrom(
  'sglang_loads',
  'sglang_get_load',
  'vllm_load',
  'vllm_metrics',
  'sglang_metrics',
  'triton_metrics',
);

const member = hostileRecord({ index: count, host: fc.constantFrom('a', '::1'), qualified: fc.boolean() });
const group = hostileRecord({
  role: fc.constantFrom('server', 'prefill', 'encode'),
  mode: fc.constantFrom('external', 'internal'),
  qualified: fc.boolean(),
  replicas: fc.array(mostly(hostileRecord({ members: fc.array(mostly(member), { maxLength: 2 }) })), { maxLength: 2 }),
});
const leg = hostileRecord({ state: fc.constantFrom('verified', 'failed'), members: names });
const legs = hostileRecord({
  membersComplete: leg,
  membersReady: leg,
  groupForwards: leg,
  noPlannedRetirement: leg,
  noPendingReplacement: leg,
});
const view = hostileRecord({ observedAt: count, workers: names, complete: fc.boolean() });
const evidence = hostileRecord({ status: fc.nat(700), grpcStatus: fc.nat(20), error: hostile, signal: hostile });
const memo = hostileRecord({ answered: id, absent: names });
const outcomeOfRoute = hostileRecord({ outcome: fc.constantFrom('report', 'absent', 'inconclusive') });
const answered = fc.oneof(
  fc.constant(worker),
  hostileRecord({ ok: fc.boolean(), worker: fc.constant(worker), code: id, retryAfterMs: count }),
  hostileRecord({ ok: fc.constant(true), decode: hostileRecord({ worker: fc.constant(worker) }) }),
);
const fleet = testing.fakeFleet(2);
const selection = fc.constantFrom<unknown>(
  core.leastLoad({ seed: 1 }).selectWorker({}, fleet),
  core.leastLoad({ seed: 1 }).selectWorker({}, []),
  core.leastLoad({ seed: 1 }).explain({}, fleet).selection,
);
const distributed = fc.constant(testing.distribution(core.leastLoad, {}, fleet, { seeds: 9 }));
const flags = fc.oneof(
  fc.array(mostly(fc.constantFrom('--policy', 'random', '--worker-urls', 'http://a', '--cache-threshold', '0.5')), {
    maxLength: 6,
  }),
  hostileRecord({ policy: fc.constant('random'), 'worker-urls': names, cacheThreshold: number, prefill: names }),
);
const ring = hostileRecord({
  lookup: fc.constant(() => undefined),
  add: fc.constant(() => {}),
  remove: fc.constant(() => {}),
});
const runtime = hostileRecord({
  clock: fc.constant(() => 0),
  random: fc.constant(() => 0),
  seed: count,
  loadReportMaxAgeMs: count,
  ring,
});

const matcher = (
  name: keyof typeof testing.kvrouteMatchers,
  received: fc.Arbitrary<unknown>,
  expected: fc.Arbitrary<unknown>,
) => ({
  name: 'kvroute/testing: kvrouteMatchers',
  call: (value: never, wanted: never) => testing.kvrouteMatchers[name](value, wanted).message(),
  args: [received, expected],
});

export const functions: readonly FuzzedFunction[] = [
  { name: 'kvroute: createRouter', call: core.createRouter, args: [routerOptions] },
  ...Object.entries(factories).map(([name, make]) => ({
    name: `kvroute: ${name}`,
    call: (options: never, given: never, fleet: never) => make(options).selectWorker(given, fleet),
    args: [policyOptions, request, candidates],
  })),
  { name: 'kvroute: standalone', call: core.standalone, args: [fc.constant(policy), runtime, ring] },
  { name: 'kvroute: stickySessions', call: core.stickySessions, args: [fc.constant(core.leastLoad()), policyOptions] },
  {
    name: 'kvroute: prefixHeads',
    call: (given: never, options: never, own: never) => core.prefixHeads(given, options, own),
    args: [request, policyOptions, fc.constant(hash)],
  },
  {
    name: 'kvroute: bucketRecompute',
    call: core.bucketRecompute,
    trusted: [0],
    args: [sizes, fc.array(mostly(fc.nat(99), 40)), fc.nat(99)],
  },
  {
    name: 'kvroute: seededRandom',
    call: (seed: never) => core.seededRandom(seed)(),
    args: [fc.oneof(fc.nat(), fc.string())],
  },
  { name: 'kvroute: loadHash', call: core.loadHash, args: [optional] },
  {
    name: 'kvroute: isValidRoutingKey',
    call: core.isValidRoutingKey,
    args: [text],
    refusesNothing: true,
    check: (result: unknown) => ok(typeof result === 'boolean'),
  },
  {
    name: 'kvroute: ridKey',
    call: core.ridKey,
    args: [fc.constantFrom('r1_t2', '_r1', 'r'.repeat(200))],
    refusesNothing: true,
    check: (result: unknown) =>
      ok(result === undefined || core.isValidRoutingKey(result as string) || typeof result === 'string'),
  },
  {
    name: 'kvroute: parseRoutingTokens',
    call: core.parseRoutingTokens,
    args: [fc.constantFrom('1,2', '1,,2', '4294967296', '007')],
    refusesNothing: true,
    check: (result: unknown) => ok(result === undefined || (result instanceof Uint32Array && result.length <= 512)),
  },
  {
    name: 'kvroute: namespaceKey',
    call: core.namespaceKey,
    args: [hostileRecord({ cacheSalt: text, extraKey: text, lora: text })],
    check: (result: unknown) => ok(result === undefined || /^[0-9a-f]{16}$/.test(result as string)),
  },
  { name: 'kvroute: nextSequence', call: core.nextSequence, args: [fc.nat(3), fc.oneof(fc.nat(4), bytes)] },
  { name: 'kvroute: fromFlags', call: core.fromFlags, args: [flags] },
  {
    name: 'kvroute: admissionLimit',
    call: core.admissionLimit,
    args: [fc.constant(new Map([['max_running_requests', '5']])), report],
  },
  {
    name: 'kvroute: classifyOutcome',
    call: (outcome: never) => core.classifyOutcome(outcome, codes),
    args: [hostileRecord({ status: fc.nat(700), error: fc.constant('body'), aborted: fc.boolean() })],
    refusesNothing: true,
    check: (result: unknown) => ok(['success', 'failure', 'nothing'].includes(result as string)),
  },
  {
    name: 'kvroute: resolveOutcomeCodes',
    call: core.resolveOutcomeCodes,
    args: [hostileRecord({ capacityStatusCodes: fc.constant([429]), retryableStatusCodes: fc.constant([500]) })],
  },
  {
    name: 'kvroute: resolveOverloadThresholds',
    call: core.resolveOverloadThresholds,
    args: [fc.constant(undefined), hostileRecord({ waitingRequests: fc.nat(9), tokenUsage: fc.constant(0.9) })],
  },
  {
    name: 'kvroute: overloadVerdict',
    call: core.overloadVerdict,
    args: [fc.constant(summary), hostileRecord({ waitingRequests: fc.nat(9), tokenUsage: fc.constant(0.9) })],
    trusted: [0],
  },
  {
    name: 'kvroute: emptySelection',
    call: core.emptySelection,
    args: [fc.array(mostly(hostileRecord({ overloaded: fc.boolean() })), { maxLength: 3 })],
    check: (result: unknown) => ok(['overloaded', 'no_available_workers', 'no_workers'].includes(result as string)),
  },
  {
    name: 'kvroute: Decision',
    call: (chosen: never, branch: never) => new core.Decision(chosen, branch),
    args: [fc.constant(worker), id],
  },
  ...Object.entries(errors).map(([name, error]) => ({
    name: `kvroute: ${name}`,
    call: (value: unknown) => value instanceof error,
    args: [fc.constant(new core.RoutingConfigError('field', 0, 'must be 1'))],
    refusesNothing: true,
  })),
  { name: 'kvroute: responseHeaders', call: core.responseHeaders, args: [answered] },
  {
    name: 'kvroute: eligibleEndpoints',
    call: core.eligibleEndpoints,
    args: [fc.array(mostly(group), { maxLength: 2 }), hostileRecord({ port: count, externalModes: names })],
  },
  { name: 'kvroute: qualify', call: core.qualify, args: [fc.constant(core.neverQualified), legs] },
  {
    name: 'kvroute: observeServing',
    call: core.observeServing,
    args: [fc.array(mostly(view), { maxLength: 3 }), count, count],
  },
  {
    name: 'kvroute/engines: classifyUpstream',
    call: engines.classifyUpstream,
    args: [evidence],
    refusesNothing: true,
    check: (result: core.LeaseOutcome) => ok(Object.keys(result).length === 1),
  },
  {
    name: 'kvroute/engines: dataParallelWorkers',
    call: (spec: never, size: never) => engines.dataParallelWorkers(spec, size).length,
    args: [workerSpec, fc.constantFrom(1, 2, 8)],
  },
  {
    name: 'kvroute/engines: splitRank',
    call: engines.splitRank,
    args: [fc.constantFrom('http://a@1', '@1', 'a@', 'a@12345678901')],
  },
  {
    name: 'kvroute/engines: decodeKvEventBatch',
    call: engines.decodeKvEventBatch,
    args: [fc.oneof(payload, fc.tuple(payload, fc.array(fc.oneof(payload, fc.array(payload))), payload))],
    refusesNothing: true,
    check: ({ events, rejected }: engines.DecodedKvEvents) => ok(Array.isArray(events) && rejected >= 0),
  },
  {
    name: 'kvroute/engines: describeRequest',
    call: (kind: never, given: never, headers: never) => {
      const described = engines.describeRequest(kind, given);
      core.leastLoad({ seed: 1 }).selectWorker(described, testing.fakeFleet(2));
      return engines.describeRequest(kind, given, headers);
    },
    args: [requestKind, fc.oneof(body, bytesOf(body), payload), fc.constant({})],
    refusesNothing: true,
  },
  {
    name: 'kvroute/engines: parseLoadReport',
    call: engines.parseLoadReport,
    args: [loadKind, loadPayload, hostileRecord({ model: id })],
    refusesNothing: true,
    check: (result: engines.LoadReportResult) =>
      ok(result.ok ? result.report.ranks.length > 0 : result.reason !== undefined),
  },
  {
    name: 'kvroute/engines: readLoadResponse',
    call: engines.readLoadResponse,
    args: [fc.constantFrom(200, 404, 500, undefined), loadPayload],
    refusesNothing: true,
    check: (result: engines.LoadRouteOutcome) => ok(['report', 'absent', 'inconclusive'].includes(result.outcome)),
  },
  { name: 'kvroute/engines: loadRoutesToAsk', call: engines.loadRoutesToAsk, args: [memo, names] },
  { name: 'kvroute/engines: rememberLoadRoute', call: engines.rememberLoadRoute, args: [memo, id, outcomeOfRoute] },
  {
    name: 'kvroute/metrics: bindMetrics',
    call: (source: never, sink: never) => metrics.bindMetrics(source, sink)(),
    args: [fc.constant(router), adapters],
  },
  {
    name: 'kvroute/metrics: hostMetrics',
    call: (sink: never, ...[type, isOk, words]: never[]) => {
      const host = metrics.hostMetrics(sink);
      host.healthCheck(type as never, isOk as never);
      host.retry(type as never, words as never);
      host.kvSubscriptionFailed(words as never, type as never);
    },
    args: [adapters, id, fc.boolean(), id],
  },
  {
    name: 'kvroute/testing: fakeCandidate',
    call: testing.fakeCandidate,
    args: [hostileRecord({ id, inFlight: count })],
  },
  {
    name: 'kvroute/testing: fakeFleet',
    call: testing.fakeFleet,
    trusted: [0],
    args: [sizes, fc.constant(() => ({ inFlight: 1 }))],
  },
  { name: 'kvroute/testing: fakeReport', call: testing.fakeReport, args: [report] },
  { name: 'kvroute/testing: fakeWorker', call: testing.fakeWorker, args: [hostileRecord({ id, url: id, status: id })] },
  {
    name: 'kvroute/testing: distribution',
    call: (given: never, fleet: never, seeds: never) => testing.distribution(core.leastLoad, given, fleet, { seeds }),
    trusted: [2],
    args: [request, candidates, fc.oneof(sizes, fc.array(fc.nat(9)))],
  },
  {
    name: 'kvroute/testing: policyContract',
    call: testing.policyContract,
    args: [fc.constant(core.leastLoad), hostileRecord({ reachesAll: fc.boolean() })],
  },
  {
    name: 'kvroute/testing: manualClock',
    call: (start: never, by: never, to: never) => {
      const clock = testing.manualClock(start);
      clock.advance(by);
      clock.set(to);
    },
    args: [count, count, count],
  },
  {
    name: 'kvroute/testing: recordDecisions',
    call: (source: never) => testing.recordDecisions(source).stop(),
    args: [fc.constant(router)],
  },
  {
    name: 'kvroute/testing: scriptedRandom',
    call: testing.scriptedRandom,
    args: [fc.array(mostly(fc.constantFrom(0, 0.5)))],
  },
  matcher('toSelect', selection, id),
  matcher('toSelectOneOf', selection, names),
  matcher('toSelectNobody', selection, id),
  matcher('toHaveBranch', selection, id),
  matcher('toReach', distributed, names),
];
