/**
 * Runs one decision row over many seeds and says what differed (CC-1). Each seed is a run of its own, setup included:
 * what a step asserts must hold in every run; a set of possible winners must come out exactly.
 */
import type { Hash64 } from 'kvroute';
import type { Fleet, Outcome } from './fleet.js';
import { PolicyFleet } from './policy-fleet.js';
import { RouterFleet } from './router-fleet.js';
import type { DecisionRow, ExpectRow, RequestRow } from './row.js';

/** What a row expected and what came. */
export interface Difference {
  readonly expected: string;
  readonly came: string;
}

/** Runs of a row whose winner must always be the same, and of one with a set of winners. */
const certainRuns = 10;
const openRuns = 200;
/** A set of winners may hold unlikely ones: so many runs until every one must have come. */
const mostRuns = 1000;
/** Selections that must agree when the row says `stable`. */
const stableRepeats = 8;

export async function runDecisionRow(row: DecisionRow, hash: Hash64): Promise<Difference | undefined> {
  const winners = new Set<string>();
  const wanted = row.expect.stable ? undefined : row.expect.oneOf;
  for (let seed = 0; seed < mostRuns; seed++) {
    const missing = wanted?.some((id) => !winners.has(id));
    if (seed >= (wanted === undefined ? certainRuns : openRuns) && !missing) break;
    const fleet = runsAlone(row) ? new PolicyFleet(row, seed, hash) : await RouterFleet.create(row, seed);
    const difference = runOnce(row, fleet, winners);
    if (difference !== undefined) return difference;
  }
  if (row.expect.stable && winners.size > 1) {
    return { expected: 'the same worker whatever the draws', came: [...winners].sort().join(', ') };
  }
  const unreached = wanted?.filter((id) => !winners.has(id)) ?? [];
  return unreached.length === 0 ? undefined : { expected: `one of ${wanted}`, came: `never ${unreached}` };
}

/**
 * Rows that name a leg or a model run on a policy by itself (CC-14), and so do rows that stub a ring or give keys that
 * are in no request's count: both exist there only (CC-10, CC-16). All others run on a router.
 */
function runsAlone(row: DecisionRow): boolean {
  // The ranges of `bucket` cover workers that are not available too, and only a router knows those.
  if (row.policy === 'bucket') return false;
  const requests: RequestRow[] = [row.request];
  for (const step of row.setup) if (step.op === 'select') requests.push(step.request);
  return (
    requests.some(({ leg, model }) => leg !== undefined || model !== undefined) ||
    row.setup.some(
      (step) => 'model' in step || 'leg' in step || (step.op === 'set' && step.values.keys !== undefined),
    ) ||
    row.workers.some(({ keys }) => keys !== undefined) ||
    row.state.ringOwner !== undefined
  );
}

function runOnce(row: DecisionRow, fleet: Fleet, winners: Set<string>): Difference | undefined {
  for (const [i, step] of row.setup.entries()) {
    if (step.op !== 'select') {
      fleet.apply(step);
      continue;
    }
    const scores = step.expect?.scores && fleet.scores(step.request);
    const difference = step.expect && compare(step.expect, fleet.select(step.request), scores);
    if (step.expect === undefined) fleet.select(step.request);
    if (difference !== undefined) return { ...difference, came: `${difference.came} in setup step ${i + 1}` };
  }
  const scores = row.expect.scores && fleet.scores(row.request);
  const outcome = fleet.select(row.request);
  winners.add(outcome.worker ?? 'none');
  if (row.expect.stable) {
    for (let i = 1; i < stableRepeats; i++) winners.add(fleet.select(row.request).worker ?? 'none');
  }
  return compare(row.expect, outcome, scores);
}

function compare(
  expect: ExpectRow,
  outcome: Outcome,
  scores: ReadonlyMap<string, number> | undefined,
): Difference | undefined {
  const allowed: readonly (string | undefined)[] = expect.none ? [undefined] : (expect.oneOf ?? [expect.worker]);
  if (!allowed.includes(outcome.worker)) {
    const expected = expect.none ? 'none' : allowed.join(' or ');
    return { expected, came: outcome.worker ?? 'none' };
  }
  for (const name of ['branch', 'level', 'source', 'ratio'] as const) {
    if (expect[name] !== undefined && expect[name] !== outcome[name]) {
      return { expected: `${name} ${expect[name]}`, came: `${name} ${outcome[name]}` };
    }
  }
  for (const [id, score] of Object.entries(expect.scores ?? {})) {
    if (scores?.get(id) !== score) return { expected: `score of ${id} ${score}`, came: String(scores?.get(id)) };
  }
  return undefined;
}
