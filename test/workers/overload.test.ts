import { describe, expect, it } from 'vitest';
import { type LoadSummary, summarizeReport } from '../../src/load/load-summary.js';
import type { LoadReport } from '../../src/load/report.js';
import {
  emptySelection,
  type OverloadThresholds,
  overloadVerdict,
  type RouterOverloadOptions,
  resolveOverloadThresholds,
  shedRetryAfterMs,
} from '../../src/workers/overload.js';

function load(report: LoadReport): LoadSummary {
  const summary = summarizeReport(report, 0, Infinity);
  if (typeof summary === 'string') throw new Error(summary);
  return summary;
}

const thresholds = (waitingRequests?: number, tokenUsage?: number): OverloadThresholds => ({
  waitingRequests,
  tokenUsage,
});

const router = (
  workerOverloadProtection: boolean,
  workerOverloadWaitingRequests?: number,
  workerOverloadTokenUsage?: number,
): RouterOverloadOptions => ({ workerOverloadProtection, workerOverloadWaitingRequests, workerOverloadTokenUsage });

describe('overloadVerdict', () => {
  it('OV-1: without thresholds nothing is overloaded', () => {
    expect(overloadVerdict(load({ waitingRequests: 1e6, kvCacheUsage: 1 }), thresholds())).toBeUndefined();
  });

  it('OV-2: a value at its threshold trips, one below does not', () => {
    expect(overloadVerdict(load({ waitingRequests: 7 }), thresholds(8))).toBeUndefined();
    expect(overloadVerdict(load({ waitingRequests: 8 }), thresholds(8))).toEqual({
      signal: 'waiting_requests',
      value: 8,
      threshold: 8,
    });
    expect(overloadVerdict(load({ kvCacheUsage: 0.89 }), thresholds(undefined, 0.9))).toBeUndefined();
    expect(overloadVerdict(load({ kvCacheUsage: 0.9 }), thresholds(undefined, 0.9))).toEqual({
      signal: 'kv_cache_usage',
      value: 0.9,
      threshold: 0.9,
    });
  });

  it('OV-2: either signal is enough', () => {
    expect(overloadVerdict(load({ waitingRequests: 0, kvCacheUsage: 0.8 }), thresholds(4, 0.8))?.signal).toBe(
      'kv_cache_usage',
    );
    expect(overloadVerdict(load({ waitingRequests: 4, kvCacheUsage: 0.1 }), thresholds(4, 0.8))?.signal).toBe(
      'waiting_requests',
    );
    expect(overloadVerdict(load({ waitingRequests: 3, kvCacheUsage: 0.7 }), thresholds(4, 0.8))).toBeUndefined();
  });

  it('OV-1: waiting requests are summed over ranks, KV usage is averaged', () => {
    const waiting = load({ ranks: [{ waitingRequests: 5 }, { waitingRequests: 3 }] });
    expect(overloadVerdict(waiting, thresholds(8))?.value).toBe(8);
    const usage = load({ ranks: [{ kvCacheUsage: 1 }, { kvCacheUsage: 0.5 }] });
    expect(overloadVerdict(usage, thresholds(undefined, 0.9))).toBeUndefined();
    expect(overloadVerdict(usage, thresholds(undefined, 0.75))?.value).toBe(0.75);
  });

  it('OV-5: doubles are compared, and rounding of a mean hides nothing', () => {
    expect(overloadVerdict(load({ kvCacheUsage: 0.8 }), thresholds(undefined, 0.8))).toBeDefined();
    expect(overloadVerdict(load({ kvCacheUsage: 0.8 - Number.EPSILON }), thresholds(undefined, 0.8))).toBeUndefined();
    const even = load({ ranks: [{ kvCacheUsage: 0.7 }, { kvCacheUsage: 0.7 }, { kvCacheUsage: 0.7 }] });
    expect(even.kvCacheUsage).toBeLessThan(0.7);
    expect(overloadVerdict(even, thresholds(undefined, 0.7))).toBeDefined();
  });

  it('OV-6: what the engine does not report never trips', () => {
    expect(overloadVerdict(load({ runningRequests: 999 }), thresholds(1, 0.01))).toBeUndefined();
    expect(overloadVerdict(load({ ranks: [{}, { kvCacheUsage: 0.95 }] }), thresholds(1, 0.9))?.value).toBe(0.95);
  });

  it('OV-5, OV-6: a rank that reports no usage does not keep the others from their threshold', () => {
    const ranks = [{}, { kvCacheUsage: 0.7 }, { kvCacheUsage: 0.7 }, { kvCacheUsage: 0.7 }];
    expect(overloadVerdict(load({ ranks }), thresholds(undefined, 0.7))?.signal).toBe('kv_cache_usage');
  });

  it.each(['waitingRequests', 'tokenUsage'])('LB-42: a threshold %s that is no number is refused by name', (field) => {
    const wrong = { [field]: '1' } as unknown as OverloadThresholds;
    expect(() => overloadVerdict(load({ waitingRequests: 1 }), wrong)).toThrow(`${field}: expected a number`);
  });

  it.each([null, 8])('LB-42: so are thresholds of %j', (wrong) => {
    expect(() => overloadVerdict(load({ waitingRequests: 1 }), wrong as never)).toThrow(
      'thresholds: expected an object',
    );
  });

  it('OV-7: no hysteresis, each report is judged by itself', () => {
    const verdicts = [9, 8, 7, 8].map((n) => overloadVerdict(load({ waitingRequests: n }), thresholds(8))?.value);
    expect(verdicts).toEqual([9, 8, undefined, 8]);
  });
});

describe('resolveOverloadThresholds', () => {
  it('OV-3: protection alone sets usage 0.9; explicit values replace it; either alone enables', () => {
    expect(resolveOverloadThresholds(router(false), undefined)).toEqual(thresholds());
    expect(resolveOverloadThresholds(router(true), undefined)).toEqual(thresholds(undefined, 0.9));
    expect(resolveOverloadThresholds(router(true, 8, 0.5), undefined)).toEqual(thresholds(8, 0.5));
    expect(resolveOverloadThresholds(router(true, 8), undefined)).toEqual(thresholds(8, 0.9));
    expect(resolveOverloadThresholds(router(false, 8), undefined)).toEqual(thresholds(8));
    expect(resolveOverloadThresholds(router(false, undefined, 0.7), undefined)).toEqual(thresholds(undefined, 0.7));
  });

  it('OV-4: for each signal the worker wins, and a block alone enables', () => {
    expect(resolveOverloadThresholds(router(true, 8), { waitingRequests: 2 })).toEqual(thresholds(2, 0.9));
    expect(resolveOverloadThresholds(router(true, 8), { tokenUsage: 1 })).toEqual(thresholds(8, 1));
    expect(resolveOverloadThresholds(router(false), { waitingRequests: 3 })).toEqual(thresholds(3));
  });

  it('OV-4: external workers never get the values of the router, but have their own', () => {
    expect(resolveOverloadThresholds(undefined, undefined)).toEqual(thresholds());
    expect(resolveOverloadThresholds(undefined, { tokenUsage: 0.5 })).toEqual(thresholds(undefined, 0.5));
  });

  it('OV-4: out-of-range values fail the registration of that worker, by field', () => {
    for (const [name, value] of [
      ['waitingRequests', 0],
      ['waitingRequests', 2.5],
      ['tokenUsage', 0],
      ['tokenUsage', 1.01],
      ['tokenUsage', Number.NaN],
    ] as const) {
      expect(() => resolveOverloadThresholds(router(true), { [name]: value })).toThrowError(
        expect.objectContaining({ field: `worker.overload.${name}`, value }),
      );
    }
  });
});

describe('emptySelection', () => {
  const pool = (...vetoes: boolean[]): { overloaded: boolean }[] => vetoes.map((overloaded) => ({ overloaded }));

  it('OV-20: a shed only when every member is vetoed', () => {
    expect(emptySelection(pool(true, true))).toBe('overloaded');
  });

  it('OV-21, B49: one member that is merely unavailable makes it an ordinary failure', () => {
    expect(emptySelection(pool(true, false))).toBe('no_available_workers');
    expect(emptySelection(pool(false, false))).toBe('no_available_workers');
  });

  it('OV-21, B57: an empty pool has a reason of its own', () => {
    expect(emptySelection(pool())).toBe('no_workers');
  });
});

describe('emptySelection of what is no pool', () => {
  it.each([undefined, null, 5, {}])('LB-42: %j is refused by name', (pool) => {
    expect(() => emptySelection(pool as never)).toThrow('pool: expected a list of workers');
  });

  it('LB-42: so is a member that is no worker', () => {
    expect(() => emptySelection([undefined] as never)).toThrow('worker: expected an object');
  });
});

describe('shedRetryAfterMs', () => {
  it('OV-20, LR-20: the shortest interval that a worker of the pool asks for, else the router’s, at least 1 s', () => {
    expect(shedRetryAfterMs([{}, {}], 10_000)).toBe(10_000);
    expect(shedRetryAfterMs([{ loadMonitorIntervalMs: 4000 }, {}], 10_000)).toBe(4000);
    expect(shedRetryAfterMs([{ loadMonitorIntervalMs: 20_000 }], 10_000)).toBe(20_000);
    expect(shedRetryAfterMs([{ loadMonitorIntervalMs: 20_000 }, {}], 10_000)).toBe(20_000);
    expect(shedRetryAfterMs([{ loadMonitorIntervalMs: 20_000 }, { loadMonitorIntervalMs: 15_000 }], 10_000)).toBe(
      15_000,
    );
    expect(shedRetryAfterMs([], 250)).toBe(1000);
  });
});
