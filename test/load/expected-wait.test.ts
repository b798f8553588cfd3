import { describe, expect, it } from 'vitest';
import { creditTokensOf } from '../../src/load/credit.js';
import { compareWaits, defaultTuning, leastWait, type WaitTuning } from '../../src/load/expected-wait.js';
import { seededRandom } from '../../src/runtime/random.js';
import { freshLoad } from '../../src/workers/candidate.js';
import { depth, fleet, signals, tokens, winners } from './signals.js';

describe('EW-40 to EW-45: the waiting cap', () => {
  const capped = (maxWaitingRequests: number): WaitTuning => ({ ...defaultTuning, maxWaitingRequests });

  it('E32, EW-40: a full queue is dropped before scoring', () => {
    const workers = fleet({ a: { report: depth(64, 100) }, b: { report: tokens(1_000_000, 100) } });
    expect(winners(workers, capped(48))).toEqual(['b']);
    expect(compareWaits(workers, 0, capped(48)).scores[0]?.capped).toBe(true);
  });

  it('E33, EW-42: nobody is left', () => {
    const workers = fleet({ a: { report: depth(48, 100) }, b: { report: depth(48, 100) } });
    expect(leastWait(workers, 0, seededRandom(1), capped(48))).toBeUndefined();
    expect(compareWaits(workers, 0, capped(48))).toMatchObject({ tieSet: [], runnerUp: undefined, margin: undefined });
  });

  it('E34, EW-41: workers without a report are never dropped', () => {
    expect(winners(fleet({ a: { inFlight: 5 }, b: {} }), capped(1))).toEqual(['b']);
  });

  it('E35, EW-44: the cap holds for a single worker', () => {
    expect(winners(fleet({ a: { report: depth(64, 100) } }), capped(48))).toEqual(['none']);
  });

  it('EW-43: baseline and nominal throughput come from those that survive the cap', () => {
    const workers = fleet({
      full: { report: { waitingRequests: 9, tokensPerSecond: 1000, kvCacheUsage: 0 } },
      a: { report: tokens(1000, 100, 0) },
      b: { inFlight: 1 },
    });
    const scores = compareWaits(workers, 0, capped(5)).scores;
    expect(scores.find(({ worker }) => worker === 'b')?.score).toBe(10 + 1024 / 100);
    expect(winners(workers, capped(5))).toEqual(['a']);
  });

  it('EW-43, EW-26: with only capped reporters left out, the rest is a dark fleet', () => {
    const workers = fleet({ full: { report: depth(9, 100) }, a: { inFlight: 4 }, b: { inFlight: 2 } });
    const pick = leastWait(workers, 0, seededRandom(1), capped(5));
    expect(pick).toEqual({ worker: workers[2], expectedWaitSeconds: undefined });
  });

  it('EW-45: requests credited since the report fill the queue', () => {
    const workers = fleet({ a: { report: depth(1, 100, 0), creditRequests: 1 } });
    expect(winners(workers, capped(2))).toEqual(['none']);
    expect(winners(workers, capped(3))).toEqual(['a']);
  });

  it('B56, CF-43: 0 is no cap', () => {
    expect(winners(fleet({ a: { report: depth(64, 100) } }), capped(0))).toEqual(['a']);
  });
});

describe('EW-20 to EW-22: ties', () => {
  it('EW-20: exact ties are broken uniformly among all tied candidates', () => {
    const workers = fleet({
      a: { report: tokens(10, 100), inFlight: 9 },
      worse: { report: tokens(11, 100) },
      b: { report: tokens(10, 100) },
      c: {},
      d: { inFlight: 1 },
    });
    const random = seededRandom('ties');
    const counts = new Map<string, number>();
    for (let i = 0; i < 9000; i++) {
      const id = leastWait(workers, 0, random)?.worker.id as string;
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    expect([...counts.keys()].sort()).toEqual(['a', 'b', 'c']);
    for (const count of counts.values()) expect(Math.abs(count - 3000)).toBeLessThan(200);
  });

  it('EW-20: a difference in the last bit is no tie', () => {
    const almost = 0.1 + 0.2;
    const workers = fleet({ a: { report: tokens(0.3, 1, 0) }, b: { report: tokens(almost, 1, 0) } });
    expect(almost).toBeGreaterThan(0.3);
    expect(winners(workers)).toEqual(['a']);
  });

  it('EW-20: one draw decides a tie, and none is made without one', () => {
    let draws = 0;
    const counting = () => {
      draws += 1;
      return 0.999999;
    };
    expect(leastWait(fleet({ a: {}, b: {}, c: {} }), 0, counting)?.worker.id).toBe('c');
    expect(draws).toBe(1);
    leastWait(fleet({ a: {}, b: { inFlight: 1 } }), 0, counting);
    expect(draws).toBe(1);
  });

  it('B20: four idle workers share 4000 fresh draws evenly', () => {
    const workers = fleet({ a: {}, b: {}, c: {}, d: {} });
    const random = seededRandom(20);
    const counts: Record<string, number> = {};
    for (let i = 0; i < 4000; i++) {
      const id = leastWait(workers, 0, random)?.worker.id as string;
      counts[id] = (counts[id] ?? 0) + 1;
    }
    for (const id of ['a', 'b', 'c', 'd']) expect(Math.abs((counts[id] as number) - 1000)).toBeLessThanOrEqual(120);
  });
});

describe('freshness and missing values', () => {
  it('LR-30, EW-28: a report counts until its expiry and not at it', () => {
    const worker = signals('a', { report: tokens(0, 100), expiresAt: 30_000 });
    expect(freshLoad(worker, 29_999.9)).toBe(worker.load);
    expect(freshLoad(worker, 30_000)).toBeUndefined();
  });

  it('B36: a report that aged out is no report', () => {
    const workers = fleet({
      a: { report: tokens(0, 100, 0), expiresAt: 1000, inFlight: 3 },
      b: { report: tokens(10_000, 100, 0) },
    });
    expect(leastWait(workers, 999, seededRandom(1))?.worker.id).toBe('a');
    const pick = leastWait(workers, 1000, seededRandom(1));
    expect(pick).toEqual({ worker: workers[1], expectedWaitSeconds: 100 });
  });

  it('EW-8a, LR-32: unknown KV usage adds nothing, and stays unknown in the explanation', () => {
    const compared = compareWaits(fleet({ a: { report: { waitingTokens: 100, tokensPerSecond: 100 } } }), 0);
    expect(compared.scores[0]).toMatchObject({ score: 1, kvSeconds: 0, kvCacheUsage: undefined });
  });

  it('EW-8a: ranks without KV usage are left out of the mean', () => {
    const report = { ranks: [{ kvCacheUsage: 0.5, tokensPerSecond: 10 }, { tokensPerSecond: 10 }] };
    expect(compareWaits(fleet({ a: { report } }), 0).scores[0]?.kvCacheUsage).toBe(0.5);
  });

  it('EW-10: a negative throughput counts as not reported', () => {
    expect(compareWaits(fleet({ a: { report: tokens(2000, -5, 0) } }), 0).scores[0]?.score).toBe(1);
  });

  it('EW-9: running requests are no part of the score', () => {
    const report = { ...tokens(0, 100, 0), runningRequests: 50 };
    expect(compareWaits(fleet({ a: { report } }), 0).scores[0]?.score).toBe(0);
  });

  it('B48: absurd but finite numbers never make the comparison blind', () => {
    const huge = Number.MAX_VALUE;
    const workers = fleet({
      a: { report: { waitingRequests: huge, tokensPerSecond: huge } },
      b: { report: { waitingRequests: huge, tokensPerSecond: huge } },
      c: { inFlight: 3 },
      d: { report: { waitingTokens: 1, tokensPerSecond: 100 } },
    });
    for (const { score } of compareWaits(workers, 0).scores) expect(score).not.toBeNaN();
    // Measured by so absurd a throughput, the requests of c weigh less than a double can tell.
    expect(winners(workers)).toEqual(['c', 'd']);
    expect(winners(workers.slice(0, 2))).toEqual(['a', 'b']);
  });

  it('EW-51: no candidate, no winner', () => {
    expect(leastWait([], 0, seededRandom(1))).toBeUndefined();
  });

  it('B90: 200 000 workers are compared without a spread', () => {
    const workers = Array.from({ length: 200_000 }, (_, i) => signals(`w${i}`, { inFlight: i === 150_000 ? 0 : 1 }));
    expect(leastWait(workers, 0, seededRandom(1))?.worker.id).toBe('w150000');
  });
});

describe('LB-13: the explanation of a comparison', () => {
  it('shows every term with its unit, the runner-up and the margin', () => {
    const workers = fleet({
      a: { report: { ...tokens(1000, 100, 0.5), observedAt: 0 }, creditTokens: 500, creditRequests: 1, inFlight: 4 },
      b: { report: tokens(4000, 100, 0) },
    });
    const compared = compareWaits(workers, 250);
    expect(compared.scores[0]).toEqual({
      worker: 'a',
      score: 15.15,
      basis: 'report',
      queuedTokens: 1000,
      creditTokens: 500,
      tokensPerSecond: 100,
      kvCacheUsage: 0.5,
      queueSeconds: 15,
      kvSeconds: 0.15,
      reportAgeMs: 250,
      inFlight: 4,
      capped: false,
    });
    expect(compared).toMatchObject({ tieSet: ['a'], runnerUp: 'b', margin: 40 - 15.15 });
  });

  it('EW-26: counts requests in a dark fleet', () => {
    const compared = compareWaits(fleet({ a: { inFlight: 2 }, b: { inFlight: 5 } }), 0);
    expect(compared.scores).toEqual([
      { worker: 'a', score: 2, basis: 'in_flight', inFlight: 2 },
      { worker: 'b', score: 5, basis: 'in_flight', inFlight: 5 },
    ]);
    expect(compared).toMatchObject({ tieSet: ['a'], runnerUp: 'b', margin: 3 });
  });
});

describe('EW-12, EW-13: the tokens of a selection', () => {
  it('EW-13: the length of a known list, an empty one too, else the mean', () => {
    expect(creditTokensOf([1, 2, 3])).toBe(3);
    expect(creditTokensOf([])).toBe(0);
    expect(creditTokensOf(undefined)).toBe(1024);
    expect(creditTokensOf(undefined, 7)).toBe(7);
  });
});
