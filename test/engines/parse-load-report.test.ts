import { type LoadReportKind, type LoadReportResult, parseLoadReport } from 'kvroute/engines';
import { describe, expect, it, vi } from 'vitest';
import type { RankLoad } from '../../src/load/report.js';
import { readShared, sharedData } from './shared-data.js';

function ranks(kind: LoadReportKind, payload: unknown, model?: string): readonly RankLoad[] {
  const result = parseLoadReport(kind, payload, { model });
  if (!result.ok) throw new Error(`no report: ${result.reason} ${result.detail}`);
  return result.report.ranks;
}

function reason(kind: LoadReportKind, payload: unknown, model?: string): string {
  const result = parseLoadReport(kind, payload, { model });
  return result.ok ? 'report' : result.reason;
}

const loads = (...entries: unknown[]) => ({ loads: entries });

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
              kvTransferSpeedGbps: 2.5,
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

  it('LB-45: an unknown kind is unsupported', () => {
    expect(reason('llama_cpp' as LoadReportKind, '{}')).toBe('unsupported');
  });
});

describe('vLLM metrics', () => {
  it('LR-15, LR-18: sums and truncates counts, averages fractions, leaves the rest absent', () => {
    const text = [
      '# TYPE vllm:num_requests_running gauge',
      'vllm:num_requests_running{engine="0"} 5.75',
      'vllm:num_requests_running{engine="1"} 3.5',
      'vllm:num_requests_waiting{engine="0"} 10',
      'vllm:num_requests_waiting{engine="1"} 30',
      'vllm:kv_cache_usage_perc{engine="0"} 0.25',
      'vllm:kv_cache_usage_perc{engine="1"} 0.75',
      'vllm:gpu_prefix_cache_hit_rate 0.5',
    ].join('\n');
    const rank = { dpRank: 0, kvCacheUsage: 0.5, runningRequests: 9, waitingRequests: 40, cacheHitRate: 0.5 };
    expect(ranks('vllm_metrics', text)).toStrictEqual([rank]);
    expect(ranks('vllm_metrics', new TextEncoder().encode(text))).toStrictEqual([rank]);
  });

  it('B43: the newer gauge name wins, the older one is read when it is alone or the newer has no sample', () => {
    const old = 'vllm:gpu_cache_usage_perc 0.75\n';
    expect(ranks('vllm_metrics', old)[0]?.kvCacheUsage).toBe(0.75);
    expect(ranks('vllm_metrics', `${old}vllm:kv_cache_usage_perc 0.25\n`)[0]?.kvCacheUsage).toBe(0.25);
    expect(ranks('vllm_metrics', `${old}vllm:kv_cache_usage_perc NaN\n`)[0]?.kvCacheUsage).toBe(0.75);
  });

  it('B47: without a KV gauge there is no report; a text of another engine is none either', () => {
    expect(reason('vllm_metrics', 'vllm:num_requests_waiting 7\n')).toBe('no_kv_usage');
    expect(reason('vllm_metrics', 'vllm:kv_cache_usage_perc NaN\n')).toBe('no_kv_usage');
    expect(reason('vllm_metrics', 'sglang:token_usage 0.5\n')).toBe('not_a_report');
    expect(reason('vllm_metrics', '<html>\n<p>vllm:kv_cache_usage_perc 5</p>\n</html>')).toBe('not_a_report');
    expect(reason('vllm_metrics', { loads: [] })).toBe('not_a_report');
  });

  it('LR-18, B46: with a model only series of its label count', () => {
    const text = [
      'vllm:kv_cache_usage_perc{model_name="a"} 0.2',
      'vllm:kv_cache_usage_perc{model="b"} 0.8',
      'vllm:kv_cache_usage_perc{engine="9"} 0.5',
      'vllm:num_requests_waiting{model_name="a"} 1',
    ].join('\n');
    expect(ranks('vllm_metrics', text, 'a')).toStrictEqual([{ dpRank: 0, kvCacheUsage: 0.2, waitingRequests: 1 }]);
    expect(ranks('vllm_metrics', text, 'b')).toStrictEqual([{ dpRank: 0, kvCacheUsage: 0.8 }]);
    expect(ranks('vllm_metrics', text)).toStrictEqual([{ dpRank: 0, kvCacheUsage: 0.5, waitingRequests: 1 }]);
    expect(reason('vllm_metrics', text, 'c')).toBe('no_kv_usage');
  });

  it('LR-11a, B48: a negative or overflowing series is invalid', () => {
    expect(reason('vllm_metrics', 'vllm:kv_cache_usage_perc -1\n')).toBe('invalid');
    expect(reason('vllm_metrics', 'vllm:kv_cache_usage_perc 0\nvllm:num_requests_waiting -1\n')).toBe('invalid');
    const huge = 'vllm:num_requests_running{e="1"} 1.7e308\nvllm:num_requests_running{e="2"} 1.7e308\n';
    expect(reason('vllm_metrics', `vllm:kv_cache_usage_perc 0\n${huge}`)).toBe('invalid');
  });
});

describe('SGLang, TensorRT-LLM and Triton metrics', () => {
  const sglang = (p: string, usage: string) =>
    `${p}token_usage ${usage}\n${p}num_running_reqs 3\n${p}num_queue_reqs 4\n${p}gen_throughput{a="1"} 100\n` +
    `${p}gen_throughput{a="2"} 50\n${p}cache_hit_rate 0.5\n${p}utilization 0.25\n`;

  it.each(['sglang:', 'sglang_'])('LR-16, B43: SGLang with prefix %s; throughput is a mean', (prefix) => {
    expect(ranks('sglang_metrics', sglang(prefix, '0.5'))).toStrictEqual([
      {
        dpRank: 0,
        kvCacheUsage: 0.5,
        runningRequests: 3,
        waitingRequests: 4,
        tokensPerSecond: 75,
        cacheHitRate: 0.5,
        utilization: 0.25,
      },
    ]);
  });

  it('LR-16: the first prefix with a token usage is the only one read', () => {
    const both = `sglang_num_queue_reqs 9\n${sglang('sglang_', '0.75')}sglang:token_usage 0.25\n`;
    expect(ranks('sglang_metrics', both)).toStrictEqual([{ dpRank: 0, kvCacheUsage: 0.25 }]);
    expect(reason('sglang_metrics', 'sglang:num_queue_reqs 4\n')).toBe('no_kv_usage');
  });

  it('LR-18: series that differ only in tp_rank mirror one scheduler, the largest counts once', () => {
    const text = [
      'sglang:token_usage{dp="0",tp_rank="0"} 0.25',
      'sglang:token_usage{tp_rank="1",dp="0"} 0.5',
      'sglang:token_usage{dp="1",tp_rank="0"} 1',
      'sglang:num_queue_reqs{dp="0",tp_rank="0"} 3',
      'sglang:num_queue_reqs{dp="0",tp_rank="1"} 11',
      'sglang:num_queue_reqs{dp="1",tp_rank="0"} 2',
      'sglang:num_queue_reqs{dp="2"} 5',
    ].join('\n');
    expect(ranks('sglang_metrics', text)).toStrictEqual([{ dpRank: 0, kvCacheUsage: 0.75, waitingRequests: 18 }]);
  });

  it('LR-19: TensorRT-LLM', () => {
    const text =
      'trtllm_num_requests_waiting 2\ntrtllm_num_requests_running 3\ntrtllm_kv_cache_utilization{model_name="m"} 0.5';
    expect(ranks('tensorrt_llm_metrics', text)).toStrictEqual([
      { dpRank: 0, kvCacheUsage: 0.5, runningRequests: 3, waitingRequests: 2 },
    ]);
    expect(reason('tensorrt_llm_metrics', 'trtllm_num_requests_waiting 2\n')).toBe('no_kv_usage');
  });

  it('LR-19: Triton picks its series by label', () => {
    const text = [
      'nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 2',
      'nv_trt_llm_request_metrics{model="m",request_type="scheduled",version="1"} 3',
      'nv_trt_llm_request_metrics{model="m",request_type="max",version="1"} 512',
      'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m"} 0.5',
      'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="m"} 400',
    ].join('\n');
    const rank = { dpRank: 0, kvCacheUsage: 0.5, runningRequests: 3, waitingRequests: 2 };
    expect(ranks('triton_metrics', text)).toStrictEqual([rank]);
    expect(ranks('triton_metrics', text, 'm')).toStrictEqual([rank]);
    expect(reason('triton_metrics', text, 'n')).toBe('no_kv_usage');
  });
});

interface Expected {
  report?: null;
  reason?: string;
  engine?: 'vllm' | 'sglang';
  ranks?: number;
  running?: number;
  waiting?: number;
  waiting_any_of?: (number | null)[];
  kv?: number;
  kv_any_of?: (number | null)[];
  throughput?: number | null;
  queued_tokens?: number | string | null;
  running_plus_waiting?: number;
  for_model?: Record<string, { waiting: number; kv: number }>;
}

/** Totals over ranks as LR-3 takes them; absent fields are null. */
function totals(result: LoadReportResult) {
  if (!result.ok) return undefined;
  const { ranks } = result.report;
  const values = (
    field: 'runningRequests' | 'waitingRequests' | 'waitingTokens' | 'tokensPerSecond' | 'kvCacheUsage',
  ) => ranks.map((rank) => rank[field]).filter((value) => value !== undefined);
  const sum = (list: number[]) => (list.length === 0 ? null : list.reduce((a, b) => a + b));
  const usage = values('kvCacheUsage');
  return {
    ranks: ranks.length,
    running: sum(values('runningRequests')),
    waiting: sum(values('waitingRequests')),
    queued_tokens: sum(values('waitingTokens')),
    throughput: sum(values('tokensPerSecond')),
    kv: usage.length === 0 ? null : (sum(usage) as number) / usage.length,
  };
}

function check(result: LoadReportResult, expected: Expected): void {
  if (expected.report === null || expected.reason !== undefined) {
    expect(result.ok).toBe(false);
    if (expected.reason !== undefined) expect(result).toMatchObject({ reason: expected.reason });
    return;
  }
  const found = totals(result);
  if (found === undefined) throw new Error(`no report: ${JSON.stringify(result)}`);
  for (const name of ['ranks', 'running', 'waiting', 'throughput'] as const) {
    if (expected[name] !== undefined) expect({ [name]: found[name] }).toStrictEqual({ [name]: expected[name] });
  }
  if (expected.kv !== undefined) expect(found.kv).toBeCloseTo(expected.kv, 12);
  if (expected.kv_any_of) expect(expected.kv_any_of).toContain(found.kv);
  if (expected.waiting_any_of) expect(expected.waiting_any_of).toContain(found.waiting);
  if (expected.queued_tokens !== undefined) {
    expect(found.queued_tokens).toBe(typeof expected.queued_tokens === 'string' ? null : expected.queued_tokens);
  }
  if (expected.running_plus_waiting !== undefined) {
    expect((found.running ?? 0) + (found.waiting ?? 0)).toBe(expected.running_plus_waiting);
  }
}

const loadsFolder = sharedData('loads');
if (loadsFolder !== undefined) {
  const expectations = JSON.parse(readShared(loadsFolder, 'EXPECTED.json')) as Record<string, Expected>;
  // What the notes of these two say in words: one number is a load, but no report.
  const withoutQueue = ['get_load_legacy_object.json', 'vllm_load.json'];
  const kindOf = (file: string): LoadReportKind => {
    if (file.startsWith('get_load')) return 'sglang_get_load';
    return file.startsWith('vllm') ? 'vllm_load' : 'sglang_loads';
  };
  describe('recorded load bodies', () => {
    it.each(Object.entries(expectations))('B41, B42: %s', (file, expected) => {
      const result = parseLoadReport(kindOf(file), readShared(loadsFolder, file));
      check(result, withoutQueue.includes(file) ? { reason: 'no_kv_usage' } : expected);
    });
  });
}

const promFolder = sharedData('prom');
if (promFolder !== undefined) {
  const expectations = JSON.parse(readShared(promFolder, 'EXPECTED.json')) as Record<string, Expected>;
  describe('recorded metrics', () => {
    it.each(Object.entries(expectations))('B43, B46, B47: %s', (file, expected) => {
      const kind = expected.engine === 'vllm' ? 'vllm_metrics' : 'sglang_metrics';
      const text = readShared(promFolder, file);
      check(parseLoadReport(kind, text), expected);
      for (const [model, scoped] of Object.entries(expected.for_model ?? {})) {
        check(parseLoadReport(kind, text, { model }), scoped);
      }
    });
  });
}

describe('absolute token data', () => {
  it('LR-4: native reports may have it, those read from Prometheus text never do', () => {
    const native = loads({ dp_rank: 0, token_usage: 0.5, num_used_tokens: 8, max_total_num_tokens: 16 });
    expect(ranks('sglang_loads', native)[0]).toMatchObject({ usedTokens: 8, maxTotalTokens: 16 });
    const text = 'sglang:token_usage 0.5\nsglang:num_used_tokens 8\nsglang:max_total_num_tokens 16\n';
    const [scraped] = ranks('sglang_metrics', text);
    expect(scraped?.kvCacheUsage).toBe(0.5);
    expect(scraped?.maxTotalTokens).toBeUndefined();
  });
});
