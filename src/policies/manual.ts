/**
 * `manual`: a routing key stays with the worker it was first given (MA-1..MA-13). A key remembers up to two workers; while
 * the first available of them serves it, load plays no part and there is no in-flight cap (MA-11).
 *
 * State is the pin map alone, shared by all pools of a router (ST-61). O(1) for a known key; a new key costs what its
 * assignment mode does.
 */
import type { ManualOptions } from '../options/policy-options.js';
import type { Resolved } from '../options/spec.js';
import { manualTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';
import type { RequestView } from '../request.js';
import { hashText } from '../runtime/hash-text.js';
import { type AssignmentMode, assign, assignable, type OwnAssignmentMode } from '../sticky/assignment.js';
import { PinChange } from '../sticky/pin-change.js';
import { PinKeyComposer, pinModel } from '../sticky/pin-key.js';
import { PinMap } from '../sticky/pins.js';
import {
  firstUsable,
  isVisibleAscii,
  keyHash,
  maxRoutingKeyBytes,
  type RoutingKey,
  resolveRoutingKey,
} from '../sticky/routing-key.js';
import type { WorkerId } from '../workers/candidate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import type { PolicyExplanation } from './explanation.js';
import { Decision, type DecisionContext, type MaintenanceBudget, type Policy, type PolicyNeeds } from './policy.js';
import { type RuntimeOptions, runtimeTable } from './runtime-options.js';
import { type StandalonePolicy, standalone } from './standalone.js';

/** Its options with their defaults filled in. */
export type ResolvedManualOptions = Resolved<typeof manualTable>;

/** Options of `manual`: the policy's own and those of its surroundings. */
export type ManualAloneOptions = ManualOptions & RuntimeOptions;

/**
 * `manual` without a router, over a pin map of its own.
 *
 * @param options its own, and the runtime options
 * @throws RoutingConfigError for an option that cannot be used (LB-40)
 */
export function manual(options?: ManualAloneOptions): StandalonePolicy {
  const given = resolveOptions({ ...manualTable, ...runtimeTable }, options);
  return standalone(createManual(given, { pins: new PinMap(given) }), given);
}

/** The policy over a pin map: the router's, or one of its own when it is used alone. */
export function createManual(options: ResolvedManualOptions, deps: { readonly pins: PinMap }): Policy {
  return new ManualPolicy(options, deps.pins);
}

/**
 * The key `manual` pins by: the host's own `routingKey`, the rid's when the override is on, else the header
 * `x-smg-routing-key` in visible ASCII, not stripped, of any length (MA-1). `routingKeyHeaders` plays no part.
 */
export function manualRoutingKey(request: RequestView, routingKeyOverride: boolean): RoutingKey | undefined {
  const chosen = resolveRoutingKey(request, { rid: routingKeyOverride, headers: [], stripHeaders: false });
  if (chosen !== undefined) return chosen;
  const header = request.hasHeaders
    ? firstUsable(request.headerValues('x-smg-routing-key'), (value) => value !== '' && isVisibleAscii(value))
    : undefined;
  if (header === undefined) return undefined;
  // A long key is held as its hash, so that the bytes a pin takes are bounded; the mark keeps it apart from real keys.
  return { key: header.length > maxRoutingKeyBytes ? `\u0001${hashText(header)}` : header, source: 'header' };
}

class ManualPolicy implements Policy {
  readonly name = 'manual';
  readonly needs: PolicyNeeds = {};
  readonly #pins: PinMap;
  readonly #pinKeys = new PinKeyComposer();
  readonly #registered = new Set<WorkerId>();
  #override: boolean;
  #mode: OwnAssignmentMode;

  constructor(options: ResolvedManualOptions, pins: PinMap) {
    this.#pins = pins;
    this.#override = options.routingKeyOverride;
    this.#mode = modeOf(options);
  }

  decide(request: RequestView, candidates: CandidateSet, ctx: DecisionContext): Decision {
    if (candidates.size === 0) return new Decision(undefined, 'no_healthy_workers');
    const routing = manualRoutingKey(request, this.#override);
    if (routing === undefined) {
      return new Decision(assign(this.#mode, candidates, ctx.random), 'no_routing_id');
    }
    const change = this.#changeOf(routing, request, candidates, ctx);
    let worker = change.pinned;
    let branch = 'occupied_hit';
    if (worker === undefined) {
      branch = change.existed ? 'occupied_miss' : 'vacant';
      worker = assign(this.#mode, candidates, ctx.random);
      if (worker !== undefined && !change.isBypassed(candidates, ctx.available)) change.append(worker.id);
    }
    const decision = new Decision(worker, branch);
    decision.source = routing.source;
    decision.keyHash = keyHash(routing.key);
    decision.note = change;
    return decision;
  }

  record(_request: RequestView, decision: Decision, ctx: DecisionContext): void {
    if (decision.note instanceof PinChange) decision.note.commit(this.#pins, ctx.now);
  }

  describe(
    request: RequestView,
    candidates: CandidateSet,
    ctx: DecisionContext,
    decision: Decision,
  ): PolicyExplanation {
    const routing = manualRoutingKey(request, this.#override);
    return {
      tieSet: decision.branch === 'occupied_hit' ? undefined : assignable(this.#mode, candidates),
      pinned: routing === undefined ? undefined : this.#changeOf(routing, request, candidates, ctx).workers,
    };
  }

  configure(options: object): void {
    const resolved = options as ResolvedManualOptions;
    this.#override = resolved.routingKeyOverride;
    this.#mode = modeOf(resolved);
  }

  workerAdded(id: WorkerId): void {
    this.#registered.add(id);
  }

  workerRemoved(id: WorkerId): void {
    this.#registered.delete(id);
  }

  maintain(now: number, budget: MaintenanceBudget): boolean {
    return this.#pins.maintain(now, budget);
  }

  #changeOf(routing: RoutingKey, request: RequestView, candidates: CandidateSet, ctx: DecisionContext): PinChange {
    const pinKey = this.#pinKeys.compose(pinModel(ctx.model, request.model), ctx.leg, routing.key);
    return new PinChange(pinKey, this.#pins.find(pinKey, ctx.now), candidates, this.#registered);
  }
}

/** Unset: random; `delegate` has nobody to delegate to (MA-7). */
function modeOf(options: ResolvedManualOptions): OwnAssignmentMode {
  const mode = (options.assignmentMode ?? 'random') as AssignmentMode;
  return mode === 'delegate' ? 'min_load' : mode;
}
