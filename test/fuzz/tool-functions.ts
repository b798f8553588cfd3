/** The functions of `kvroute/metrics` and `kvroute/testing`. */

import { createRouter, leastLoad } from 'kvroute';
import * as metrics from 'kvroute/metrics';
import * as testing from 'kvroute/testing';
import { fc } from '../support/property.js';
import { count, type FuzzedFunction, names, sizes } from './fuzzed-function.js';
import { hostileRecord, mostly } from './hostile.js';
import { candidates, id, report, request } from './inputs.js';

const router = await createRouter();
const adapter: metrics.MetricsAdapter = { counter: () => {}, gauge: () => {}, histogram: () => {} };
const adapters = hostileRecord(Object.fromEntries(Object.keys(adapter).map((name) => [name, fc.constant(() => {})])));
const fleet = testing.fakeFleet(2);
const selection = fc.constantFrom<unknown>(
  leastLoad({ seed: 1 }).selectWorker({}, fleet),
  leastLoad({ seed: 1 }).selectWorker({}, []),
  leastLoad({ seed: 1 }).explain({}, fleet).selection,
);
const distributed = fc.constant(testing.distribution(leastLoad, {}, fleet, { seeds: 9 }));
const matcher = (
  name: keyof typeof testing.kvrouteMatchers,
  received: fc.Arbitrary<unknown>,
  expected: fc.Arbitrary<unknown>,
) => ({
  name: 'kvroute/testing: kvrouteMatchers',
  call: (value: never, wanted: never) => testing.kvrouteMatchers[name](value, wanted).message(),
  args: [received, expected],
});

export const toolFunctions: readonly FuzzedFunction[] = [
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
    call: (given: never, fleet: never, seeds: never) => testing.distribution(leastLoad, given, fleet, { seeds }),
    trusted: [2],
    args: [request, candidates, fc.oneof(sizes, fc.array(fc.nat(9)))],
  },
  {
    name: 'kvroute/testing: policyContract',
    call: testing.policyContract,
    args: [fc.constant(leastLoad), hostileRecord({ reachesAll: fc.boolean() })],
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
