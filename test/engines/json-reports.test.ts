/** Load bodies in JSON: SGLang `/v1/loads` and `/get_load`, vLLM `/load` (LR-1 to LR-5, LR-14, B41). */
import { parseLoadReport } from 'kvroute/engines';
import { describe, expect, it, vi } from 'vitest';
import { loads, ranks, reason } from './read-report.js';

describe('SGLang /v1/loads', () => {
  it('LR-2: reads every rank field under its own name', () => {
    const body = {
      timestamp: '2026-01-01T00:00:00Z',
      version: '0.5.9',
      dp_rank_count: 1,
      loads: [
        {
          dp_rank: 3,
          num_running_reqs: 1,
          num_waiting_reqs: 2,
          num_waiting_uncached_tokens: 4,
          num_total_reqs: 8,
          num_used_tokens: 16,
          max_total_num_tokens: 32,
          token_usage: 0.5,
          gen_throughput: 64.5,
          cache_hit_rate: 0.25,
          utilization: 0.125,
          max_running_requests: 128,
          disagg_mode: 'prefill',
          kv_transfer_latency_ms: 1.5,
          kv_transfer_speed_gb_s: 2.5,
          prefill_queue_reqs: 5,
          decode_queue_reqs: 6,
          active_token_usage: 0.1,
        },
      ],
    };
    const expected = {
      ok: true,
      report: {
        timestamp: '2026-01-01T00:00:00Z',
        ranks: [
          {
            dpRank: 3,
            runningRequests: 1,
            waitingRequests: 2,
            waitingTokens: 4,
            totalRequests: 8,
            usedTokens: 16,
            maxTotalTokens: 32,
            kvCacheUsage: 0.5,
            tokensPerSecond: 64.5,
            cacheHitRate: 0.25,
            utilization: 0.125,
            maxRunningRequests: 128,
            disaggregation: {
              mode: 'prefill',
              kvTransferLatencyMs: 1.5,
              kvTransferGigabytesPerSecond: 2.5,
              prefillQueueRequests: 5,
              decodeQueueRequests: 6,
            },
          },
        ],
      },
    };
    expect(parseLoadReport('sglang_loads', body)).toStrictEqual(expected);
    expect(parseLoadReport('sglang_loads', JSON.stringify(body))).toStrictEqual(expected);
    expect(parseLoadReport('sglang_loads', new TextEncoder().encode(JSON.stringify(body)))).toStrictEqual(expected);
  });

  it('LR-14: reads sections, and flat fields win over them', () => {
    const nested = {
      dp_rank: 0,
      num_waiting_reqs: 7,
      core: { num_waiting_reqs: 1, num_running_reqs: 2, token_usage: 0.5 },
      memory: { max_total_num_tokens: 9, token_usage: 0.75 },
      queues: { num_waiting_uncached_tokens: 11 },
      disagg: { mode: 'decode', kv_transfer_latency_ms: 3, decode_queue_reqs: 4, prefill_queue_reqs: null },
    };
    expect(ranks('sglang_loads', loads(nested))).toStrictEqual([
      {
        dpRank: 0,
        runningRequests: 2,
        waitingRequests: 7,
        waitingTokens: 11,
        maxTotalTokens: 9,
        kvCacheUsage: 0.5,
        disaggregation: { kvTransferLatencyMs: 3, decodeQueueRequests: 4, mode: 'decode' },
      },
    ]);
    const flat = { token_usage: 0.5, disagg_mode: 'prefill', disagg: { mode: 'decode' } };
    expect(ranks('sglang_loads', loads(flat))[0]?.disaggregation).toStrictEqual({ mode: 'prefill' });
  });

  it('LR-14: sections that are null or no objects, and an unknown mode, say nothing', () => {
    const entry = { token_usage: 0.5, core: null, memory: 'x', queues: [1], disagg: null, disagg_mode: 'null' };
    expect(ranks('sglang_loads', loads(entry))).toStrictEqual([{ kvCacheUsage: 0.5 }]);
  });

  it('LR-32: what the engine did not send stays absent, what it sent as 0 stays 0', () => {
    expect(ranks('sglang_loads', loads({ num_waiting_reqs: 0 }))).toStrictEqual([{ waitingRequests: 0 }]);
  });

  it('LR-18: num_waiting_uncached_tokens_available false makes the field absent', () => {
    const entry = { num_waiting_reqs: 1, num_waiting_uncached_tokens: 0 };
    expect(ranks('sglang_loads', loads(entry))[0]?.waitingTokens).toBe(0);
    const unavailable = { ...entry, num_waiting_uncached_tokens_available: false };
    expect(ranks('sglang_loads', loads(unavailable))).toStrictEqual([{ waitingRequests: 1 }]);
  });

  it.each([
    ['a negative count', loads({ num_waiting_reqs: -1 })],
    ['a fractional count', loads({ num_waiting_reqs: 1.5 })],
    ['a count beyond 2^53', loads({ num_waiting_reqs: 2 ** 60 })],
    ['a number as string', loads({ token_usage: '0.5' })],
    ['a null count', loads({ num_running_reqs: null })],
    ['NaN', loads({ token_usage: Number.NaN })],
    ['Infinity', loads({ gen_throughput: Number.POSITIVE_INFINITY })],
    ['a negative usage', loads({ token_usage: -0.1 })],
    ['a negative rank', loads({ dp_rank: -1, token_usage: 0 })],
    ['the same rank twice', loads({ dp_rank: 1, token_usage: 0 }, { dp_rank: 1, token_usage: 0 })],
    ['two ranks without number', loads({ token_usage: 0 }, { token_usage: 0 })],
    ['fewer ranks than the engine has', { dp_rank_count: 2, loads: [{ token_usage: 0 }] }],
    ['a rank count of the wrong type', { dp_rank_count: '1', loads: [{ token_usage: 0 }] }],
    ['a time stamp of the wrong type', { timestamp: 5, loads: [{ token_usage: 0 }] }],
    ['a rank that is no object', loads(5)],
    ['a rank that is a list', loads([{ token_usage: 0 }])],
    ['a bad value in a section', loads({ core: { token_usage: true } })],
    ['a bad value in the disagg section', loads({ token_usage: 0, disagg: { kv_transfer_latency_ms: -1 } })],
    ['a nested mode of the wrong type', loads({ token_usage: 0, disagg: { mode: 5 } })],
    ['a flat mode of the wrong type', loads({ token_usage: 0, disagg_mode: 5 })],
  ])('LR-11a, B42: %s is invalid', (_, body) => {
    expect(reason('sglang_loads', body)).toBe('invalid');
  });

  it('LR-11a: the detail names the field and the value', () => {
    const result = parseLoadReport('sglang_loads', loads({}, { dp_rank: 1, num_waiting_reqs: '3' }));
    expect(result).toStrictEqual({
      ok: false,
      reason: 'invalid',
      detail: 'rank entry 1: [1].num_waiting_reqs: expected an integer ≥ 0, got "3"',
    });
  });

  it('LR-1: optional fields may be null', () => {
    const body = { timestamp: null, dp_rank_count: null, loads: [{ token_usage: 0.5, kv_transfer_latency_ms: null }] };
    expect(parseLoadReport('sglang_loads', body)).toStrictEqual({
      ok: true,
      report: { ranks: [{ kvCacheUsage: 0.5 }] },
    });
  });

  it('LR-5: a list without ranks is empty', () => {
    expect(reason('sglang_loads', '{"loads":[]}')).toBe('empty');
  });

  it.each([
    ['HTML', '<html>nope</html>'],
    ['nothing', ''],
    ['a truncated body', '{"loads":[{'],
    ['null', 'null'],
    ['a list', '[]'],
    ['a number', 7],
    ['undefined', undefined],
    ['another API', { object: 'list', data: [] }],
    ['loads that are no list', { loads: {} }],
    ['ranks of which nothing is known (B41)', loads({ dp_rank: 0, queue: 5 }, { dp_rank: 1 })],
    ['invalid UTF-8', new Uint8Array([0xff, 0xfe, 0x7b])],
    ['a field of the prototype', JSON.parse('{"__proto__":{"loads":[{"token_usage":0}]}}')],
  ])('B41: %s is not a report', (_, payload) => {
    expect(reason('sglang_loads', payload)).toBe('not_a_report');
  });

  it('B41: bytes that the runtime refuses to decode are not a report', () => {
    // Longer than a string can be, or shared memory in a browser: the platform throws.
    const decode = () => {
      throw new TypeError('cannot decode');
    };
    vi.stubGlobal(
      'TextDecoder',
      class {
        readonly decode = decode;
      },
    );
    expect(reason('sglang_loads', new Uint8Array(8))).toBe('not_a_report');
    expect(reason('vllm_metrics', new Uint8Array(8))).toBe('not_a_report');
    vi.unstubAllGlobals();
  });
});

describe('legacy load routes', () => {
  it('B41: /get_load as a list of ranks; num_reqs counts running and waiting', () => {
    const body = [
      { dp_rank: 0, num_reqs: 6, num_waiting_reqs: 2, num_tokens: 4096 },
      { dp_rank: 1, num_reqs: 1, num_waiting_reqs: 0, num_tokens: 512 },
    ];
    expect(ranks('sglang_get_load', body)).toStrictEqual([
      { dpRank: 0, runningRequests: 4, waitingRequests: 2, totalRequests: 6 },
      { dpRank: 1, runningRequests: 1, waitingRequests: 0, totalRequests: 1 },
    ]);
    expect(ranks('sglang_get_load', { num_reqs: 3, num_waiting_reqs: 1 })).toStrictEqual([
      { runningRequests: 2, waitingRequests: 1, totalRequests: 3 },
    ]);
  });

  it.each([
    [[], 'empty'],
    [[{ dp_rank: 0 }], 'not_a_report'],
    [[{ num_reqs: 2 }], 'not_a_report'],
    [[{ num_reqs: 1, num_waiting_reqs: 2 }], 'invalid'],
    [[{ num_reqs: -1, num_waiting_reqs: 0 }], 'invalid'],
    [[{ num_reqs: 1, num_waiting_reqs: '0' }], 'invalid'],
    [{ load: 7 }, 'no_kv_usage'],
    [{ load: -1 }, 'invalid'],
    [{ loads: [] }, 'not_a_report'],
    ['"7"', 'not_a_report'],
  ])('B41, B42: /get_load %j is %s', (body, expected) => {
    expect(reason('sglang_get_load', body)).toBe(expected);
  });

  it.each([
    [{ server_load: 4 }, 'no_kv_usage'],
    [{ server_load: '4' }, 'invalid'],
    [{ load: 4 }, 'not_a_report'],
    [[4], 'not_a_report'],
  ])('B41: vLLM /load %j is %s', (body, expected) => {
    expect(reason('vllm_load', body)).toBe(expected);
  });
});
