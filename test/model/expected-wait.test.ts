/** The scorer against a naive model that follows the statements word by word. */

import { describe, expect, it } from 'vitest';
import { compareWaits, leastWait, type WaitTuning } from '../../src/load/expected-wait.js';
import type { RankLoad } from '../../src/load/report.js';
import { seededRandom } from '../../src/runtime/random.js';
import { signals } from '../load/signals.js';
import { fc } from '../support/property.js';

interface ModelWorker {
  readonly id: string;
  readonly inFlight: number;
  readonly ranks: readonly RankLoad[] | undefined;
  readonly fresh: boolean;
  readonly creditTokens: number;
  readonly creditRequests: number;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Score by id; capped workers are left out. */
function modelScores(workers: readonly ModelWorker[], tuning: WaitTuning): Map<string, number> {
  const isReporting = (worker: ModelWorker): boolean => worker.fresh && worker.ranks !== undefined;
  const compared = workers.filter((worker) => {
    if (!isReporting(worker) || tuning.maxWaitingRequests === 0) return true;
    const waiting = Math.max(0, sum(worker.ranks?.map((rank) => rank.waitingRequests ?? 0) ?? []));
    return waiting + worker.creditRequests < tuning.maxWaitingRequests;
  });
  const reporting = compared.filter(isReporting);
  if (reporting.length === 0) return new Map(compared.map(({ id, inFlight }) => [id, inFlight]));
  const own = new Map(reporting.map((worker) => [worker.id, modelReportScore(worker, tuning)]));
  const throughputs = reporting
    .map(({ ranks }) => sum(ranks?.map((rank) => rank.tokensPerSecond ?? 0) ?? []))
    .filter((throughput) => throughput > 0);
  const nominal = throughputs.length > 0 ? sum(throughputs) / throughputs.length : tuning.defaultThroughput;
  const baseline = Math.min(...own.values());
  return new Map(
    compared.map(({ id, inFlight }) => [id, own.get(id) ?? baseline + (inFlight * tuning.meanPrefillTokens) / nominal]),
  );
}

function modelReportScore({ ranks = [], creditTokens }: ModelWorker, tuning: WaitTuning): number {
  const waitingTokens = sum(ranks.map((rank) => rank.waitingTokens ?? 0));
  const waiting = Math.max(0, sum(ranks.map((rank) => rank.waitingRequests ?? 0)));
  const queued = waitingTokens > 0 ? waitingTokens : waiting * tuning.meanPrefillTokens;
  const throughput = sum(ranks.map((rank) => rank.tokensPerSecond ?? 0));
  const usages = ranks.flatMap(({ kvCacheUsage }) => kvCacheUsage ?? []);
  const k = usages.length > 0 ? Math.min(0.999, Math.max(0, sum(usages) / usages.length)) : 0;
  const wait = (queued + creditTokens) / (throughput > 0 ? throughput : tuning.defaultThroughput);
  return wait + (tuning.kvPressureWeight * k) / (1 - k);
}

// Few distinct values, so that exact ties are common.
const rank = fc.record(
  {
    waitingRequests: fc.constantFrom(-2, 0, 1, 2, 9),
    waitingTokens: fc.constantFrom(-5, 0, 1024, 2048),
    tokensPerSecond: fc.constantFrom(-1, 0, 100, 250),
    kvCacheUsage: fc.constantFrom(-0.1, 0, 0.5, 0.999, 1, 1.5),
  },
  { requiredKeys: [] },
);
const worker = fc.record({
  inFlight: fc.integer({ min: 0, max: 3 }),
  ranks: fc.option(fc.array(rank, { minLength: 1, maxLength: 3 }), { nil: undefined, freq: 3 }),
  fresh: fc.boolean(),
  creditTokens: fc.constantFrom(0, 0, 1024),
  creditRequests: fc.integer({ min: 0, max: 2 }),
});
const workers = fc
  .array(worker, { maxLength: 7 })
  .map((list): ModelWorker[] => list.map((values, i) => ({ id: `w${i}`, ...values })));
const tuning = fc.record({
  kvPressureWeight: fc.constantFrom(0, 0.15, 2),
  defaultThroughput: fc.constantFrom(100, 2000),
  meanPrefillTokens: fc.constantFrom(512, 1024),
  maxWaitingRequests: fc.constantFrom(0, 0, 1, 3),
});

describe('EW-1 to EW-45: the scorer against a naive model', () => {
  it('gives the same scores to the last bit, and lets exactly the tied candidates win', () => {
    fc.assert(
      fc.property(workers, tuning, (list, tuned) => {
        const seen = list.map(({ id, ranks, fresh, ...values }) =>
          signals(id, { ...values, ...(ranks && { report: { ranks } }), expiresAt: fresh ? Infinity : 0 }),
        );
        const expected = modelScores(list, tuned);
        const compared = compareWaits(seen, 0, tuned);
        const scores = compared.scores.filter(({ capped }) => capped !== true);
        expect(new Map(scores.map(({ worker: id, score }) => [id, score]))).toEqual(expected);
        const best = Math.min(...expected.values());
        const tied = [...expected].filter(([, score]) => score === best).map(([id]) => id);
        expect(compared.tieSet).toEqual(tied);
        const won = new Set<string | undefined>();
        for (let seed = 0; seed < 40 * Math.max(1, tied.length); seed++) {
          const pick = leastWait(seen, 0, seededRandom(seed), tuned);
          won.add(pick?.worker.id);
          if (pick !== undefined) {
            const isDark = !scores.some(({ basis }) => basis === 'report');
            expect(pick.expectedWaitSeconds).toBe(isDark ? undefined : best);
          }
        }
        expect([...won].sort()).toEqual(tied.length === 0 ? [undefined] : tied);
      }),
      { numRuns: 300 },
    );
  });
});
