import { describe, expect, it } from 'vitest';
import { isUnderKvPressure } from '../../src/load/kv-pressure.js';
import { gateTerms, isHot, spillLimits } from '../../src/load/spill-gate.js';
import { fleet } from './signals.js';

describe('CA-10, CA-13: the spill gate', () => {
  const hot = (counts: readonly number[], rel = 1.5, abs = 64): boolean => {
    const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
    return isHot(counts[0] as number, spillLimits(mean, rel, abs));
  };

  it.each([
    { counts: [20, 0], rel: 2, abs: 5, expected: false },
    { counts: [30, 0], rel: 1.5, abs: 5, expected: true },
    { counts: [100, 0, 0, 0], rel: 1.5, abs: 64, expected: true },
    { counts: [90, 0, 0, 0], rel: 1.5, abs: 64, expected: true },
    { counts: [80, 0, 0, 0], rel: 1.5, abs: 64, expected: false },
    { counts: [64, 0], rel: 1.5, abs: 64, expected: false },
    { counts: [128, 0], rel: 1.5, abs: 64, expected: false },
    { counts: [129, 0], rel: 1.5, abs: 64, expected: true },
  ])('CA-13: $counts with $rel and $abs is hot: $expected', ({ counts, rel, abs, expected }) => {
    expect(hot(counts, rel, abs)).toBe(expected);
  });

  it('CA-10: both comparisons are strict', () => {
    const limits = spillLimits(10, 2, 10);
    expect(isHot(20, limits)).toBe(false);
    expect(isHot(21, limits)).toBe(true);
  });

  it('PH-9, B63: with the mean of T + 1 requests it is the load check of prefix_hash', () => {
    const over = (total: number, inFlight: number, abs: number): boolean =>
      isHot(inFlight, spillLimits((total + 1) / 4, 1.25, abs));
    expect([over(100, 30, 0), over(100, 35, 0)]).toEqual([false, true]);
    expect([over(40, 13, 10), over(40, 20, 10), over(40, 21, 10)]).toEqual([false, false, true]);
    expect([over(800, 240, 10), over(800, 260, 10)]).toEqual([false, true]);
    expect(over(0, 0, 0)).toBe(false);
  });

  it('LB-13: both margins are told', () => {
    expect(gateTerms(fleet({ a: { inFlight: 30 }, b: {} }), spillLimits(15, 1.5, 5))).toEqual([
      { worker: 'a', inFlight: 30, mean: 15, relativeMargin: 7.5, absoluteMargin: 10, hot: true },
      { worker: 'b', inFlight: 0, mean: 15, relativeMargin: -22.5, absoluteMargin: -20, hot: false },
    ]);
  });
});

describe('CA-20 to CA-23: KV pressure', () => {
  const pressure = (usages: readonly (number | undefined)[], spread: number, ceiling: number): boolean => {
    const workers = fleet(
      Object.fromEntries(
        usages.map((kvCacheUsage, i) => [`w${i}`, kvCacheUsage === undefined ? {} : { report: { kvCacheUsage } }]),
      ),
    );
    return isUnderKvPressure({ workers }, 0, {
      balanceTokenUsageThreshold: spread,
      overloadTokenUsageThreshold: ceiling,
    });
  };

  it('CA-23: evenly full does not fire by spread, a spread does, and so does the ceiling', () => {
    expect(pressure([0.95, 0.95, 0.95], 0.5, 1)).toBe(false);
    expect(pressure([0.95, 0.1], 0.5, 1)).toBe(true);
    expect(pressure([0.92, 0.85], 1, 0.9)).toBe(true);
  });

  it('CA-20: comparisons are strict', () => {
    expect(pressure([0.75, 0.25], 0.5, 1)).toBe(false);
    expect(pressure([0.9], 1, 0.9)).toBe(false);
  });

  it('CA-20: thresholds of 1 and more are off by themselves, also for usage above 1', () => {
    expect(pressure([1.4, 0], 1, 1)).toBe(false);
    expect(pressure([1.4, 0], 1, 0.9)).toBe(true);
    expect(pressure([1.4, 0.6], 0.5, 2)).toBe(false);
    expect(pressure([-3, 0.4], 0.5, 1)).toBe(false);
  });

  it('CA-20, CA-22: without reports no pressure; one report has no spread, but the ceiling applies', () => {
    expect(pressure([undefined, undefined], 0.1, 0.1)).toBe(false);
    expect(pressure([0.8, undefined], 0.1, 1)).toBe(false);
    expect(pressure([0.8, undefined], 1, 0.7)).toBe(true);
  });

  it('EW-8a: a report without KV usage takes no part; an aged one neither', () => {
    const workers = fleet({
      a: { report: { waitingRequests: 1 } },
      b: { report: { kvCacheUsage: 0.9 } },
      c: { report: { kvCacheUsage: 0 }, expiresAt: 10 },
    });
    const thresholds = { balanceTokenUsageThreshold: 0.5, overloadTokenUsageThreshold: 1 };
    expect(isUnderKvPressure({ workers }, 9, thresholds)).toBe(true);
    expect(isUnderKvPressure({ workers }, 10, thresholds)).toBe(false);
  });
});
