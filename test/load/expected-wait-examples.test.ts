/** The worked examples of the score. */
import { describe, expect, it } from 'vitest';
import { creditTokensOf } from '../../src/load/credit.js';
import { compareWaits, defaultTuning, type WaitTuning } from '../../src/load/expected-wait.js';
import { depth, fleet, type SignalValues, tokens, winners } from './signals.js';

interface Example {
  readonly id: string;
  readonly tuning?: Partial<WaitTuning>;
  readonly workers: Readonly<Record<string, SignalValues>>;
  readonly scores: Readonly<Record<string, number>>;
  readonly wins: readonly string[];
}

const examples: readonly Example[] = [
  {
    id: 'E1: a queue',
    workers: { a: { report: tokens(8000, 100) }, b: { report: tokens(1000, 100) } },
    scores: { a: 80.0375, b: 10.0375 },
    wins: ['b'],
  },
  {
    id: 'E2: speed',
    workers: { a: { report: tokens(5000, 50) }, b: { report: tokens(5000, 500) } },
    scores: { a: 100.0375, b: 10.0375 },
    wins: ['b'],
  },
  {
    id: 'E3: no throughput reported',
    workers: { a: { report: tokens(10_000, 0) }, b: { report: tokens(1000, 0) } },
    scores: { a: 5.0375, b: 0.5375 },
    wins: ['b'],
  },
  {
    id: 'E4: depth only',
    workers: { a: { report: depth(64, 100) }, b: { report: depth(6, 100) } },
    scores: { a: 655.3975, b: 61.4775 },
    wins: ['b'],
  },
  {
    id: 'E5: tokens beat depth',
    workers: {
      a: { report: { ...tokens(500, 100), waitingRequests: 200 } },
      b: { report: tokens(8000, 100) },
    },
    scores: { a: 5.0375, b: 80.0375 },
    wins: ['a'],
  },
  {
    id: 'E6: weight 2',
    tuning: { kvPressureWeight: 2 },
    workers: { a: { report: tokens(0, 100, 0.98) }, b: { report: tokens(0, 100, 0) } },
    scores: { a: 97.99999999999991, b: 0 },
    wins: ['b'],
  },
  {
    id: 'E7: the clamp',
    workers: { a: { report: tokens(0, 100, 1) } },
    scores: { a: 149.84999999999985 },
    wins: ['a'],
  },
  {
    id: 'E8: the barrier curve',
    workers: {
      a: { report: tokens(0, 100, 0.5) },
      b: { report: tokens(0, 100, 0.9) },
      c: { report: tokens(0, 100, 0.99) },
    },
    scores: { a: 0.15, b: 1.3500000000000003, c: 14.849999999999985 },
    wins: ['a'],
  },
  {
    id: 'E9: one report missing',
    workers: { a: { report: tokens(4000, 100, 0) }, b: { inFlight: 5 } },
    scores: { a: 40, b: 91.2 },
    wins: ['a'],
  },
  {
    id: 'E10: an idle newcomer',
    workers: { a: { report: tokens(4000, 100, 0), inFlight: 7 }, b: {} },
    scores: { a: 40, b: 40 },
    wins: ['a', 'b'],
  },
  {
    id: 'E11: missing, no throughput',
    workers: { a: { report: tokens(0, 0, 0.9) }, b: { inFlight: 5 } },
    scores: { a: 1.3500000000000003, b: 1.3500000000000003 + (5 * 1024) / 2000 },
    wins: ['a'],
  },
  {
    id: 'E12: the nominal throughput is the mean of the positive reports',
    workers: {
      a: { report: tokens(1000, 100) },
      b: { report: tokens(0, 300) },
      c: { report: tokens(0, 0, 0.5) },
      d: { inFlight: 2 },
    },
    scores: { a: 10.0375, b: 0.0375, c: 0.15, d: 10.2775 },
    wins: ['b'],
  },
  {
    id: 'E13: a dark fleet',
    workers: { a: { inFlight: 5 }, b: { inFlight: 3 }, c: { inFlight: 3 } },
    scores: { a: 5, b: 3, c: 3 },
    wins: ['b', 'c'],
  },
  {
    id: 'E14: credit of one request of unknown size',
    workers: {
      a: { report: tokens(1000, 100), creditTokens: creditTokensOf(undefined), creditRequests: 1 },
      b: { report: tokens(2000, 100) },
    },
    scores: { a: 20.2775, b: 20.0375 },
    wins: ['b'],
  },
  {
    id: 'E15: exact credit',
    workers: {
      a: { report: tokens(0, 100), creditTokens: creditTokensOf(new Uint32Array(2100)), creditRequests: 1 },
      b: { report: tokens(2048, 100) },
    },
    scores: { a: 21.0375, b: 20.517500000000002 },
    wins: ['b'],
  },
  {
    id: 'E16: data-parallel ranks',
    workers: {
      a: { report: { ranks: [tokens(3000, 400, 0.9), tokens(1000, 600, 0.1)] } },
      b: { report: tokens(5000, 1000, 0.5) },
    },
    scores: { a: 4.15, b: 5.15 },
    wins: ['a'],
  },
  { id: 'E17: a negative depth', workers: { a: { report: depth(-3, 100, 0) } }, scores: { a: 0 }, wins: ['a'] },
  {
    id: 'E18: mean 512, default throughput 500',
    tuning: { meanPrefillTokens: 512, defaultThroughput: 500 },
    workers: { a: { report: depth(4, 0, 0.25) }, b: { inFlight: 3 } },
    scores: { a: 4.146, b: 7.218 },
    wins: ['a'],
  },
  {
    id: 'E19: weight 0',
    tuning: { kvPressureWeight: 0 },
    workers: { a: { report: tokens(0, 100, 0.99) }, b: { report: tokens(10, 100) } },
    scores: { a: 0, b: 0.1 },
    wins: ['a'],
  },
  {
    id: 'E20: mixed ranks',
    workers: {
      a: {
        report: {
          ranks: [
            { waitingRequests: 10, waitingTokens: 0, tokensPerSecond: 50, kvCacheUsage: 0.1 },
            { waitingRequests: 1, waitingTokens: 100, tokensPerSecond: 50, kvCacheUsage: 0.1 },
          ],
        },
      },
    },
    scores: { a: 1.0166666666666666 },
    wins: ['a'],
  },
  {
    id: 'E21: two missing',
    workers: { a: { report: tokens(0, 200, 0.5) }, b: {}, c: { inFlight: 1 } },
    scores: { a: 0.15, b: 0.15, c: 5.2700000000000005 },
    wins: ['a', 'b'],
  },
  {
    id: 'E22: the scope is the candidate list',
    workers: { a: { inFlight: 2 }, b: { report: tokens(1000, 100) } },
    scores: { a: 30.5175, b: 10.0375 },
    wins: ['b'],
  },
];

describe('EW-1 to EW-30: worked examples', () => {
  for (const { id, tuning, workers, scores, wins } of examples) {
    it(id, () => {
      const resolved = { ...defaultTuning, ...tuning };
      const compared = compareWaits(fleet(workers), 0, resolved);
      expect(Object.fromEntries(compared.scores.map(({ worker, score }) => [worker, score]))).toEqual(scores);
      expect(winners(fleet(workers), resolved)).toEqual(wins);
      expect([...compared.tieSet].sort()).toEqual(wins);
    });
  }
});
