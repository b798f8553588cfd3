/** The typed events of a router: every name, its payload, and the vocabulary of those (LB-50). */
import type { LeaseOutcome } from './lease-outcome.js';
import type { LoadReport } from './load/report.js';
import type { Leg } from './policies/policy.js';
import type { DecisionRecord, NotSelected } from './selection.js';
import type { BreakerState } from './workers/breaker.js';
import type { WorkerId } from './workers/candidate.js';
import type { WorkerStatus } from './workers/health.js';
import type { OverloadVerdict } from './workers/overload.js';
import type { Worker } from './workers/worker.js';

/** How a lease came to its end. */
export type LeaseEnd = 'ended' | 'body' | 'aborted' | 'disposed' | 'expired';

/** Why a worker no longer has a report (LR-30). */
export type ReportLoss = 'failed_poll' | 'invalid' | 'aged_out' | 'not_ready' | 'removed' | 'replaced';

/** What a warning is about (LB-41, OB-91). */
export type WarningCode =
  | 'listenerFailed'
  | 'policyFailed'
  | 'optionWithoutEffect'
  | 'unusedPolicyOptions'
  | 'reportMaxAgeBelowInterval'
  | 'waitingCapAboveWindow'
  | 'balanceThresholdUnreachable'
  | 'boundariesWithoutTokens'
  | 'tooFewWorkers'
  | 'passthroughManyWorkers'
  | 'unknownPolicyLabel'
  | 'bucketWithoutRanges'
  | 'kindWithoutLeg'
  | 'invalidReport'
  | 'kvUsageMissing'
  | 'blockSizeMismatch';

/** Something that works, but probably not as intended. */
export interface Warning {
  /** Stable: compare this, not the message. */
  readonly code: WarningCode;
  readonly message: string;
  /** Option names it concerns. */
  readonly fields: readonly string[];
  /** The worker it is about, when it is about one; such a warning goes with its worker (LB-30). */
  readonly worker?: WorkerId | undefined;
  /** The model whose pool it is about, when it is about one. */
  readonly model?: string | undefined;
  /** What was thrown, with `listenerFailed` and `policyFailed`. */
  readonly error?: unknown;
}

/** A learned placement as a serialisable delta (LB-34). `units` is the whole path: a text delta holds prompt text. */
export interface Placement {
  readonly model: string;
  readonly leg: Leg;
  readonly kind: 'text' | 'tokens' | 'hash';
  /** The hashed cache partition, or undefined. */
  readonly namespace: string | undefined;
  readonly units: string | readonly number[];
  readonly worker: WorkerId;
  /** Position in the sender's order of use; larger is newer. */
  readonly use: number;
}

/** Every event and its payload. */
export interface RouterEvents {
  /** A worker was selected; the lease, if any, begins later. */
  selected: { readonly worker: Worker; readonly record: DecisionRecord };
  /** Nothing was selected, or a worker was refused at dispatch; the payload is the outcome itself. */
  notSelected: NotSelected;
  /** A request counts in flight on the worker; `inFlight` includes it (WK-30). */
  leaseBegan: { readonly worker: Worker; readonly inFlight: number };
  /** A request in flight on the worker is over, whichever way; not told of workers that were removed (LB-21). */
  leaseEnded: {
    readonly worker: Worker;
    readonly inFlight: number;
    readonly end: LeaseEnd;
    readonly outcome: LeaseOutcome | undefined;
    readonly ageMs: number;
  };
  /** An open lease reached `maxLeaseAgeMs` and was released (LB-23), after its `leaseEnded`. */
  leaseExpired: { readonly worker: Worker; readonly ageMs: number };
  /** A worker was registered (WK-65). */
  workerAdded: { readonly worker: Worker };
  /** A pool runs another policy instance from now on: what the one before had learned is gone (LB-35, LM-25). */
  policyReplaced: { readonly model: string; readonly leg: Leg; readonly policy: string };
  /** The worker under this id was registered anew and kept its counts (WK-3). */
  workerReplaced: { readonly worker: Worker; readonly revision: number };
  /** A worker was removed, with everything held for it (LB-30). */
  workerRemoved: { readonly worker: Worker };
  /** The host or a probe changed a worker's status (WK-18). */
  workerStatus: { readonly worker: Worker; readonly from: WorkerStatus; readonly to: WorkerStatus };
  /** A breaker changed its state (CB-2 to CB-7). */
  breakerTransition: { readonly worker: Worker; readonly from: BreakerState; readonly to: BreakerState };
  /** A breaker counted an outcome (CB-2). */
  breakerOutcome: {
    readonly worker: Worker;
    readonly outcome: 'success' | 'failure';
    readonly consecutiveFailures: number;
    readonly consecutiveSuccesses: number;
  };
  /** The veto of a worker came, went or changed its signal (OV-7). */
  overloadChanged: { readonly worker: Worker; readonly overload: OverloadVerdict | undefined };
  /** A load report counts from now on (LR-22). */
  reportApplied: { readonly worker: Worker; readonly report: LoadReport };
  /** A worker that had a report has none any more (LR-30). */
  reportLost: { readonly worker: Worker; readonly reason: ReportLoss };
  /** A pin went by idleness or because the map is full (ST-60). The key itself is never told (OB-93). */
  pinEvicted: { readonly keyHash: string; readonly cause: 'idle' | 'capacity' | 'removed'; readonly remaining: number };
  /**
   * An eviction or expiry pass of a `cache_aware` pool is over, whether or not anything went: what went since the one
   * before, and what is left, in characters, tokens or heads. Sizes and tenants of a tree that starts anew are 0.
   */
  treeEvicted: {
    readonly model: string;
    readonly leg: Leg;
    readonly tree: 'string' | 'token' | 'hash';
    readonly evictedUnits: number;
    readonly size: number;
    readonly tenants: number;
  };
  /** A KV-event batch did not follow its predecessor (CA-92). */
  kvEventGap: { readonly worker: WorkerId; readonly expected: bigint | number; readonly received: bigint | number };
  /** A policy learned a placement from a decision of this router; never for merged ones (LB-34). */
  placement: Placement;
  /** Something works, but probably not as intended (LB-41). */
  warning: Warning;
}

/** The name of an event. */
export type RouterEventName = keyof RouterEvents;
/** Called with an event's payload. What it throws becomes a warning (LB-15). */
export type RouterListener<E extends RouterEventName> = (payload: RouterEvents[E]) => void;
