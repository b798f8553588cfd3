import {
  classifyUpstream,
  decodeKvEventBatch,
  describeRequest,
  type LoadReportKind,
  parseLoadReport,
  type RequestKind,
  readLoadResponse,
  splitRank,
} from 'kvroute/engines';
import { describe, expect, it } from 'vitest';
import { RequestView } from '../../src/request.js';
import { fc } from '../support/property.js';

const loadKinds: LoadReportKind[] = [
  'sglang_loads',
  'sglang_get_load',
  'vllm_load',
  'vllm_metrics',
  'sglang_metrics',
  'tensorrt_llm_metrics',
  'triton_metrics',
];
const requestKinds: RequestKind[] = [
  'openai_chat',
  'openai_completions',
  'openai_embeddings',
  'openai_responses',
  'anthropic_messages',
  'sglang_generate',
];

/** Every number anywhere in a value. */
function numbersIn(value: unknown): number[] {
  if (typeof value === 'number') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(numbersIn) : [];
}

function checkReport(kind: LoadReportKind, payload: unknown): boolean {
  const result = parseLoadReport(kind, payload);
  if (!result.ok) return false;
  expect(result.report.ranks.length).toBeGreaterThan(0);
  for (const value of numbersIn(result.report)) {
    expect(Number.isFinite(value)).toBe(true);
    expect(value).toBeGreaterThanOrEqual(0);
  }
  return true;
}

const oddNumber = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(0, -1, 1e308, 2 ** 53, 0.5, Number.NaN));
const oddValue = fc.oneof({ weight: 6, arbitrary: fc.nat(99) }, oddNumber, fc.jsonValue({ maxDepth: 1 }));
const field = fc.constantFrom(
  'dp_rank',
  'num_running_reqs',
  'num_waiting_reqs',
  'num_waiting_uncached_tokens',
  'num_waiting_uncached_tokens_available',
  'token_usage',
  'gen_throughput',
  'num_reqs',
  'disagg_mode',
  'kv_transfer_latency_ms',
  'load',
  'server_load',
  '__proto__',
);
const rank = fc.dictionary(field, oddValue, { maxKeys: 5 });
const nested = fc.record(
  { core: fc.oneof(rank, oddValue), queues: rank, disagg: fc.oneof(rank, oddValue), token_usage: oddValue },
  { requiredKeys: [] },
);
const loads = fc.record({ loads: fc.array(fc.oneof(rank, nested), { maxLength: 3 }) });

const line = fc
  .tuple(
    fc.constantFrom(
      'vllm:kv_cache_usage_perc',
      'vllm:num_requests_waiting',
      'sglang:token_usage',
      'sglang_num_queue_reqs',
      'trtllm_kv_cache_utilization',
      'nv_trt_llm_kv_cache_block_metrics',
      '#',
    ),
    fc.constantFrom('', '{', '{a="b"}', '{tp_rank="1"}', '{a="}\\""}', '{kv_cache_block_type="fraction"}', '\\'),
    fc.oneof(fc.double().map(String), fc.nat(9).map(String), fc.constantFrom('NaN', '+Inf', '', '-1', '1e999', '0x1')),
    fc.constantFrom('\n', '\r\n', ' 17\n', '\0'),
  )
  .map(([name, labels, value, end]) => `${name}${labels} ${value}${end}`);
const metricsText = fc.array(line, { maxLength: 8 }).map((lines) => lines.join(''));

describe('hostile payloads', () => {
  it('B42, B48: near-miss load bodies give sound reports or reasons', () => {
    let reports = 0;
    fc.assert(
      fc.property(fc.oneof(loads, fc.array(rank, { maxLength: 3 }), rank), (body) => {
        for (const kind of loadKinds) {
          if (checkReport(kind, body)) reports += 1;
          if (checkReport(kind, JSON.stringify(body))) reports += 1;
        }
        const { outcome } = readLoadResponse(200, body);
        expect(['report', 'absent', 'inconclusive']).toContain(outcome);
      }),
      { numRuns: 500, seed: 1 },
    );
    expect(reports).toBeGreaterThan(50);
  });

  it('B48: near-miss metrics give sound reports or reasons', () => {
    let reports = 0;
    fc.assert(
      fc.property(metricsText, (text) => {
        for (const kind of loadKinds) if (checkReport(kind, text)) reports += 1;
      }),
      { numRuns: 500, seed: 2 },
    );
    expect(reports).toBeGreaterThan(50);
  });

  it('LB-45, LB-44, B87: no bytes, text or JSON value makes anything throw', () => {
    const anything = fc.oneof(
      fc.uint8Array({ maxLength: 64 }),
      fc.string({ unit: 'binary', maxLength: 64 }),
      fc.jsonValue({ maxDepth: 4 }),
      fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withTypedArray: true }),
    );
    fc.assert(
      fc.property(anything, (payload) => {
        for (const kind of loadKinds) checkReport(kind, payload);
        for (const kind of requestKinds) new RequestView(describeRequest(kind, payload));
        const { events, rejected } = decodeKvEventBatch([payload, [payload], payload]);
        expect(events.length + rejected).toBe(1);
        decodeKvEventBatch(payload);
        classifyUpstream({ error: payload, grpcStatus: undefined });
        splitRank(String(JSON.stringify(payload, (_, value) => (typeof value === 'bigint' ? `${value}` : value))));
      }),
      { numRuns: 500, seed: 3 },
    );
  });

  it('LB-44: near-miss request bodies give requests the router accepts', () => {
    const part = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.record({ type: fc.constantFrom('text', 'image', 'tool_result', 5), text: fc.oneof(fc.string(), oddValue) }),
      fc.record({ content: fc.oneof(fc.string(), fc.array(fc.record({ text: fc.string() }), { maxLength: 2 })) }),
    );
    const value = fc.oneof(part, fc.array(part, { maxLength: 3 }), fc.array(oddValue, { maxLength: 3 }), fc.string());
    const name = fc.constantFrom(
      ...['messages', 'prompt', 'input', 'text', 'input_ids', 'system', 'instructions', 'model', 'rid'],
      ...['cache_salt', 'extra_key', 'lora_path', 'lora_id', 'stream', 'image_data'],
    );
    fc.assert(
      fc.property(fc.dictionary(name, value, { maxKeys: 6 }), (body) => {
        for (const kind of requestKinds) {
          const request = describeRequest(kind, body);
          new RequestView(request);
          for (const token of request.tokens ?? []) expect(token).toBeLessThanOrEqual(0xffffffff);
          expect(describeRequest(kind, JSON.stringify(body)).text).toStrictEqual(request.text);
        }
      }),
      { numRuns: 300, seed: 4 },
    );
  });

  it.each([
    ['one line of braces', 'vllm:num_requests_waiting{'.padEnd(10_000_000, '{')],
    ['one label without end', `vllm:num_requests_waiting{a="${'\\"'.repeat(5_000_000)}`],
    ['a million labels', `vllm:num_requests_waiting{${'a="b",'.repeat(1_000_000)}`],
    ['a million short lines', 'vllm:num_requests_waiting{\n'.repeat(400_000)],
    ['a line of blanks', ' '.repeat(10_000_000)],
    ['a long number', `vllm:kv_cache_usage_perc ${'1'.repeat(10_000_000)}x`],
  ])('LR-17: 10 MB of %s is read in linear time', (_, text) => {
    const started = performance.now();
    expect(parseLoadReport('vllm_metrics', text).ok).toBe(false);
    // Quadratic work on 10 MB would take hours; a machine with other things to do needs far less than this.
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  it('B90: 200 000 mirrored series are counted one by one', () => {
    const lines = ['vllm:kv_cache_usage_perc 0.5'];
    for (let i = 0; i < 200_000; i++) lines.push(`vllm:num_requests_waiting{a="${i}",tp_rank="0"} 1`);
    const expected = { ok: true, report: { ranks: [{ dpRank: 0, kvCacheUsage: 0.5, waitingRequests: 200_000 }] } };
    expect(parseLoadReport('vllm_metrics', lines.join('\n'))).toStrictEqual(expected);
  });
});
