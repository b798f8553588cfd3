/**
 * The routing-key override: a combinator that keeps keyed requests at their worker on top of any policy (ST-30..ST-44). A
 * request without a key goes to the inner policy untouched (ST-31); a pinned one does not reach it at all.
 *
 * `manual` and `consistent_hashing` read keys themselves and are never wrapped (MA-13): they take `routingKeyOverride` as
 * an option. State is the pin map alone, one for all pools of a router (ST-32). O(1) for a hit.
 */
import { RoutingConfigError } from '../errors.js';
import type { Resolved } from '../options/spec.js';
import type { overrideTable } from '../options/table.js';
import type { PolicyExplanation } from '../policies/explanation.js';
import {
  Decision,
  type DecisionContext,
  type MaintenanceBudget,
  type Policy,
  type PolicyNeeds,
} from '../policies/policy.js';
import type { RequestView } from '../request.js';
import type { WorkerId, WorkerSignals } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import { type AssignmentMode, assign, assignable } from './assignment.js';
import { PinChange } from './pin-change.js';
import { PinKeyComposer, pinModel } from './pin-key.js';
import type { PinMap } from './pins.js';
import { type KeyRules, keyHash, type RoutingKey, resolveRoutingKey } from './routing-key.js';

/** What the override reads of the options; the limits are the pin map's. */
export type OverrideSettings = Pick<Resolved<typeof overrideTable>, 'routingKeyHeaders' | 'assignmentMode'>;

/** Requests of one pin that may be in flight on its worker before the next one is placed anew (ST-40). */
const inFlightCap = 2;

/** What the override works with. */
export interface OverrideDependencies {
  /** Where pins are kept: one map for all pools of a router (ST-32). */
  readonly pins: PinMap;
  /** Workers that the inner policy knows already, when the override is switched on later. */
  readonly registered?: Iterable<WorkerId> | undefined;
}

/** A policy with the override around it. `configure` is the inner policy's and absent when that has none. */
export interface OverriddenPolicy extends Policy {
  /** The policy it was put around. */
  readonly inner: Policy;
  /** Replaces the override's own settings and keeps the pins (LB-35). */
  configureOverride(settings: OverrideSettings): void;
}

/**
 * Puts the override around a policy, which is used through it from then on.
 *
 * @throws RoutingConfigError for `manual` and `consistent_hashing`
 */
export function createRoutingKeyOverride(
  inner: Policy,
  settings: OverrideSettings,
  deps: OverrideDependencies,
): OverriddenPolicy {
  if (inner.name === 'manual' || inner.name === 'consistent_hashing') {
    throw new RoutingConfigError('policy', inner.name, 'reads routing keys itself: set its option routingKeyOverride');
  }
  return new RoutingKeyOverride(inner, settings, deps);
}

/** What a keyed decision leaves for `record`: the change of its pin, unless there was nobody to choose from (ST-34). */
class KeyedNote {
  readonly change: PinChange | undefined;

  constructor(change: PinChange | undefined) {
    this.change = change;
  }
}

class RoutingKeyOverride implements OverriddenPolicy {
  readonly inner: Policy;
  readonly configure?: (options: object) => void;
  readonly #pins: PinMap;
  readonly #pinKeys = new PinKeyComposer();
  readonly #registered: Set<WorkerId>;
  #rules: KeyRules;
  #mode: AssignmentMode;

  constructor(inner: Policy, settings: OverrideSettings, deps: OverrideDependencies) {
    this.inner = inner;
    if (inner.configure !== undefined) this.configure = (options) => inner.configure?.(options);
    this.#pins = deps.pins;
    this.#registered = new Set(deps.registered);
    this.#rules = rulesOf(settings);
    this.#mode = settings.assignmentMode ?? 'delegate';
  }

  /** The configured policy's, also when a pin decides (PO-4). */
  get name(): string {
    return this.inner.name;
  }

  get needs(): PolicyNeeds {
    return this.inner.needs;
  }

  get meanPrefillTokens(): number | undefined {
    return this.inner.meanPrefillTokens;
  }

  configureOverride(settings: OverrideSettings): void {
    this.#rules = rulesOf(settings);
    this.#mode = settings.assignmentMode ?? 'delegate';
  }

  decide(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision {
    const routing = resolveRoutingKey(request, this.#rules);
    if (routing === undefined) return this.inner.decide(request, candidates, ctx);
    const decision =
      candidates.size === 0
        ? keyed(new Decision(undefined, 'no_healthy_workers'), undefined)
        : this.#decideKeyed(routing, request, candidates, ctx);
    decision.source = routing.source;
    decision.keyHash = keyHash(routing.key);
    return decision;
  }

  #decideKeyed(routing: RoutingKey, request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision {
    const pinKey = this.#pinKeyOf(routing, request, ctx);
    const change = this.#changeOf(pinKey, candidates, ctx);
    const { pinned } = change;
    if (pinned !== undefined && pinned.keyInFlight(pinKey) < inFlightCap) {
      return keyed(new Decision(pinned, 'occupied_hit'), change);
    }
    const mode = this.#mode;
    const delegated = mode === 'delegate' ? this.inner.decide(request, candidates, ctx) : undefined;
    const worker = mode === 'delegate' ? delegated?.worker : assign(mode, candidates, ctx.random);
    if (worker !== undefined && !change.isBypassed(candidates, ctx.available)) {
      this.#move(change, pinned, worker, pinKey);
    }
    const replacement = change.existed ? 'occupied_miss' : 'vacant';
    const decision = keyed(new Decision(worker, pinned === undefined ? replacement : 'cap_respill'), change);
    decision.inner = delegated;
    decision.reason = worker === undefined ? delegated?.reason : undefined;
    return decision;
  }

  /** ST-35, ST-36, and ST-41: a worker that is full of the key does not get the pin, the pinned one included. */
  #move(change: PinChange, pinned: WorkerSignals | undefined, worker: WorkerSignals, pinKey: string): void {
    if (pinned !== undefined) {
      if (worker.keyInFlight(pinKey) < inFlightCap) change.promote(worker.id);
    } else if (this.#mode === 'delegate') change.promote(worker.id);
    else change.append(worker.id);
  }

  record(request: RequestView, decision: Decision, ctx: DecisionContext): void {
    if (!(decision.note instanceof KeyedNote)) {
      this.inner.record?.(request, decision, ctx);
      return;
    }
    decision.note.change?.commit(this.#pins, ctx.now);
    if (decision.inner !== undefined) this.inner.record?.(request, decision.inner, ctx);
  }

  describe(
    request: RequestView,
    candidates: CandidateSet,
    ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation {
    const ask = (asked: Decision) => this.inner.describe?.(request, candidates, ctx, asked);
    const routing = resolveRoutingKey(request, this.#rules);
    if (routing === undefined) return ask(decision) ?? {};
    const pinKey = this.#pinKeyOf(routing, request, ctx);
    const change = this.#changeOf(pinKey, candidates, ctx);
    const mode = this.#mode;
    // A pin that served leaves no choice, and the policy delegated to tells its own ties.
    const hasTies = mode !== 'delegate' && decision.branch !== 'occupied_hit';
    return {
      pinned: change.workers,
      keyInFlight: change.pinned?.keyInFlight(pinKey),
      tieSet: hasTies ? assignable(mode, candidates) : undefined,
      delegated: decision.inner && ask(decision.inner),
    };
  }

  workerAdded(id: WorkerId, now: number): void {
    this.#registered.add(id);
    this.inner.workerAdded?.(id, now);
  }

  workerRemoved(id: WorkerId, now: number): void {
    this.#registered.delete(id);
    this.inner.workerRemoved?.(id, now);
  }

  maintain(now: number, budget: MaintenanceBudget): boolean {
    const pinsLeft = this.#pins.maintain(now, budget);
    return (this.inner.maintain?.(now, budget) ?? false) || pinsLeft;
  }

  #pinKeyOf(routing: RoutingKey, request: RequestView, ctx: DecisionContext): string {
    return this.#pinKeys.compose(pinModel(ctx.model, request.model), ctx.leg, routing.key);
  }

  #changeOf(pinKey: string, candidates: CandidateSet, ctx: DecisionContext): PinChange {
    return new PinChange(pinKey, this.#pins.find(pinKey, ctx.now), candidates, this.#registered);
  }
}

function rulesOf(settings: OverrideSettings): KeyRules {
  return { rid: true, headers: settings.routingKeyHeaders, stripHeaders: true };
}

function keyed(decision: Decision, change: PinChange | undefined): Decision {
  decision.note = new KeyedNote(change);
  return decision;
}
