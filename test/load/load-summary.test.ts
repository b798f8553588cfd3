import { describe, expect, it } from 'vitest';
import { summarizeReport } from '../../src/load/load-summary.js';

const summarize = (report: unknown) => summarizeReport(report as never, 5, 30_005);

describe('LR-3: aggregation over ranks', () => {
  it('sums counts and throughput, averages KV usage', () => {
    const ranks = [
      { waitingRequests: 3, waitingTokens: 100, tokensPerSecond: 40, kvCacheUsage: 0.25, maxRunningRequests: 8 },
      { waitingRequests: 4, waitingTokens: 20, tokensPerSecond: 60, kvCacheUsage: 0.75, maxRunningRequests: 16 },
    ];
    const report = { ranks };
    expect(summarize(report)).toEqual({
      report,
      waitingRequests: 7,
      waitingTokens: 120,
      tokensPerSecond: 100,
      kvCacheUsage: 0.5,
      maxRunningRequests: 24,
      observedAt: 5,
      expiresAt: 30_005,
    });
  });

  it('LR-2: what a rank says about disaggregation is kept in the report and no part of the sums', () => {
    const report = { disaggregation: { mode: null, kvTransferLatencyMs: 1.5, decodeQueueRequests: 0 } };
    expect(summarize(report)).toMatchObject({ report, waitingRequests: 0, tokensPerSecond: 0 });
    expect(summarize({ disaggregation: null })).toMatchObject({ waitingRequests: 0 });
  });

  it('LR-3: sums are taken before any clamp', () => {
    expect(summarize({ ranks: [{ waitingRequests: -3 }, { waitingRequests: 5 }] })).toMatchObject({
      waitingRequests: 2,
    });
  });

  it('LR-32: what no rank says stays unknown', () => {
    expect(summarize({})).toMatchObject({
      waitingRequests: 0,
      waitingTokens: undefined,
      tokensPerSecond: 0,
      kvCacheUsage: undefined,
      maxRunningRequests: undefined,
    });
    expect(summarize({ waitingTokens: 0, kvCacheUsage: 0 })).toMatchObject({ waitingTokens: 0, kvCacheUsage: 0 });
  });
});

describe('LR-5, LR-11a: what is no report', () => {
  it('LR-5: an empty list of ranks', () => {
    expect(summarize({ ranks: [] })).toBe('empty');
  });

  it.each([
    ['NaN', { kvCacheUsage: Number.NaN }],
    ['infinity', { ranks: [{}, { usedTokens: Infinity }] }],
    ['a string', { waitingRequests: '3' }],
    ['null for a number', { tokensPerSecond: null }],
    ['NaN about disaggregation', { disaggregation: { kvTransferLatencyMs: Number.NaN } }],
    ['infinity about disaggregation', { ranks: [{}, { disaggregation: { decodeQueueRequests: Infinity } }] }],
    ['disaggregation that is no object', { disaggregation: 'prefill' }],
    ['a non-finite instant', { observedAt: Number.NaN }],
    ['no object', 3],
    ['null', null],
    ['ranks that are no list', { ranks: {} }],
    ['a rank that is no object', { ranks: [null] }],
    ['finite ranks that add up to infinity', { ranks: [{ tokensPerSecond: 1e308 }, { tokensPerSecond: 1e308 }] }],
  ])('B48, LR-11a: %s makes it invalid', (_what, report) => {
    expect(summarize(report)).toBe('invalid');
  });
});
