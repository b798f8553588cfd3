/**
 * `bucket`: each worker owns a range of request sizes, so that short and long prompts do not queue behind each other;
 * ranges follow the traffic of the last five seconds. When the units routed in that time are too uneven, or the owner is
 * not available, the candidate with the fewest takes the request (BU-6, BU-14). O(n).
 *
 * A check of the ranges is due every five seconds from the first worker on, and is made as of the instant it was due, by
 * whichever call comes first: results never depend on when maintenance ran (LB-5). Sizes are tokens when the request
 * has token ids, else characters (BU-3).
 */
import type { OptionsOf, Resolved } from '../options/spec.js';
import { bucketTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';
import type { RequestView } from '../request.js';
import { randomIndex } from '../runtime/random.js';
import { countCodePoints } from '../runtime/text.js';
import type { WorkerId, WorkerSignals } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import { bucketRecompute, initialBucketRanges } from './bucket-boundaries.js';
import { BucketWindow, type RoutedShare } from './bucket-window.js';
import type { PolicyExplanation } from './explanation.js';
import { Decision, type DecisionContext, type Policy, type PolicyNeeds } from './policy.js';
import { type RuntimeOptions, runtimeTable } from './runtime-options.js';
import { type StandalonePolicy, standalone } from './standalone.js';

/** Options of `bucket`. `legs` matters to the router only: used alone, a bucket policy always has ranges. */
export type BucketOptions = OptionsOf<typeof bucketTable>;

type Settings = Pick<Resolved<typeof bucketTable>, 'balanceAbsThreshold' | 'balanceRelThreshold'>;

/** Interval of the checks, milliseconds (BU-9, CF-110). */
const checkIntervalMs = 5000;

export function createBucket(settings: Settings): Policy {
  return new Bucket(settings);
}

/**
 * `bucket` without a router: ranges of request sizes over the ids it is given (BU-4 to BU-10).
 *
 * @throws RoutingConfigError for an unknown or invalid option
 */
export function bucket(options?: BucketOptions & RuntimeOptions): StandalonePolicy {
  const resolved = resolveOptions({ ...bucketTable, ...runtimeTable }, options);
  return standalone(createBucket(resolved), resolved);
}

/** A worker of the pool, the lower end of its range and the units routed to it within the window. */
interface Member extends RoutedShare {
  readonly id: WorkerId;
  low: number;
}

/** What the ranges and the gate say about a size. */
interface Assessment {
  readonly owner: Member | undefined;
  readonly imbalanced: boolean;
}

class Bucket implements Policy {
  readonly name = 'bucket';
  readonly needs: PolicyNeeds = { text: true };
  #settings: Settings;
  /** In registration order; ranges ascend with it, each up to the next one's lower end. */
  #members: Member[] = [];
  readonly #byId = new Map<WorkerId, Member>();
  readonly #window = new BucketWindow();
  /** Whether the even split is due: made by the next call that reads it, so that n registrations cost O(n). */
  #splitDue = false;
  #share = 0;
  /** Router time of the first registration, and how many check instants have passed since. */
  #startedAt = Infinity;
  #checks = 0;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  decide(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision {
    this.#settle(ctx.now);
    const size = sizeOf(request);
    const { owner, imbalanced } = this.#assess(size, this.#membersWith(candidates));
    const owning = imbalanced || owner === undefined ? undefined : candidates.get(owner.id);
    const decision = new Decision(owning ?? this.#leastRouted(candidates, ctx));
    decision.note = size;
    return decision;
  }

  record(_request: RequestView, decision: Decision, ctx: DecisionContext): void {
    // Only the worker returned is accounted (BU-14).
    if (decision.worker === undefined) return;
    this.#window.push(decision.note as number, ctx.now, this.#byId.get(decision.worker.id));
  }

  describe(
    _request: RequestView,
    candidates: CandidateSet,
    _ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation {
    const size = decision.note as number;
    const members = this.#membersWith(candidates);
    const { owner, imbalanced } = this.#assess(size, members);
    const owned = !imbalanced && owner !== undefined && candidates.has(owner.id);
    return {
      bucket: {
        size,
        owner: owner?.id,
        imbalanced,
        routed: members.map(({ id, routed }) => ({ worker: id, units: routed })),
      },
      tieSet: owned ? [owner.id] : this.#idlest(candidates).map(({ id }) => id),
    };
  }

  configure(options: object): void {
    this.#settings = options as Settings;
  }

  workerAdded(id: WorkerId, now: number): void {
    this.#settle(now);
    if (this.#byId.has(id)) return;
    if (this.#startedAt === Infinity) this.#startedAt = now;
    const member: Member = { id, low: 0, routed: 0 };
    this.#byId.set(id, member);
    this.#members.push(member);
    this.#startAnew();
  }

  workerRemoved(id: WorkerId, now: number): void {
    this.#settle(now);
    if (!this.#byId.delete(id)) return;
    this.#members = this.#members.filter((member) => member.id !== id);
    this.#startAnew();
  }

  maintain(now: number): boolean {
    this.#settle(now);
    return false;
  }

  /** A membership that changed: an even split and nothing routed yet (BU-5, LM-37). */
  #startAnew(): void {
    this.#window.forgetOwners();
    this.#splitDue = true;
  }

  /** Brings ranges and window to the state of `now`. Doing it twice, or in two steps, changes nothing. */
  #settle(now: number): void {
    for (;;) {
      const dueAt = this.#startedAt + (this.#checks + 1) * checkIntervalMs;
      if (dueAt > now) break;
      this.#window.expire(dueAt);
      if (this.#window.length > 0) {
        this.#check();
        this.#checks += 1;
      } else {
        // Nothing to see before the next request: pass over the instants until now. Rounding must not stop the count.
        this.#checks = Math.max(this.#checks + 1, Math.floor((now - this.#startedAt) / checkIntervalMs));
      }
    }
    this.#window.expire(now);
  }

  #check(): void {
    const adjustment = bucketRecompute(this.#members.length, this.#window.sizes(), this.#share);
    if (adjustment === undefined) return;
    this.#share = adjustment.share;
    this.#splitDue = false;
    for (let i = 0; i < this.#members.length; i++) {
      (this.#members[i] as Member).low = adjustment.ranges[i]?.low ?? 0;
    }
  }

  /** The members; with candidates that were never registered, which `explain` may bring, a fleet that includes them. */
  #membersWith(candidates: CandidateSet): readonly Member[] {
    if (this.#splitDue) {
      this.#splitDue = false;
      splitEvenly(this.#members);
    }
    if (candidates.workers.every(({ id }) => this.#byId.has(id))) return this.#members;
    const ids = new Set(this.#byId.keys());
    for (const { id } of candidates.workers) ids.add(id);
    return splitEvenly(Array.from(ids, (id) => ({ id, low: 0, routed: 0 })));
  }

  #assess(size: number, members: readonly Member[]): Assessment {
    const { balanceAbsThreshold, balanceRelThreshold } = this.#settings;
    let owner: Member | undefined;
    let most = 0;
    let fewest = Infinity;
    for (let i = 0; i < members.length; i++) {
      const member = members[i] as Member;
      if (member.low <= size) owner = member;
      if (member.routed > most) most = member.routed;
      if (member.routed < fewest) fewest = member.routed;
    }
    return { owner, imbalanced: most - fewest > balanceAbsThreshold && most > balanceRelThreshold * fewest };
  }

  /** The candidate with the fewest units in the window, ties uniform (BU-6, BU-14). */
  #leastRouted(candidates: CandidateSet, ctx: DecisionContext): WorkerSignals | undefined {
    const idlest = this.#idlest(candidates);
    return idlest.length <= 1 ? idlest[0] : idlest[randomIndex(ctx.random, idlest.length)];
  }

  #idlest({ workers }: CandidateSet): WorkerSignals[] {
    const idlest: WorkerSignals[] = [];
    let fewest = Infinity;
    for (let i = 0; i < workers.length; i++) {
      const worker = workers[i] as WorkerSignals;
      const routed = this.#byId.get(worker.id)?.routed ?? 0;
      if (routed > fewest) continue;
      if (routed < fewest) idlest.length = 0;
      fewest = routed;
      idlest.push(worker);
    }
    return idlest;
  }
}

function splitEvenly(members: Member[]): Member[] {
  const ranges = initialBucketRanges(members.length);
  for (let i = 0; i < members.length; i++) (members[i] as Member).low = ranges[i]?.low ?? 0;
  return members;
}

/** Token ids when the list is present, even empty; else characters of the text; else 0 (BU-3). */
function sizeOf(request: RequestView): number {
  const { tokens } = request;
  if (tokens !== undefined) return tokens.length;
  const { text } = request;
  return text === undefined ? 0 : countCodePoints(text);
}
