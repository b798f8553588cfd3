/**
 * The expected-wait score: how many seconds of queued work and KV-cache pressure stand before a request on each
 * worker; the lowest wins (EW-1). Everything is relative to the candidates compared in this call (EW-27).
 *
 * One pass finds the best score among the workers that report, and what those without a report are measured by. Only
 * ties need more: candidates with exactly the best score are counted, and one draw picks among them (EW-20, EW-21).
 * O(n), nothing allocated per candidate. Arithmetic is double precision in the order of EW-2.
 */
import { leastLoadTable } from '../options/table.js';
import { type RandomSource, randomIndex } from '../runtime/random.js';
import { freshLoad, type WorkerId, type WorkerSignals } from '../workers/candidate.js';
import type { LoadSummary } from './load-summary.js';

/** The tunables of the score (EW-30); see the options of `least_load`. */
export interface WaitTuning {
  /** Weight of the KV-pressure term, seconds, ≥ 0 (EW-11). */
  readonly kvPressureWeight: number;
  /** Tokens per second of a worker that reports none, > 0 (EW-7). */
  readonly defaultThroughput: number;
  /** Tokens of a request whose size is unknown, > 0 (EW-4). */
  readonly meanPrefillTokens: number;
  /** Waiting requests, credit included, at which a worker is left out; 0 = no cap (EW-40). */
  readonly maxWaitingRequests: number;
}

/** KV usage is cut off here, so that a full cache weighs much and not infinitely (EW-8, CF-110). */
const maxKvUsage = 0.999;

/** The tuning of every scorer but `least_load`: the defaults of its options, the waiting cap off (EW-30). */
export const defaultTuning: WaitTuning = {
  kvPressureWeight: leastLoadTable.kvPressureWeight.default,
  defaultThroughput: leastLoadTable.defaultThroughput.default,
  meanPrefillTokens: leastLoadTable.meanPrefillTokens.default,
  maxWaitingRequests: leastLoadTable.maxWaitingRequests.default,
};

/** The winner of a comparison. */
export interface WaitPick {
  /** Of the lowest score. */
  readonly worker: WorkerSignals;
  /** Seconds; undefined in a dark fleet, where in-flight counts decided (EW-26). */
  readonly expectedWaitSeconds: number | undefined;
}

/** The terms of one candidate's expected-wait score (EW-1). Seconds and tokens. */
export interface ScoreTerms {
  /** The candidate. Terms of the report are absent for one without a fresh report. */
  readonly worker: WorkerId;
  /** The score, in seconds; the raw in-flight count in a dark fleet (EW-26). Lower is better. */
  readonly score: number;
  /** What kind of score: from the worker's own report, the baseline for a missing one (EW-23), or a dark fleet's count. */
  readonly basis: 'report' | 'baseline' | 'in_flight';
  /** Waiting tokens as reported, else estimated from the depth of the queue (EW-3, EW-4). */
  readonly queuedTokens?: number | undefined;
  /** Tokens selected for it since that report (EW-6). */
  readonly creditTokens?: number | undefined;
  /** Throughput as reported, else the default (EW-7). */
  readonly tokensPerSecond?: number | undefined;
  /** Clamped to [0, 0.999] (EW-8); undefined when the report does not say (EW-8a). */
  readonly kvCacheUsage?: number | undefined;
  /** Queue term, seconds. */
  readonly queueSeconds?: number | undefined;
  /** KV-pressure term, seconds. */
  readonly kvSeconds?: number | undefined;
  /** Age of the report, milliseconds. */
  readonly reportAgeMs?: number | undefined;
  /** Requests in flight; part of the score only without a report of its own (EW-23, EW-26). */
  readonly inFlight: number;
  /** Dropped by the waiting-queue cap (EW-40). */
  readonly capped?: boolean | undefined;
}

/** A comparison in full: what `explain` shows. */
export interface WaitComparison {
  /** In candidate order. */
  readonly scores: readonly ScoreTerms[];
  /** All candidates with exactly the best score: every one of them could win (EW-20). */
  readonly tieSet: readonly WorkerId[];
  /** The best candidate outside the tie set. */
  readonly runnerUp: WorkerId | undefined;
  /** Its score minus the best: seconds, or requests in a dark fleet. */
  readonly margin: number | undefined;
}

/**
 * Chooses the worker with the lowest expected wait; exact ties are broken uniformly (EW-20).
 *
 * @returns undefined when there is no candidate, or the waiting cap left none (EW-42)
 */
export function leastWait(
  workers: readonly WorkerSignals[],
  now: number,
  random: RandomSource,
  tuning: WaitTuning = defaultTuning,
): WaitPick | undefined {
  const fleet = survey(workers, now, tuning);
  if (fleet.first === undefined) return undefined;
  const worker = fleet.ties === 1 ? fleet.first : tieAt(randomIndex(random, fleet.ties), workers, fleet, now, tuning);
  return { worker, expectedWaitSeconds: fleet.reporting > 0 ? fleet.best : undefined };
}

/**
 * All terms of the comparison, by the arithmetic that `leastWait` uses. O(n log n) at most; allocates per candidate.
 */
export function compareWaits(
  workers: readonly WorkerSignals[],
  now: number,
  tuning: WaitTuning = defaultTuning,
): WaitComparison {
  const fleet = survey(workers, now, tuning);
  const scores = workers.map((worker) => termsOf(worker, fleet, now, tuning));
  const tieSet: WorkerId[] = [];
  let runnerUp: ScoreTerms | undefined;
  for (const terms of scores) {
    if (terms.capped) continue;
    if (terms.score === fleet.best) tieSet.push(terms.worker);
    else if (runnerUp === undefined || terms.score < runnerUp.score) runnerUp = terms;
  }
  return { scores, tieSet, runnerUp: runnerUp?.worker, margin: runnerUp && runnerUp.score - fleet.best };
}

/** What one look at all candidates yields. */
interface Survey {
  /** Candidates with a fresh report that passed the cap. */
  readonly reporting: number;
  /** The lowest score: of the reporting candidates, or in a dark fleet the fewest requests in flight. */
  readonly best: number;
  /** How many candidates have exactly that score. */
  readonly ties: number;
  /** The only one of them when `ties` is 1; undefined when there is no candidate. */
  readonly first: WorkerSignals | undefined;
  /** Tokens per second that a missing candidate's requests are measured by (EW-24). */
  readonly nominalThroughput: number;
}

function survey(workers: readonly WorkerSignals[], now: number, tuning: WaitTuning): Survey {
  // In locals, and the arithmetic on plain numbers: this loop is what a selection over a large fleet costs.
  const { kvPressureWeight, defaultThroughput, meanPrefillTokens, maxWaitingRequests } = tuning;
  let reporting = 0;
  let best = Infinity;
  let ties = 0;
  let first: WorkerSignals | undefined;
  let throughputSum = 0;
  let throughputCount = 0;
  // Of the candidates without a fresh report: the fewest in flight, how many have that, and the first of them.
  let fewest = Infinity;
  let fewestTies = 0;
  let firstFewest: WorkerSignals | undefined;
  for (let i = 0; i < workers.length; i++) {
    const worker = workers[i] as WorkerSignals;
    const load = worker.load;
    if (load === undefined || load.expiresAt <= now) {
      const { inFlight } = worker;
      if (inFlight < fewest) {
        fewest = inFlight;
        fewestTies = 1;
        firstFewest = worker;
      } else if (inFlight === fewest) fewestTies += 1;
      continue;
    }
    if (maxWaitingRequests > 0 && isCapped(worker, load, maxWaitingRequests)) continue;
    reporting += 1;
    const throughput = load.tokensPerSecond;
    if (throughput > 0) {
      throughputSum += throughput;
      throughputCount += 1;
    }
    const score =
      queueSeconds(
        queuedTokens(load, meanPrefillTokens) + worker.creditTokens,
        throughput > 0 ? throughput : defaultThroughput,
      ) + kvSeconds(kvPressureWeight, clampedKvUsage(load));
    if (score < best) {
      best = score;
      ties = 1;
      first = worker;
    } else if (score === best) {
      ties += 1;
      // A score of Infinity is never below the best, and must still be found.
      first ??= worker;
    }
  }
  if (reporting === 0) {
    return { reporting, best: fewest, ties: fewestTies, first: firstFewest, nominalThroughput: 0 };
  }
  // The bound keeps sums of absurd but finite throughputs finite, so that no NaN reaches a comparison (B48).
  const nominalThroughput =
    throughputCount > 0 ? Math.min(throughputSum, Number.MAX_VALUE) / throughputCount : defaultThroughput;
  // An idle newcomer ties with the best reporter; nobody without a report can beat it (EW-25).
  if (baselineScore(fewest, best, nominalThroughput, tuning) === best) ties += fewestTies;
  return { reporting, best, ties, first, nominalThroughput };
}

/** The candidate at `index` among those with the best score. */
function tieAt(
  index: number,
  workers: readonly WorkerSignals[],
  fleet: Survey,
  now: number,
  tuning: WaitTuning,
): WorkerSignals {
  let left = index;
  let last = fleet.first as WorkerSignals;
  for (let i = 0; i < workers.length && left >= 0; i++) {
    const worker = workers[i] as WorkerSignals;
    if (scoreOf(worker, fleet, now, tuning) === fleet.best) {
      last = worker;
      left -= 1;
    }
  }
  return last;
}

/** A candidate's score; undefined when the cap dropped it. */
function scoreOf(worker: WorkerSignals, fleet: Survey, now: number, tuning: WaitTuning): number | undefined {
  const load = freshLoad(worker, now);
  if (load === undefined) return missingScore(worker, fleet, tuning);
  return isCapped(worker, load, tuning.maxWaitingRequests) ? undefined : reportScore(worker, load, tuning);
}

/** EW-23 beside reporting candidates, EW-26 in a dark fleet. */
function missingScore({ inFlight }: WorkerSignals, fleet: Survey, tuning: WaitTuning): number {
  return fleet.reporting === 0 ? inFlight : baselineScore(inFlight, fleet.best, fleet.nominalThroughput, tuning);
}

function baselineScore(inFlight: number, best: number, nominalThroughput: number, tuning: WaitTuning): number {
  return best + (inFlight * tuning.meanPrefillTokens) / nominalThroughput;
}

/** EW-1, in the order of EW-2. */
function reportScore(worker: WorkerSignals, load: LoadSummary, tuning: WaitTuning): number {
  const queued = queuedTokens(load, tuning.meanPrefillTokens) + worker.creditTokens;
  return (
    queueSeconds(queued, throughputOf(load, tuning.defaultThroughput)) +
    kvSeconds(tuning.kvPressureWeight, clampedKvUsage(load))
  );
}

function queueSeconds(tokens: number, throughput: number): number {
  return tokens / throughput;
}

function kvSeconds(weight: number, usage: number): number {
  return (weight * usage) / (1 - usage);
}

/** EW-3 to EW-5: the engine's own count of waiting tokens, else an estimate from the depth. */
function queuedTokens(load: LoadSummary, meanPrefillTokens: number): number {
  const tokens = load.waitingTokens;
  if (tokens !== undefined && tokens > 0) return tokens;
  const depth = load.waitingRequests;
  return depth > 0 ? depth * meanPrefillTokens : 0;
}

/** EW-7. */
function throughputOf({ tokensPerSecond }: LoadSummary, defaultThroughput: number): number {
  return tokensPerSecond > 0 ? tokensPerSecond : defaultThroughput;
}

/** EW-8, EW-8a: unknown pressure is no pressure. */
function clampedKvUsage(load: LoadSummary): number {
  const usage = load.kvCacheUsage;
  if (usage === undefined || usage <= 0) return 0;
  return usage < maxKvUsage ? usage : maxKvUsage;
}

/** EW-40, EW-45: credited requests count, so a burst between two reports meets the cap too. 0 = no cap. */
function isCapped(worker: WorkerSignals, load: LoadSummary, maxWaitingRequests: number): boolean {
  return maxWaitingRequests > 0 && Math.max(0, load.waitingRequests) + worker.creditRequests >= maxWaitingRequests;
}

function termsOf(worker: WorkerSignals, fleet: Survey, now: number, tuning: WaitTuning): ScoreTerms {
  const { id, inFlight, creditTokens } = worker;
  const load = freshLoad(worker, now);
  if (load === undefined) {
    const basis = fleet.reporting > 0 ? 'baseline' : 'in_flight';
    return { worker: id, score: missingScore(worker, fleet, tuning), basis, inFlight };
  }
  const queued = queuedTokens(load, tuning.meanPrefillTokens);
  const tokensPerSecond = throughputOf(load, tuning.defaultThroughput);
  return {
    worker: id,
    score: reportScore(worker, load, tuning),
    basis: 'report',
    queuedTokens: queued,
    creditTokens,
    tokensPerSecond,
    kvCacheUsage: load.kvCacheUsage === undefined ? undefined : clampedKvUsage(load),
    queueSeconds: queueSeconds(queued + creditTokens, tokensPerSecond),
    kvSeconds: kvSeconds(tuning.kvPressureWeight, clampedKvUsage(load)),
    reportAgeMs: now - load.observedAt,
    inFlight,
    capped: isCapped(worker, load, tuning.maxWaitingRequests),
  };
}
