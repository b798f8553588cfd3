/**
 * The contract of a policy. A policy chooses one of the candidates for one request. It decides first, changing
 * nothing, and records afterwards (LB-12); both happen in one synchronous step. Availability was applied before (WK-21),
 * credit is given after (EW-17): neither is a policy's business.
 *
 * Optional members instead of a base class; a combinator is a policy that holds a policy.
 */
import type { RequestView } from '../request.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { RandomSource } from '../runtime/random.js';
import type { WorkerId, WorkerSignals } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import type { PolicyExplanation } from './explanation.js';

export type { MaintenanceBudget } from '../runtime/maintenance-budget.js';

/** The ten policies (PO-3). */
export type PolicyName =
  | 'cache_aware'
  | 'least_load'
  | 'power_of_two'
  | 'consistent_hashing'
  | 'bucket'
  | 'passthrough'
  | 'prefix_hash'
  | 'manual'
  | 'round_robin'
  | 'random';

/** Which part of a disaggregated request is being placed (LM-1). */
export type Leg = 'single' | 'prefill' | 'decode' | 'encode';

/** What a policy reads. The router prepares nothing else, and a host can tell which requests it must parse (PO-5). */
export interface PolicyNeeds {
  /** The prompt text or the token ids. */
  readonly text?: boolean | undefined;
  /** The ring of the pool's registered workers (WK-61). */
  readonly ring?: boolean | undefined;
  /** Load reports; such policies are the load-aware ones of LR-26. */
  readonly reports?: boolean | undefined;
}

/** Finds the owner of a hash among eligible workers (WK-63). */
export interface RingLookup {
  /** The first eligible worker clockwise from `hash`, or undefined when none is eligible. */
  lookup(hash: bigint, isEligible: (id: WorkerId) => boolean): WorkerId | undefined;
}

/** The circumstances of one decision. */
export interface DecisionContext {
  /** Router time, milliseconds (LB-2). */
  readonly now: number;
  /** All chance comes from here (LB-3). */
  readonly random: RandomSource;
  /** The pool's model key; `unknown` when the request names none (WK-12). */
  readonly model: string;
  /** The pool's leg (LM-3). */
  readonly leg: Leg;
  /** Only for policies that need it. Holds every registered worker of the pool, available or not. */
  readonly ring: RingLookup | undefined;
  /** The candidates before `exclude` was applied; the candidates themselves when nothing was excluded (LB-14a). */
  readonly available: CandidateSet;
}

/** Why a policy selected nothing although it had candidates, or for want of them. */
export type NoneReason = 'no_available_workers' | 'waiting_cap' | 'target_worker_invalid';

/** What a policy decided. Created by `decide`, consumed by `record` and by the decision record (LB-11). */
export class Decision {
  /** The chosen candidate; undefined when nothing was selected. */
  worker: WorkerSignals | undefined;
  /** Set when nothing was selected. */
  reason: NoneReason | undefined = undefined;
  /** The path taken, one of the stable names of spec 09; undefined for policies without branches. */
  branch: string | undefined;
  /** Hash level: the boundary in tokens (PH-3, CA-71). */
  level: number | undefined = undefined;
  /** Matched share of the request, 0–1 (CA-33). */
  matchedRatio: number | undefined = undefined;
  /** The threshold it was compared with. */
  threshold: number | undefined = undefined;
  /** The winner's score in seconds; undefined in a dark fleet (LB-11). */
  expectedWaitSeconds: number | undefined = undefined;
  /** Where the routing key came from, when a key decided (ST-24). */
  source: 'rid' | 'header' | undefined = undefined;
  /** 16 hex digits that stand for the routing key (OB-93). */
  keyHash: string | undefined = undefined;
  /** The decision of the policy a combinator delegated to. */
  inner: Decision | undefined = undefined;
  /** A policy's private note from `decide` to `record`. */
  note: unknown = undefined;

  constructor(worker: WorkerSignals | undefined, branch?: string) {
    this.worker = worker;
    this.branch = branch;
    if (worker === undefined) this.reason = 'no_available_workers';
  }
}

/** A learned placement, as a policy reports it; the router adds model and leg (LB-34). */
export interface LearnedPlacement {
  /** Which index learned it: the string tree, the token tree or the hash index. */
  readonly kind: 'text' | 'tokens' | 'hash';
  /** The hashed cache partition (CA-102). */
  readonly namespace: string | undefined;
  /** The whole path: the text, or the token ids. */
  readonly units: string | readonly number[];
  /** Who was given the request. */
  readonly worker: WorkerId;
  /** The use counter that orders placements between instances. */
  readonly use: number;
}

/** Something a policy warns about. */
export interface PolicyWarning {
  /** One of the codes of the router's `warning` event. */
  readonly code: 'passthroughManyWorkers';
  /** In English, for people. */
  readonly message: string;
  /** Option names it concerns. */
  readonly fields: readonly string[];
}

/**
 * Where a policy reports what is no decision. The router connects these to its typed events; alone nobody listens.
 * Members are absent while nobody listens: call them as `events.placement?.({ … })`, so that no payload is built (LB-50).
 */
export interface PolicyEvents {
  /** Something is probably not meant. */
  readonly warning?: ((warning: PolicyWarning) => void) | undefined;
  /** Something was learned from a decision of this instance; never for merged placements (LB-34). */
  readonly placement?: ((placement: LearnedPlacement) => void) | undefined;
  /** After each eviction or expiry pass, for the gauges too (OB-22 to OB-24); sizes in characters, tokens or heads. */
  readonly treeEvicted?:
    | ((evicted: {
        readonly tree: 'string' | 'token' | 'hash';
        readonly evictedUnits: number;
        readonly size: number;
        readonly tenants: number;
      }) => void)
    | undefined;
  /** A pin went. */
  readonly pinEvicted?:
    | ((evicted: {
        readonly keyHash: string;
        readonly cause: 'idle' | 'capacity' | 'removed';
        readonly remaining: number;
      }) => void)
    | undefined;
}

/** Nobody listens. */
export const noEvents: PolicyEvents = {};

/**
 * A policy instance: one per (model, leg) pool (LM-20), or one used alone through `standalone`.
 *
 * All members are synchronous, none may throw for request data. What `workerAdded`, `workerRemoved` or `maintain` throws
 * is a warning of the router, `policyFailed`; the change they are told of stands (LB-15).
 */
export interface Policy {
  /** One of the ten names, or a custom policy's own. */
  readonly name: string;
  /** What it reads beside the candidates; the same for its whole life. */
  readonly needs: PolicyNeeds;
  /** Tokens credited for a request of unknown size (EW-13). Absent: 1024. */
  readonly meanPrefillTokens?: number | undefined;
  /** Chooses. Draws from `ctx.random` are its only side effect. Must return a decision without worker for an empty set. */
  decide(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision;
  /** Commits the decision, also one that selected nothing (ST-35a). Called in the same synchronous step as `decide`. */
  record?(request: RequestView, decision: Decision, ctx: DecisionContext): void;
  /** The details behind a decision, for `explain`; changes nothing and draws nothing. */
  describe?(
    request: RequestView,
    candidates: CandidateSet,
    ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation;
  /** Replaces the options at run time and keeps what was learned (LB-35). Absent: the pool makes a new instance. */
  configure?(options: object): void;
  /** A worker was registered in the pool (available or not), in registration order. */
  workerAdded?(id: WorkerId, now: number): void;
  /** A worker left the pool: drop every byte held for it (LB-30). */
  workerRemoved?(id: WorkerId, now: number): void;
  /** Periodic work that is due, in bounded steps; returns whether work is left (LB-5). */
  maintain?(now: number, budget: MaintenanceBudget): boolean;
}
