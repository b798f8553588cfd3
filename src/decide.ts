/**
 * One decision of the router, in the two halves of LB-12: `decide` finds the pool, its cached available list and asks
 * the policy, changing nothing; `commit` records what was decided and credits the worker.
 */
import type { RouterCore } from './core.js';
import { refuse } from './errors.js';
import { creditTokensOf } from './load/credit.js';
import type { Decision, DecisionContext, Leg } from './policies/policy.js';
import type { Scope } from './pools.js';
import type { RequestView } from './request.js';
import type { RandomSource } from './runtime/random.js';
import { type DecisionRecord, type NotSelected, notSelected, recordOf, type SelectionReason } from './selection.js';
import type { WorkerId } from './workers/candidate.js';
import type { CandidateSet } from './workers/candidate-set.js';
import { emptySelection, shedRetryAfterMs } from './workers/overload.js';
import type { WorkerState } from './workers/worker.js';

/** Which of a pool's workers a caller wants considered: ids, or anything that carries one (LB-10). */
export type CandidateFilter = readonly (WorkerId | { readonly id: WorkerId })[];

/** One decision that is not committed yet, and everything it was made of. */
export interface Attempt {
  readonly view: RequestView;
  readonly scope: Scope;
  /** Ids the caller narrowed the pool to; undefined = the whole pool. */
  readonly narrowed: ReadonlySet<WorkerId> | undefined;
  /** After availability and narrowing, before `exclude`. */
  readonly available: CandidateSet;
  readonly candidates: CandidateSet;
  readonly ctx: DecisionContext;
  readonly decision: Decision;
}

/** The ids of a caller's candidates. @throws TypeError on `candidates` */
export function checkCandidates(candidates: CandidateFilter | undefined): ReadonlySet<WorkerId> | undefined {
  if (candidates === undefined) return undefined;
  if (!Array.isArray(candidates)) throw refuse('candidates', 'an array of worker ids or workers', candidates);
  const ids = new Set<WorkerId>();
  for (const candidate of candidates as readonly unknown[]) {
    const id = typeof candidate === 'object' && candidate !== null ? (candidate as { id?: unknown }).id : candidate;
    if (typeof id !== 'string') throw refuse('candidates', 'worker ids or workers', candidate);
    ids.add(id);
  }
  return ids;
}

/** The leg of a request that names none is `single`; a router with legs needs to be told. @throws TypeError on `leg` */
function legOf(core: RouterCore, view: RequestView): Leg {
  const leg = view.leg ?? (core.plan.options.mode === 'regular' ? 'single' : undefined);
  if (leg !== undefined && core.plan.legs.includes(leg)) return leg;
  throw refuse('leg', `one of ${core.plan.legs.join(', ')} (mode ${core.plan.options.mode})`, leg);
}

/** What a decision draws from beside the request. */
export interface DrawFrom {
  /** Default: the pool of the request. */
  readonly scope?: Scope | undefined;
  readonly narrowed?: ReadonlySet<WorkerId> | undefined;
  /** Default: the request's own exclusions. */
  readonly exclude?: readonly WorkerId[] | undefined;
}

/** Decides, changing nothing but the generator it draws from. */
export function decide(
  core: RouterCore,
  view: RequestView,
  now: number,
  random: RandomSource,
  { scope = scopeOf(core, view), narrowed, exclude = view.exclude }: DrawFrom,
): Attempt {
  const all = scope.list.current(now);
  const available = narrowed === undefined ? all : all.only(narrowed);
  const candidates = exclude === undefined ? available : available.without(exclude);
  const { pool } = scope;
  const ctx: DecisionContext = { now, random, model: pool.model, leg: pool.leg, ring: pool.ring, available };
  return { view, scope, narrowed, available, candidates, ctx, decision: pool.policy.decide(view, candidates, ctx) };
}

/** The pool and list a request draws from. @throws TypeError on `leg` */
export function scopeOf(core: RouterCore, view: RequestView): Scope {
  // `legOf` has checked that the router has the leg, and every leg has its pool `unknown`.
  return core.pools.scope(view.model, legOf(core, view)) as Scope;
}

/** Records the decision in the policy, also when it selected nothing (ST-35a), and credits the worker (EW-12, EW-17). */
export function commit(attempt: Attempt): void {
  const { view, decision, ctx, scope } = attempt;
  const { policy } = scope.pool;
  policy.record?.(view, decision, ctx);
  const worker = workerOf(decision);
  if (worker === undefined) return;
  worker.creditTokens += creditTokensOf(view.tokens, policy.meanPrefillTokens);
  worker.creditRequests += 1;
  worker.selections += 1;
}

export function recordOfAttempt({ decision, scope: { pool } }: Attempt): DecisionRecord {
  return recordOf(decision, pool.policy.name, pool.model, pool.leg);
}

/** The outcome of an attempt that selected nothing. */
export function emptyOutcome(core: RouterCore, attempt: Attempt): NotSelected {
  const excluded = attempt.available.size - attempt.candidates.size;
  const record = recordOfAttempt(attempt);
  const reason = reasonOf(attempt);
  if (reason !== 'overloaded') return notSelected(reason, excluded, record);
  const interval = core.plan.options.loadMonitorIntervalMs;
  return notSelected(reason, excluded, record, {
    stage: 'selection',
    retryAfterMs: shedRetryAfterMs(membersOf(attempt), interval),
  });
}

/** The pool is judged as it was before availability and exclusion (OV-20). */
function reasonOf(attempt: Attempt): SelectionReason {
  if (attempt.candidates.size > 0) return attempt.decision.reason ?? 'no_available_workers';
  if (attempt.available.size > 0) return 'no_available_workers';
  return emptySelection(overloadedFlags(membersOf(attempt), attempt.ctx.now));
}

function* overloadedFlags(members: Iterable<WorkerState>, now: number): IterableIterator<{ overloaded: boolean }> {
  for (const worker of members) yield { overloaded: worker.vetoAt(now) !== undefined };
}

/** Registered workers of the scope that the caller did not narrow away. */
function membersOf(attempt: Attempt): WorkerState[] {
  const members = [...attempt.scope.list.members()];
  const { narrowed } = attempt;
  return narrowed === undefined ? members : members.filter(({ id }) => narrowed.has(id));
}

/** The worker a decision chose: the signals that a router hands to policies are always its own `WorkerState`s. */
export function workerOf(decision: Decision): WorkerState | undefined {
  return decision.worker as WorkerState | undefined;
}
