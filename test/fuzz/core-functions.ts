/** The functions of `kvroute` with what they are given, argument by argument. */
import { ok } from 'node:assert/strict';
import * as core from 'kvroute';
import { fc } from '../support/property.js';
import { bytes, count, type FuzzedFunction, names, number, sizes } from './fuzzed-function.js';
import { hostileRecord, mostly } from './hostile.js';
import { candidates, id, report, request, text } from './inputs.js';
import { policyOptions, routerOptions } from './options.js';

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
const optional = fc.constant(undefined);
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
const answered = fc.oneof(
  fc.constant(worker),
  hostileRecord({ ok: fc.boolean(), worker: fc.constant(worker), code: id, retryAfterMs: count }),
  hostileRecord({ ok: fc.constant(true), decode: hostileRecord({ worker: fc.constant(worker) }) }),
);
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

export const coreFunctions: readonly FuzzedFunction[] = [
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
];
