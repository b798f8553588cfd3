/**
 * What a selection returns (LB-11): the record of the decision, and the typed outcome when nothing was selected. The
 * router and policies used alone share these shapes.
 */
import type { PolicyExplanation } from './policies/explanation.js';
import type { Decision, Leg, NoneReason } from './policies/policy.js';
import type { WorkerId } from './workers/candidate.js';
import type { OverloadVerdict } from './workers/overload.js';

/** How a decision came about; every result carries one, selected or not (OB-93). Fields that do not apply are undefined. */
export interface DecisionRecord {
  /** The configured policy's name, also when a pin decided (PO-4). */
  readonly policy: string;
  /** The path taken, one of the names of spec 09; the sticky one when a key decided. */
  readonly branch: string | undefined;
  /** The policy's own branch when it placed a keyed request. */
  readonly policyBranch: string | undefined;
  /** Where the routing key came from, when one decided (ST-24). */
  readonly source: 'rid' | 'header' | undefined;
  /** 16 hex digits that stand for the routing key; the key itself is never shown (OB-93). */
  readonly keyHash: string | undefined;
  /** Hash level: a boundary in tokens, 0 for none (PH-3, CA-71). */
  readonly level: number | undefined;
  /** Matched share of the request, 0–1 (CA-33). */
  readonly matchedRatio: number | undefined;
  /** The `cacheThreshold` it was compared with. */
  readonly threshold: number | undefined;
  /** The winner's score in seconds; undefined in a dark fleet and where no score decided (EW-26). */
  readonly expectedWaitSeconds: number | undefined;
  /** The winner's in-flight count when it was selected, this request not included. */
  readonly inFlight: number | undefined;
  /** The pool's model; `unknown` when the request names none. */
  readonly model: string;
  readonly leg: Leg;
}

/** Why nothing was selected (LB-11a). */
export type SelectionReason = NoneReason | 'no_workers' | 'overloaded' | 'no_compatible_pair';

/** The error code a host answers with, as `X-SMG-Error-Code` (OB-101). */
export type SelectionCode = 'no_available_workers' | 'worker_overload_protection_shed' | 'no_compatible_pd_pair';

/** Nothing was selected: an outcome, never an exception. A host answers 503 with `code`. */
export interface NotSelected {
  readonly ok: false;
  readonly reason: SelectionReason;
  readonly code: SelectionCode;
  /** Whether trying again at once makes sense: false only for `overloaded` (LB-11a). */
  readonly retryable: boolean;
  readonly leg: Leg;
  /** Available workers that the request's `exclude` took away (LB-14a). */
  readonly excluded: number;
  /** Hint for a `Retry-After` header, milliseconds; with `overloaded` only (OV-20). */
  readonly retryAfterMs?: number | undefined;
  /** Where a shed happened (OB-41). */
  readonly stage?: 'selection' | 'dispatch' | 'pd_admission' | undefined;
  readonly record: DecisionRecord;
}

/** Why a registered worker was no candidate (LB-13). */
export type Exclusion =
  | { readonly by: 'status'; readonly status: string }
  | { readonly by: 'breaker'; readonly retryInMs: number }
  | ({ readonly by: 'overload' } & OverloadVerdict)
  /** The request's `exclude` names it. */
  | { readonly by: 'exclude' }
  /** The caller's list of candidates leaves it out. */
  | { readonly by: 'candidates' }
  /** It serves other requests of the pool: it was registered with a model and the request's is unknown (WK-13a). */
  | { readonly by: 'scope' }
  /** No counterpart it may pair with (LM-30). */
  | { readonly by: 'pairing' };

/** Whether a worker took part in the decision, and if not, every reason why. */
export interface WorkerStanding {
  readonly worker: WorkerId;
  readonly candidate: boolean;
  readonly exclusions: readonly Exclusion[];
}

/** What `explain` returns: the decision that `selectWorker` would make now, and everything it rests on (LB-13). */
export interface Explanation {
  /** The worker that would be selected; one of the tie set when several could be. */
  readonly selection: { readonly ok: true; readonly worker: WorkerId; readonly record: DecisionRecord } | NotSelected;
  /** In registration order. */
  readonly workers: readonly WorkerStanding[];
  /** Scores, gates, matches and ties, as far as the policy has them. */
  readonly policy: PolicyExplanation;
}

/** The record of a decision. */
export function recordOf(decision: Decision, policy: string, model: string, leg: Leg): DecisionRecord {
  const { inner } = decision;
  return {
    policy,
    branch: decision.branch,
    policyBranch: inner?.branch,
    source: decision.source,
    keyHash: decision.keyHash,
    level: decision.level ?? inner?.level,
    matchedRatio: decision.matchedRatio ?? inner?.matchedRatio,
    threshold: decision.threshold ?? inner?.threshold,
    expectedWaitSeconds: decision.expectedWaitSeconds ?? inner?.expectedWaitSeconds,
    inFlight: decision.worker?.inFlight,
    model,
    leg,
  };
}

/** The outcome for a reason, with its code and whether a retry makes sense (LB-11a). */
export function notSelected(
  reason: SelectionReason,
  excluded: number,
  record: DecisionRecord,
  shed?: { readonly retryAfterMs: number; readonly stage: 'selection' | 'dispatch' | 'pd_admission' },
): NotSelected {
  const retryable = reason !== 'overloaded';
  const common = { ok: false as const, reason, code: codeOf(reason), retryable, leg: record.leg, excluded, record };
  return shed === undefined ? common : { ...common, ...shed };
}

function codeOf(reason: SelectionReason): SelectionCode {
  if (reason === 'overloaded') return 'worker_overload_protection_shed';
  return reason === 'no_compatible_pair' ? 'no_compatible_pd_pair' : 'no_available_workers';
}
