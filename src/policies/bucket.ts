/**
 * `bucket`: each worker owns a range of request sizes, so that short and long prompts do not queue behind each other;
 * ranges follow the traffic of the last five seconds (bucket-pool.ts). When the units routed in that time are too
 * uneven, or the owner is not available, the candidate with the fewest takes the request (BU-6, BU-14). O(n).
 *
 * Sizes are tokens when the request has token ids, else characters (BU-3). Loads are what was routed, never what
 * engines report (BU-8).
 */
import type { BucketOptions } from '../options/policy-options.js';
import type { Resolved } from '../options/spec.js';
import { bucketTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';
import type { RequestView } from '../request.js';
import { type RandomSource, randomIndex } from '../runtime/random.js';
import { countCodePoints } from '../runtime/text.js';
import type { WorkerId, WorkerSignals } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import { type BucketMember, BucketPool } from './bucket-pool.js';
import type { PolicyExplanation } from './explanation.js';
import { Decision, type DecisionContext, type Policy, type PolicyNeeds } from './policy.js';
import { type RuntimeOptions, runtimeTable } from './runtime-options.js';
import { type StandalonePolicy, standalone } from './standalone.js';

type Settings = Pick<Resolved<typeof bucketTable>, 'balanceAbsThreshold' | 'balanceRelThreshold'>;

/** The policy of one pool (BU-2). */
export function createBucket(settings: Settings): Policy {
  return new Bucket(settings);
}

/**
 * `bucket` without a router: ranges of request sizes over the ids it is given (BU-4 to BU-10), whatever `legs` says.
 *
 * @throws RoutingConfigError for an unknown or invalid option
 */
export function bucket(options?: BucketOptions & RuntimeOptions): StandalonePolicy {
  const resolved = resolveOptions({ ...bucketTable, ...runtimeTable }, options);
  return standalone(createBucket(resolved), resolved);
}

/** What the ranges and the gate say about a size. */
interface Assessment {
  readonly owner: BucketMember | undefined;
  readonly imbalanced: boolean;
}

class Bucket implements Policy {
  readonly name = 'bucket';
  readonly needs: PolicyNeeds = { text: true };
  readonly #pool = new BucketPool();
  #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  decide(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision {
    this.#pool.settle(ctx.now);
    const size = sizeOf(request);
    const { members, ofCandidates } = this.#pool.viewOf(candidates);
    const { owner, imbalanced } = this.#assess(size, members);
    const owning = imbalanced || owner === undefined ? undefined : candidates.get(owner.id);
    const decision = new Decision(owning ?? leastRouted(candidates.workers, ofCandidates, ctx.random));
    decision.note = size;
    return decision;
  }

  record(_request: RequestView, { worker, note }: Decision, ctx: DecisionContext): void {
    // Only the worker returned is accounted (BU-14).
    if (worker !== undefined) this.#pool.account(worker.id, note as number, ctx.now);
  }

  describe(
    _request: RequestView,
    candidates: CandidateSet,
    _ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation {
    const size = decision.note as number;
    const { members, ofCandidates } = this.#pool.viewOf(candidates);
    const { owner, imbalanced } = this.#assess(size, members);
    const isOwned = !imbalanced && owner !== undefined && candidates.has(owner.id);
    const fewest = fewestRouted(ofCandidates);
    return {
      bucket: {
        size,
        owner: owner?.id,
        imbalanced,
        routed: members.map(({ id, routed }) => ({ worker: id, units: routed })),
      },
      tieSet: isOwned ? [owner.id] : ofCandidates.filter(({ routed }) => routed === fewest).map(({ id }) => id),
    };
  }

  configure(options: object): void {
    this.#settings = options as Settings;
  }

  workerAdded(id: WorkerId, now: number): void {
    this.#pool.add(id, now);
  }

  workerRemoved(id: WorkerId, now: number): void {
    this.#pool.remove(id, now);
  }

  maintain(now: number): boolean {
    this.#pool.settle(now);
    return false;
  }

  /** Owner by range, and the gate over all members, available or not; both comparisons strict (BU-6). */
  #assess(size: number, members: readonly BucketMember[]): Assessment {
    const { balanceAbsThreshold, balanceRelThreshold } = this.#settings;
    let owner: BucketMember | undefined;
    let most = 0;
    let fewest = Infinity;
    for (let i = 0; i < members.length; i++) {
      const member = members[i] as BucketMember;
      if (member.low <= size) owner = member;
      if (member.routed > most) most = member.routed;
      if (member.routed < fewest) fewest = member.routed;
    }
    return { owner, imbalanced: most - fewest > balanceAbsThreshold && most > balanceRelThreshold * fewest };
  }
}

/** The candidate with the fewest units in the window, ties uniform. `members` stand for `workers`, one by one. */
function leastRouted(
  workers: readonly WorkerSignals[],
  members: readonly BucketMember[],
  random: RandomSource,
): WorkerSignals | undefined {
  const fewest = fewestRouted(members);
  let ties = 0;
  for (let i = 0; i < members.length; i++) if (members[i]?.routed === fewest) ties += 1;
  let left = ties > 1 ? randomIndex(random, ties) : 0;
  for (let i = 0; i < members.length; i++) if (members[i]?.routed === fewest && left-- === 0) return workers[i];
  return undefined;
}

function fewestRouted(members: readonly BucketMember[]): number {
  let fewest = Infinity;
  for (let i = 0; i < members.length; i++) {
    const { routed } = members[i] as BucketMember;
    if (routed < fewest) fewest = routed;
  }
  return fewest;
}

/** Token ids when the list is present, even empty; else characters of the text; else 0 (BU-3). */
function sizeOf(request: RequestView): number {
  const { tokens } = request;
  if (tokens !== undefined) return tokens.length;
  const { text } = request;
  return text === undefined ? 0 : countCodePoints(text);
}
