/** Workers as scorers see them, from the words of the specification's tables, and who wins among them. */
import { leastWait, type WaitTuning } from '../../src/load/expected-wait.js';
import { type LoadSummary, summarizeReport } from '../../src/load/load-summary.js';
import type { LoadReport, RankLoad } from '../../src/load/report.js';
import { seededRandom } from '../../src/runtime/random.js';
import type { WorkerSignals } from '../../src/workers/candidate.js';

export interface SignalValues {
  readonly inFlight?: number;
  readonly report?: LoadReport;
  /** Router time at which the report stops counting. */
  readonly expiresAt?: number;
  readonly creditTokens?: number;
  readonly creditRequests?: number;
}

export function signals(id: string, values: SignalValues = {}): WorkerSignals {
  const { inFlight = 0, report, expiresAt = Infinity, creditTokens = 0, creditRequests = 0 } = values;
  return {
    id,
    inFlight,
    activeKeys: 0,
    load: report && summaryOf(report, expiresAt),
    creditTokens,
    creditRequests,
    keyInFlight: () => 0,
  };
}

/** Workers by id, in the order given. */
export function fleet(workers: Readonly<Record<string, SignalValues>>): WorkerSignals[] {
  return Object.entries(workers).map(([id, values]) => signals(id, values));
}

/** A report that tells waiting tokens. */
export const tokens = (waitingTokens: number, tokensPerSecond: number, kvCacheUsage = 0.2): RankLoad => ({
  waitingTokens,
  tokensPerSecond,
  kvCacheUsage,
});

/** A report that tells the depth of the queue only. */
export const depth = (waitingRequests: number, tokensPerSecond: number, kvCacheUsage = 0.2): RankLoad => ({
  waitingRequests,
  tokensPerSecond,
  kvCacheUsage,
});

/** The exact set of winners over many seeds. */
export function winners(workers: readonly WorkerSignals[], tuning?: WaitTuning): string[] {
  const won = new Set<string>();
  for (let seed = 0; seed < 200; seed++) {
    won.add(leastWait(workers, 0, seededRandom(seed), tuning)?.worker.id ?? 'none');
  }
  return [...won].sort();
}

function summaryOf(report: LoadReport, expiresAt: number): LoadSummary {
  const summary = summarizeReport(report, 0, expiresAt);
  if (typeof summary === 'string') throw new Error(`report refused: ${summary}`);
  return summary;
}
