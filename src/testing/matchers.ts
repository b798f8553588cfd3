/**
 * Matchers for `expect`, for vitest and jest alike: `expect.extend(kvrouteMatchers)`, once, in a setup file or a test.
 * TypeScript learns of them by one declaration; nothing here depends on either framework.
 *
 *     // vitest
 *     declare module 'vitest' {
 *       interface Matchers<T = any> extends KvrouteMatchers<T> {}
 *     }
 *     // jest
 *     declare global {
 *       namespace jest {
 *         interface Matchers<R, T = {}> extends KvrouteMatchers<R> {}
 *       }
 *     }
 */
import { checkList, refuse } from '../errors.js';
import type { DecisionRecord, SelectionReason } from '../selection.js';
import type { WorkerId } from '../workers/candidate.js';
import type { Distribution } from './distribution.js';

/**
 * What `expect` can do once extended. The first four take what `selectWorker` and `acquire` return, of a router or of a
 * policy used alone, and the `selection` of an explanation. Anything else is a `TypeError`, also under `not`.
 */
export interface KvrouteMatchers<R = unknown> {
  /** This worker was selected. */
  toSelect(worker: WorkerId): R;
  /** One of these workers was selected. */
  toSelectOneOf(workers: readonly WorkerId[]): R;
  /** Nobody was selected; for this reason, when one is given. */
  toSelectNobody(reason?: SelectionReason): R;
  /** The decision took this path: the `branch` of its record. */
  toHaveBranch(branch: string): R;
  /** Of a `distribution`: these workers won, all of them and nobody else; their order does not count. */
  toReach(workers: readonly WorkerId[]): R;
}

/** The shape both frameworks expect of a matcher's result. */
export interface MatcherResult {
  readonly pass: boolean;
  /** What to say when the expectation does not hold. */
  readonly message: () => string;
}

/** For `expect.extend`. */
export const kvrouteMatchers: {
  /** See `KvrouteMatchers.toSelect`. */
  readonly toSelect: (received: unknown, worker: WorkerId) => MatcherResult;
  /** See `KvrouteMatchers.toSelectOneOf`. */
  readonly toSelectOneOf: (received: unknown, workers: readonly WorkerId[]) => MatcherResult;
  /** See `KvrouteMatchers.toSelectNobody`. */
  readonly toSelectNobody: (received: unknown, reason?: SelectionReason) => MatcherResult;
  /** See `KvrouteMatchers.toHaveBranch`. */
  readonly toHaveBranch: (received: unknown, branch: string) => MatcherResult;
  /** See `KvrouteMatchers.toReach`. */
  readonly toReach: (received: unknown, workers: readonly WorkerId[]) => MatcherResult;
} = {
  toSelect: (received, worker) => {
    const outcome = outcomeOf(received);
    checkText(worker, 'worker');
    return result(outcome.worker === worker, `${worker} to be selected`, describe(outcome));
  },
  toSelectOneOf: (received, workers) => {
    const outcome = outcomeOf(received);
    for (const worker of checkList(workers, 'workers')) checkText(worker, 'workers');
    const pass = outcome.worker !== undefined && workers.includes(outcome.worker);
    return result(pass, `one of ${list(workers)} to be selected`, describe(outcome));
  },
  toSelectNobody: (received, reason) => {
    const outcome = outcomeOf(received);
    if (reason !== undefined) checkText(reason, 'reason');
    const pass = outcome.worker === undefined && (reason === undefined || outcome.reason === reason);
    return result(pass, `nobody to be selected${reason === undefined ? '' : ` (${reason})`}`, describe(outcome));
  },
  toHaveBranch: (received, branch) => {
    const outcome = outcomeOf(received);
    checkText(branch, 'branch');
    return result(outcome.record.branch === branch, `the branch ${branch}`, describe(outcome));
  },
  toReach: (received, workers) => {
    const { reachable, nobody } = distributionOf(received);
    for (const worker of checkList(workers, 'workers')) checkText(worker, 'workers');
    const wanted = new Set(workers);
    const pass = reachable.length === wanted.size && reachable.every((id) => wanted.has(id)) && nobody === 0;
    const missing = [...wanted].filter((id) => !reachable.includes(id));
    const surplus = reachable.filter((id) => !wanted.has(id));
    const remarks = [
      ...(missing.length === 0 ? [] : [`never ${list(missing)}`]),
      ...(surplus.length === 0 ? [] : [`also ${list(surplus)}`]),
      ...(nobody === 0 ? [] : [`${nobody} times nobody`]),
    ];
    const seen = `${list(reachable)}${remarks.length === 0 ? '' : ` (${remarks.join('; ')})`}`;
    return result(pass, `exactly ${list(workers)} to be reachable`, seen);
  },
};

function checkText(value: unknown, field: string): void {
  if (typeof value !== 'string') throw refuse(field, 'a string', value);
}

interface Outcome {
  /** Undefined when nobody was selected. */
  readonly worker: WorkerId | undefined;
  readonly reason: string | undefined;
  readonly record: DecisionRecord;
}

/** @throws TypeError when it is no outcome of a selection */
function outcomeOf(received: unknown): Outcome {
  const { ok, worker, reason, record } = (received ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof record === 'object' && record !== null) {
    const id = typeof worker === 'string' ? worker : (worker as { readonly id?: unknown } | undefined)?.id;
    if (ok === true && typeof id === 'string')
      return { worker: id, reason: undefined, record: record as DecisionRecord };
    if (ok === false && typeof reason === 'string') {
      return { worker: undefined, reason, record: record as DecisionRecord };
    }
  }
  throw new TypeError('expected the result of selectWorker or acquire, or the selection of an explanation');
}

/** @throws TypeError when it is no distribution */
function distributionOf(received: unknown): Distribution {
  const { reachable, nobody } = (received ?? {}) as Partial<Distribution>;
  if (Array.isArray(reachable) && typeof nobody === 'number') return received as Distribution;
  throw new TypeError('expected the result of distribution');
}

function describe({ worker, reason, record }: Outcome): string {
  const { policy, branch, expectedWaitSeconds, inFlight } = record;
  const details = [
    branch === undefined ? policy : `${policy}, branch ${branch}`,
    ...(expectedWaitSeconds === undefined ? [] : [`expected wait ${expectedWaitSeconds} s`]),
    ...(inFlight === undefined ? [] : [`${inFlight} in flight`]),
  ].join(', ');
  return worker === undefined ? `nobody: ${reason} (${details})` : `${worker} (${details})`;
}

function list(ids: readonly WorkerId[]): string {
  return ids.length === 0 ? 'nobody' : ids.join(', ');
}

function result(pass: boolean, wanted: string, got: string): MatcherResult {
  return { pass, message: () => `expected ${pass ? 'anything but ' : ''}${wanted}, got ${got}` };
}
