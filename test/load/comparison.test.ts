/** The comparison behind a decision, at the places where a slip would still choose a worker: found by mutating the sources. */
import { describe, expect, it } from 'vitest';
import { compareWaits, leastWait } from '../../src/load/expected-wait.js';
import { isUnderKvPressure } from '../../src/load/kv-pressure.js';
import { summarizeReport } from '../../src/load/load-summary.js';
import { scriptedRandom } from '../../src/testing/index.js';
import { fleet, signals } from './signals.js';

/** Waits of as many seconds. */
const waits = (seconds: Readonly<Record<string, number>>) =>
  fleet(
    Object.fromEntries(
      Object.entries(seconds).map(([id, s]) => [id, { report: { waitingTokens: s * 100, tokensPerSecond: 100 } }]),
    ),
  );

describe('compareWaits', () => {
  it.each([
    [{ a: 1, b: 5, c: 3 }, 'c', 2],
    [{ a: 1, b: 3, c: 5 }, 'b', 2],
    [{ a: 5, b: 1, c: 3 }, 'c', 2],
    // Of equal ones the first; those that tie for the best are no runners-up.
    [{ a: 1, b: 3, c: 3 }, 'b', 2],
    [{ a: 1, b: 1, c: 4 }, 'c', 3],
    [{ a: 1, b: 1 }, undefined, undefined],
  ])('LB-13: the runner-up of %o is %s', (seconds, runnerUp, margin) => {
    expect(compareWaits(waits(seconds), 0)).toMatchObject({ runnerUp, margin });
  });

  it('LB-13: the age of a report is the time since its sample', () => {
    const load = summarizeReport({ waitingTokens: 1 }, 2000, 30_000);
    if (typeof load === 'string') throw new Error(load);
    const [terms] = compareWaits([{ ...signals('a'), load }], 5000).scores;
    expect(terms?.reportAgeMs).toBe(3000);
  });

  it('EW-4, EW-10: no or negative waiting tokens are estimated from the depth, a negative depth is none', () => {
    const queued = (report: object) => compareWaits(fleet({ a: { report } }), 0).scores[0]?.queuedTokens;
    expect(queued({ waitingTokens: 0, waitingRequests: 2 })).toBe(2048);
    expect(queued({ waitingTokens: -7, waitingRequests: 2 })).toBe(2048);
    expect(queued({ waitingTokens: 5, waitingRequests: 2 })).toBe(5);
    expect(queued({ waitingRequests: -2 })).toBe(0);
  });

  it('EW-8, EW-10: negative KV usage counts as none', () => {
    const [terms] = compareWaits(fleet({ a: { report: { kvCacheUsage: -0.5 } } }), 0).scores;
    expect(terms).toMatchObject({ kvCacheUsage: 0, kvSeconds: 0, score: 0 });
  });
});

describe('leastWait', () => {
  it('EW-25: a busy worker without a report does not tie with the best one, so nothing is drawn', () => {
    const workers = fleet({ a: { report: { waitingTokens: 100, tokensPerSecond: 100 } }, b: { inFlight: 1 } });
    expect(leastWait(workers, 0, scriptedRandom([]))).toEqual({ worker: workers[0], expectedWaitSeconds: 1 });
  });

  it('EW-25: an idle one does', () => {
    const workers = fleet({ a: { report: { waitingTokens: 100, tokensPerSecond: 100 } }, b: { inFlight: 0 } });
    expect(leastWait(workers, 0, scriptedRandom([0.5]))?.worker.id).toBe('b');
    expect(leastWait(workers, 0, scriptedRandom([0.49]))?.worker.id).toBe('a');
  });
});

describe('isUnderKvPressure', () => {
  const usages = (...values: readonly number[]) =>
    fleet(Object.fromEntries(values.map((kvCacheUsage, i) => [`w${i}`, { report: { kvCacheUsage } }])));

  it('CA-20: the spread is that between the fullest and the emptiest, wherever they stand', () => {
    const thresholds = { balanceTokenUsageThreshold: 0.5, overloadTokenUsageThreshold: 1 };
    for (const order of [
      [0.1, 0.5, 0.7],
      [0.7, 0.5, 0.1],
      [0.5, 0.1, 0.7],
      [0.1, 0.7, 0.5],
    ]) {
      expect(isUnderKvPressure({ workers: usages(...order) }, 0, thresholds)).toBe(true);
    }
    expect(isUnderKvPressure({ workers: usages(0.3, 0.5, 0.7) }, 0, thresholds)).toBe(false);
  });
});

describe('summarizeReport', () => {
  it('LR-11a, LB-42: what is no report, and a rank that is none, are refused', () => {
    for (const report of ['loads', 7, true, null, undefined, { ranks: ['rank'] }, { ranks: [7] }, { ranks: [null] }]) {
      expect(summarizeReport(report as never, 0, 1)).toBe('invalid');
    }
  });
});
