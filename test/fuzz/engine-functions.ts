/** The functions of `kvroute/engines`: they read what engines and clients send, and refuse none of it. */
import { ok } from 'node:assert/strict';
import type { LeaseOutcome } from 'kvroute';
import { leastLoad } from 'kvroute';
import * as engines from 'kvroute/engines';
import { fakeFleet } from 'kvroute/testing';
import { fc } from '../support/property.js';
import { bytes, type FuzzedFunction, names, number } from './fuzzed-function.js';
import { hostile, hostileRecord, mostly } from './hostile.js';
import { id, text, workerSpec } from './inputs.js';

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

/** Parsed JSON has no lists with holes. */
const tokens = fc.array(mostly(fc.nat(9), 30), { maxLength: 40 });
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

const evidence = hostileRecord({ status: fc.nat(700), grpcStatus: fc.nat(20), error: hostile, signal: hostile });
const memo = hostileRecord({ answered: id, absent: names });
const outcomeOfRoute = hostileRecord({ outcome: fc.constantFrom('report', 'absent', 'inconclusive') });
export const engineFunctions: readonly FuzzedFunction[] = [
  {
    name: 'kvroute/engines: classifyUpstream',
    call: engines.classifyUpstream,
    args: [evidence],
    refusesNothing: true,
    check: (result: LeaseOutcome) => ok(Object.keys(result).length === 1),
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
      leastLoad({ seed: 1 }).selectWorker(described, fakeFleet(2));
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
];
