/** What a decision row is run against: a router, or a policy by itself. Both read the same steps. */
import { type LoadReport, seededRandom } from 'kvroute';
import type { RankValues, ReportValues, RequestRow, SetupStep } from './row.js';
import { textOf, tokensOf } from './row.js';

/** The outcome of one selection, as far as rows assert it. */
export interface Outcome {
  readonly worker: string | undefined;
  readonly branch: string | undefined;
  readonly level: number | undefined;
  readonly source: string | undefined;
  readonly ratio: number | undefined;
}

export interface Fleet {
  select(request: RequestRow): Outcome;
  /** The scores `explain` tells, by worker. */
  scores(request: RequestRow): ReadonlyMap<string, number>;
  /** Every step but `select`. */
  apply(step: Exclude<SetupStep, { op: 'select' }>): void;
}

/** A clock that moves only by `advance`; milliseconds. */
export class RowClock {
  #now = 0;
  readonly read = (): number => this.#now;

  advance(ms: number): void {
    this.#now += ms;
  }
}

/** The generator of one run. */
export const randomFor = (seed: number) => seededRandom(`row ${seed}`);

/** A request row as the package takes it. */
export function requestOf(row: RequestRow) {
  const { headers, leg, model, rid, namespace } = row;
  return { tokens: tokensOf(row), text: textOf(row), headers, leg, model, rid, namespace };
}

/** A report row as the package takes it, sampled now. Absent fields stay absent (LR-32). */
export function reportOf(report: ReportValues, observedAt: number): LoadReport {
  return 'ranks' in report ? { ranks: report.ranks.map(rankOf), observedAt } : { ...rankOf(report), observedAt };
}

export function rankOf(rank: RankValues) {
  return {
    waitingRequests: rank.waitingReqs,
    waitingTokens: rank.waitingTokens,
    kvCacheUsage: rank.tokenUsage,
    tokensPerSecond: rank.throughput,
  };
}
