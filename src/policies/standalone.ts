/**
 * A policy used without a router (LB-10a): candidates are plain literals, so that a routing decision is unit-tested in
 * five lines. What outlasts a call is kept per id, in the order in which ids were first given, until `forget`. A call
 * is O(n) in the candidates; while the list of ids stays the same, its candidate set is reused.
 */
import { checkObject } from '../errors.js';
import { creditTokensOf } from '../load/credit.js';
import { resolveOptions } from '../options/validate.js';
import { RequestView, type RouteRequest } from '../request.js';
import { type Clock, ElapsedTime } from '../runtime/clock.js';
import { TimeBudget } from '../runtime/maintenance-budget.js';
import { forkOf, type RandomSource, seededRandom } from '../runtime/random.js';
import {
  type DecisionRecord,
  type Explanation,
  type NotSelected,
  notSelected,
  recordOf,
  type WorkerStanding,
} from '../selection.js';
import type { Candidate, WorkerId } from '../workers/candidate.js';
import { CandidateSet, noCandidates } from '../workers/candidate-set.js';
import { unknownModel } from '../workers/worker-spec.js';
import { checkCandidates } from './candidate-check.js';
import type { Decision, DecisionContext, Policy, RingLookup } from './policy.js';
import { checkedPolicy } from './policy-check.js';
import { clockOf, type GivenRuntime, type RuntimeOptions, randomOf, ringOf, runtimeTable } from './runtime-options.js';
import { TrackedCandidate } from './tracked-candidate.js';

/** A worker was selected: the caller's own literal. */
export interface StandaloneSelected<C extends Candidate> {
  /** Tells it from `NotSelected`. */
  readonly ok: true;
  /** The literal as it was given, with whatever else it holds. */
  readonly worker: C;
  /** How the decision came about (LB-11). */
  readonly record: DecisionRecord;
}

/** The outcome of a policy used alone. */
export type StandaloneSelection<C extends Candidate> = StandaloneSelected<C> | NotSelected;

/** A policy used without a router. */
export interface StandalonePolicy {
  /** One of the ten names, or a custom policy's own. */
  readonly name: string;
  /**
   * Chooses one of the candidates and commits the decision: decide and record in one synchronous step (LB-12). The
   * caller has already left out workers that are not available; it counts in-flight requests itself.
   *
   * @param request model `unknown` and leg `single` unless it says otherwise; its `exclude` applies (LB-14a)
   * @param candidates in a stable order, ids distinct; what they say is read anew on every call
   * @throws TypeError for a request field or a candidate of the wrong type, before anything changed (LB-42)
   */
  selectWorker<C extends Candidate>(request: RouteRequest, candidates: readonly C[]): StandaloneSelection<C>;
  /** The decision `selectWorker` would make, with its reasons; nothing changes and no random number is used up (LB-12). */
  explain(request: RouteRequest, candidates: readonly Candidate[]): Explanation;
  /** Drops everything kept for a worker, as removal from a router does (LB-30). Unknown ids are ignored. */
  forget(id: WorkerId): void;
  /** Periodic work that is due, about 1 ms of it; returns whether work is left. Results never depend on it (LB-5). */
  maintain(): boolean;
  /** The same policy with a combinator around it, such as the one of `stickySessions`; to be used in place of this. */
  wrap(combinator: (policy: Policy) => Policy): StandalonePolicy;
}

/** A ring over the ids that `standalone` knows. */
export interface MemberRing extends RingLookup {
  /** Puts a worker on the ring; one that is on it stays as it is. */
  add(id: WorkerId): void;
  /** Takes a worker off; unknown ids are ignored. */
  remove(id: WorkerId): void;
}

/** Time one `maintain` call may take, milliseconds (LB-5). */
const maintenanceBudgetMs = 1;

/**
 * Makes a policy usable by itself: one of your own, as the built-in ones are (LB-10a).
 *
 * @param options runtime options; every one is optional
 * @param ring for policies that need one: a `MemberRing` follows the ids given, any other is only looked up in. Default:
 * the option of that name
 * @throws RoutingConfigError for an option that cannot be used
 */
export function standalone(
  policy: Policy,
  options: RuntimeOptions | GivenRuntime = {},
  ring: RingLookup | MemberRing | undefined = checkObject(options).ring as RingLookup | undefined,
): StandalonePolicy {
  const { clock, random, seed, loadReportMaxAgeMs } = checkObject(options);
  const given = resolveOptions(runtimeTable, { clock, random, seed, loadReportMaxAgeMs });
  return new Standalone(checkedPolicy(policy), {
    clock: clockOf(given),
    random: randomOf(given),
    reportMaxAgeMs: given.loadReportMaxAgeMs,
    ring: ringOf({ ring }),
  });
}

/** What a policy used alone works with; a combinator around it goes on with the same. */
interface Surroundings {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly reportMaxAgeMs: number;
  readonly ring: RingLookup | MemberRing | undefined;
}

class Standalone implements StandalonePolicy {
  readonly #policy: Policy;
  readonly #around: Surroundings;
  readonly #time: ElapsedTime;
  // What `explain` draws from when the generator cannot fork (LB-12).
  readonly #spareRandom = seededRandom('explain');
  /** The ring, when it is one that follows the ids given. */
  readonly #memberRing: MemberRing | undefined;
  readonly #tracked = new Map<WorkerId, TrackedCandidate>();
  /** The candidates of the last call; reused while the same ids come in the same order. */
  #workers: readonly TrackedCandidate[] = [];
  #candidates: CandidateSet = noCandidates;

  constructor(policy: Policy, around: Surroundings) {
    this.#policy = policy;
    this.#around = around;
    this.#time = new ElapsedTime(around.clock);
    const { ring } = around;
    this.#memberRing = ring !== undefined && 'add' in ring ? ring : undefined;
  }

  get name(): string {
    return this.#policy.name;
  }

  selectWorker<C extends Candidate>(request: RouteRequest, candidates: readonly C[]): StandaloneSelection<C> {
    const view = new RequestView(request);
    checkCandidates(candidates, this.#workers);
    this.#time.advance();
    const available = this.#observe(candidates);
    const eligible = available.without(view.exclude ?? []);
    const ctx = this.#contextOf(view, available, this.#around.random);
    const decision = this.#policy.decide(view, eligible, ctx);
    this.#policy.record?.(view, decision, ctx);
    const record = recordOf(decision, this.#policy.name, ctx.model, ctx.leg);
    const worker = decision.worker && this.#tracked.get(decision.worker.id);
    if (worker === undefined) return this.#nothing(decision, available.size - eligible.size, record);
    worker.creditTokens += creditTokensOf(view.tokens, this.#policy.meanPrefillTokens);
    worker.creditRequests += 1;
    return { ok: true, worker: candidates[worker.position] as C, record };
  }

  explain(request: RouteRequest, candidates: readonly Candidate[]): Explanation {
    const view = new RequestView(request);
    checkCandidates(candidates, this.#workers);
    this.#time.advance();
    const newcomers = candidates.filter(({ id }) => !this.#tracked.has(id));
    for (const { id } of newcomers) this.#memberRing?.add(id);
    try {
      return this.#explain(view, new CandidateSet(candidates.map((candidate, i) => this.#preview(candidate, i))));
    } finally {
      for (const { id } of newcomers) this.#memberRing?.remove(id);
    }
  }

  forget(id: WorkerId): void {
    if (!this.#tracked.delete(id)) return;
    this.#policy.workerRemoved?.(id, this.#time.advance());
    this.#memberRing?.remove(id);
    this.#workers = [];
    this.#candidates = noCandidates;
  }

  maintain(): boolean {
    return (
      this.#policy.maintain?.(this.#time.advance(), new TimeBudget(this.#around.clock, maintenanceBudgetMs)) ?? false
    );
  }

  wrap(combinator: (policy: Policy) => Policy): StandalonePolicy {
    return new Standalone(checkedPolicy(combinator(this.#policy)), this.#around);
  }

  /** Takes over what the literals say and registers the ids that are new. */
  #observe(candidates: readonly Candidate[]): CandidateSet {
    const { reportMaxAgeMs } = this.#around;
    const workers: TrackedCandidate[] = new Array(candidates.length);
    let inFlight = 0;
    let sameWorkers = candidates.length === this.#workers.length;
    for (let i = 0; i < candidates.length; i++) {
      const candidate = candidates[i] as Candidate;
      const worker = this.#tracked.get(candidate.id) ?? this.#register(candidate.id);
      worker.update(candidate, i, this.#time, reportMaxAgeMs);
      workers[i] = worker;
      inFlight += worker.inFlight;
      sameWorkers &&= worker === this.#workers[i];
    }
    if (sameWorkers) {
      this.#candidates.inFlight = inFlight;
    } else {
      this.#workers = workers;
      this.#candidates = new CandidateSet(workers, inFlight);
    }
    return this.#candidates;
  }

  #register(id: WorkerId): TrackedCandidate {
    const worker = new TrackedCandidate(id);
    this.#tracked.set(id, worker);
    this.#memberRing?.add(id);
    this.#policy.workerAdded?.(id, this.#time.now);
    return worker;
  }

  #preview(candidate: Candidate, position: number): TrackedCandidate {
    const preview = this.#tracked.get(candidate.id)?.clone() ?? new TrackedCandidate(candidate.id);
    preview.update(candidate, position, this.#time, this.#around.reportMaxAgeMs);
    return preview;
  }

  #explain(view: RequestView, available: CandidateSet): Explanation {
    const eligible = available.without(view.exclude ?? []);
    const ctx = this.#contextOf(view, available, forkOf(this.#around.random, this.#spareRandom));
    const decision = this.#policy.decide(view, eligible, ctx);
    const record = recordOf(decision, this.#policy.name, ctx.model, ctx.leg);
    return {
      selection:
        decision.worker === undefined
          ? this.#nothing(decision, available.size - eligible.size, record)
          : { ok: true, worker: decision.worker.id, record },
      workers: available.workers.map((worker) => standingOf(worker.id, eligible)),
      policy: this.#policy.describe?.(view, eligible, ctx, decision) ?? {},
    };
  }

  #contextOf(view: RequestView, available: CandidateSet, random: RandomSource): DecisionContext {
    return {
      now: this.#time.now,
      random,
      model: view.model ?? unknownModel,
      leg: view.leg ?? 'single',
      ring: this.#around.ring,
      available,
    };
  }

  #nothing(decision: Decision, excluded: number, record: DecisionRecord): NotSelected {
    return notSelected(decision.reason ?? 'no_available_workers', excluded, record);
  }
}

function standingOf(worker: WorkerId, eligible: CandidateSet): WorkerStanding {
  const candidate = eligible.has(worker);
  return { worker, candidate, exclusions: candidate ? [] : [{ by: 'exclude' }] };
}
