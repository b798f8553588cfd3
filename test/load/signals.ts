/** Workers as scorers see them, from the words of the specification's tables. */
import { type LoadSummary, summarizeReport } from '../../src/load/load-summary.js';
import type { LoadReport } from '../../src/load/report.js';
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

function summaryOf(report: LoadReport, expiresAt: number): LoadSummary {
  const summary = summarizeReport(report, 0, expiresAt);
  if (typeof summary === 'string') throw new Error(`report refused: ${summary}`);
  return summary;
}
