/**
 * Typed events (LB-50): one payload object each, emitted after the state is committed, and free when nobody listens:
 * callers ask `heard` before they build a payload. A listener that throws never changes a result (LB-15); its error is
 * passed on as a `warning`. The emitter is a detail: none of its types are public (LB-61).
 */
import { EventEmitter } from 'eventemitter3';
import { refuse } from './errors.js';
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
  readonly code: WarningCode;
  readonly message: string;
  /** Option names it concerns. */
  readonly fields: readonly string[];
  readonly worker?: WorkerId | undefined;
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
  notSelected: NotSelected;
  leaseBegan: { readonly worker: Worker; readonly inFlight: number };
  leaseEnded: {
    readonly worker: Worker;
    readonly inFlight: number;
    readonly end: LeaseEnd;
    readonly outcome: LeaseOutcome | undefined;
    readonly ageMs: number;
  };
  /** An open lease reached `maxLeaseAgeMs` and was released (LB-23), after its `leaseEnded`. */
  leaseExpired: { readonly worker: Worker; readonly ageMs: number };
  workerAdded: { readonly worker: Worker };
  /** A pool runs another policy instance from now on: what the one before had learned is gone (LB-35, LM-25). */
  policyReplaced: { readonly model: string; readonly leg: Leg; readonly policy: string };
  /** The worker under this id was registered anew and kept its counts (WK-3). */
  workerReplaced: { readonly worker: Worker; readonly revision: number };
  workerRemoved: { readonly worker: Worker };
  workerStatus: { readonly worker: Worker; readonly from: WorkerStatus; readonly to: WorkerStatus };
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
  reportApplied: { readonly worker: Worker; readonly report: LoadReport };
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
  placement: Placement;
  warning: Warning;
}

/** The name of an event. */
export type RouterEventName = keyof RouterEvents;
/** Called with an event's payload. What it throws becomes a warning (LB-15). */
export type RouterListener<E extends RouterEventName> = (payload: RouterEvents[E]) => void;

/** The router's emitter. */
export class EventHub {
  readonly #emitter = new EventEmitter<RouterEventName>();
  // The wrapper each listener was registered with, so that `off` finds it again.
  readonly #wrappers = new Map<RouterEventName, Map<unknown, (payload: unknown) => void>>();
  #holds = 0;
  #held: [RouterEventName, unknown][] = [];

  /** Whether anybody listens: ask before building a payload. */
  heard(event: RouterEventName): boolean {
    return this.#emitter.listenerCount(event) > 0;
  }

  emit<E extends RouterEventName>(event: E, payload: RouterEvents[E]): void {
    if (this.#holds > 0) this.#held.push([event, payload]);
    else this.#emitter.emit(event, payload);
  }

  /** From now on events wait for `release`: a commit tells what it caused when all of it is done (LB-50). Holds nest. */
  hold(): void {
    this.#holds += 1;
  }

  /** Tells what waited, in order. A listener may call the router again: its events come at once, these go on after. */
  release(): void {
    this.#holds -= 1;
    if (this.#holds > 0 || this.#held.length === 0) return;
    const held = this.#held;
    this.#held = [];
    for (const [event, payload] of held) this.#emitter.emit(event, payload);
  }

  /** Makes a change of several steps and tells of it when it is whole: no listener sees, or acts upon, half of it. */
  afterwards<T>(change: () => T): T {
    this.hold();
    try {
      return change();
    } finally {
      this.release();
    }
  }

  /** Subscribes and returns the function that unsubscribes. The same listener counts once an event. */
  on<E extends RouterEventName>(event: E, listener: RouterListener<E>): () => void {
    return this.#subscribe(event, listener, false);
  }

  once<E extends RouterEventName>(event: E, listener: RouterListener<E>): () => void {
    return this.#subscribe(event, listener, true);
  }

  off<E extends RouterEventName>(event: E, listener: RouterListener<E>): void {
    const wrapper = this.#wrappers.get(event)?.get(listener);
    if (wrapper === undefined) return;
    this.#wrappers.get(event)?.delete(listener);
    this.#emitter.off(event, wrapper);
  }

  #subscribe<E extends RouterEventName>(event: E, listener: RouterListener<E>, once: boolean): () => void {
    if (typeof event !== 'string') throw refuse('event', 'the name of an event', event);
    if (typeof listener !== 'function') throw refuse('listener', 'a function', listener);
    this.off(event, listener);
    const wrapper = (payload: unknown): void => {
      // Unsubscribed by a listener that was called before it: the emitter still has it on its round.
      if (this.#wrappers.get(event)?.get(listener) !== wrapper) return;
      // Before the call: a once-listener that emits the event again must not run twice (B92).
      if (once) this.off(event, listener);
      try {
        const returned: unknown = listener(payload as RouterEvents[E]);
        // An async listener fails later, and must not become an unhandled rejection of the host.
        if (returned instanceof Promise) returned.catch((error: unknown) => this.#listenerFailed(event, error));
      } catch (error) {
        this.#listenerFailed(event, error);
      }
    };
    const wrappers = this.#wrappers.get(event) ?? new Map();
    this.#wrappers.set(event, wrappers.set(listener, wrapper));
    this.#emitter.on(event, wrapper);
    return () => {
      if (this.#wrappers.get(event)?.get(listener) === wrapper) this.off(event, listener);
    };
  }

  #listenerFailed(event: RouterEventName, error: unknown): void {
    // A warning listener that throws would warn about itself for ever.
    if (event === 'warning') return;
    this.emit('warning', { code: 'listenerFailed', message: `a listener of ${event} threw`, fields: [], error });
  }
}
