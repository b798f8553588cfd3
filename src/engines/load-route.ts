/**
 * What an answer of a native load route means, and which routes of a worker are worth asking (LR-10, LR-11). Pure: the
 * host does the asking and keeps one memo for each worker, dropped when the worker is removed or replaced or leaves
 * ready. "Not there" is remembered; "did not answer" never is (B44).
 */
import { checkList, checkObject } from '../errors.js';
import type { RankedLoadReport } from '../load/report.js';
import type { NoReportReason } from './load-result.js';
import { parseLoadReport } from './parse-load-report.js';

/**
 * - `report`: the report.
 * - `absent`: the worker has no such route; remember it.
 * - `inconclusive`: nothing learned; use the fallback now and ask again at the next poll.
 *
 * Without a report both fall through to the engine's metrics in the same poll (LR-12). `reason` is set when a 2xx body
 * was read.
 */
export type LoadRouteOutcome =
  | { readonly outcome: 'report'; readonly report: RankedLoadReport }
  | {
      readonly outcome: 'absent' | 'inconclusive';
      readonly reason?: NoReportReason | undefined;
      readonly detail?: string | undefined;
    };

/**
 * Reads the answer of a native load route (LR-11).
 *
 * 404, 405, 501 and a 2xx of another schema mean `absent`. Any other status, no answer, a list without ranks, and a body
 * of the right schema with impossible values (LR-11a) are `inconclusive`.
 *
 * @param status the HTTP status; undefined when there was no answer (time-out, transport error)
 * @param body the body as text, bytes or parsed JSON; read only after a 2xx
 */
export function readLoadResponse(status: number | undefined, body?: unknown): LoadRouteOutcome {
  if (status === 404 || status === 405 || status === 501) return { outcome: 'absent' };
  if (typeof status !== 'number' || !(status >= 200 && status < 300)) return { outcome: 'inconclusive' };
  const result = parseLoadReport('sglang_loads', body);
  if (result.ok) return { outcome: 'report', report: result.report };
  const { reason, detail } = result;
  return { outcome: reason === 'not_a_report' ? 'absent' : 'inconclusive', reason, detail };
}

/** What is known of one worker's load routes. Plain data; start from `unknownLoadRoutes`. */
export interface LoadRouteMemo {
  /** The route that last gave a report. */
  readonly answered?: string | undefined;
  /** Routes the worker does not have. */
  readonly absent: readonly string[];
}

/** The memo of a worker that was never asked. */
export const unknownLoadRoutes: LoadRouteMemo = { absent: [] };

/**
 * The routes to ask in this poll, in order: the one that answered before, else all that are not known to be absent.
 *
 * @throws TypeError naming the argument of another shape
 */
export function loadRoutesToAsk(memo: LoadRouteMemo, routes: readonly string[]): readonly string[] {
  const { answered } = checkObject(memo, 'memo');
  const absent = checkList(memo.absent, 'memo.absent');
  checkList(routes, 'routes');
  if (answered !== undefined && routes.includes(answered)) return [answered];
  return routes.filter((route) => !absent.includes(route));
}

/**
 * The memo after `route` gave `outcome`; the same object when nothing was learned.
 *
 * @throws TypeError naming the argument of another shape
 */
export function rememberLoadRoute(memo: LoadRouteMemo, route: string, outcome: LoadRouteOutcome): LoadRouteMemo {
  const absent = checkList(checkObject(memo, 'memo').absent, 'memo.absent');
  if (checkObject(outcome, 'outcome').outcome === 'inconclusive') return memo;
  if (outcome.outcome === 'report') {
    return memo.answered === route ? memo : { answered: route, absent: absent.filter((known) => known !== route) };
  }
  const answered = memo.answered === route ? undefined : memo.answered;
  return { answered, absent: absent.includes(route) ? absent : [...absent, route] };
}
