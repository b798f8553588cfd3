/** All kinds of load payloads: recorded ones of real engines, and what is common to all of them (LB-45). */
import { type LoadReportKind, type LoadReportResult, parseLoadReport } from 'kvroute/engines';
import { describe, expect, it } from 'vitest';
import { loads, ranks, reason } from './read-report.js';
import { readShared, sharedData } from './shared-data.js';

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

describe('kinds', () => {
  it('LB-45: an unknown kind is unsupported', () => {
    expect(reason('llama_cpp' as LoadReportKind, '{}')).toBe('unsupported');
  });
});
