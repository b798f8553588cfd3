/** Router-level `explain` and `rank` (LB-12 to LB-14): decisions that are not committed, with everything they rest on. */
import type { RouterCore } from './core.js';
import { type Attempt, decide, emptyOutcome, recordOfAttempt, workerOf } from './decide.js';
import type { RequestView } from './request.js';
import { forkOf } from './runtime/random.js';
import type { Exclusion, Explanation, WorkerStanding } from './selection.js';
import type { WorkerId } from './workers/candidate.js';
import type { WorkerState } from './workers/worker.js';

/** What `selectWorker` would do now, and why. Changes nothing; draws from a fork. */
export function explain(
  core: RouterCore,
  view: RequestView,
  now: number,
  narrowed: ReadonlySet<WorkerId> | undefined,
): Explanation {
  const attempt = decide(core, view, now, forkOf(core.random, core.spareRandom), { narrowed });
  const { decision, candidates, ctx, scope } = attempt;
  const worker = workerOf(decision);
  return {
    selection:
      worker === undefined
        ? emptyOutcome(core, attempt)
        : { ok: true, worker: worker.id, record: recordOfAttempt(attempt) },
    workers: standings(attempt),
    policy: scope.pool.policy.describe?.(view, candidates, ctx, decision) ?? {},
  };
}

/** The workers in the order in which repeated decisions would choose them, each excluding those before it (LB-14). */
export function rank(
  core: RouterCore,
  view: RequestView,
  now: number,
  narrowed: ReadonlySet<WorkerId> | undefined,
  limit: number,
): WorkerId[] {
  const random = forkOf(core.random, core.spareRandom);
  const ranked: WorkerId[] = [];
  while (ranked.length < limit) {
    const exclude = [...(view.exclude ?? []), ...ranked];
    const { worker } = decide(core, view, now, random, { narrowed, exclude }).decision;
    if (worker === undefined) break;
    ranked.push(worker.id);
  }
  return ranked;
}

/** Every registered worker of the pool, with the reasons that kept it out. */
function standings({ scope, narrowed, view, ctx }: Attempt): WorkerStanding[] {
  const excluded = new Set(view.exclude);
  const all: WorkerStanding[] = [];
  for (const worker of scope.pool.all.members()) {
    const exclusions = [...unavailability(worker, ctx.now)];
    if (narrowed !== undefined && !narrowed.has(worker.id)) exclusions.push({ by: 'candidates' });
    if (scope.list !== scope.pool.all && !scope.list.has(worker.id)) exclusions.push({ by: 'scope' });
    if (excluded.has(worker.id)) exclusions.push({ by: 'exclude' });
    all.push({ worker: worker.id, candidate: exclusions.length === 0, exclusions });
  }
  return all;
}

function* unavailability(worker: WorkerState, now: number): IterableIterator<Exclusion> {
  if (worker.status !== 'ready') yield { by: 'status', status: worker.status };
  if (!worker.breaker.allows(now)) yield { by: 'breaker', retryInMs: worker.breaker.halfOpenAt - now };
  const veto = worker.vetoAt(now);
  if (veto !== undefined) yield { by: 'overload', ...veto };
}
