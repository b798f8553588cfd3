/**
 * The state of one router and the few primitives everything else is made of. `router.ts` is the public face; the files
 * beside this one each do one thing to a core: fleet, reports, decide, select, begin, legs, route, upkeep, snapshot.
 */

import { refuse } from './errors.js';
import { EventHub } from './event-hub.js';
import type { LeaseEnd, Warning } from './events.js';
import { type Lease, LeaseBook } from './lease.js';
import type { LeaseOutcome } from './lease-outcome.js';
import type { Resolved } from './options/spec.js';
import type { cacheAwareTable } from './options/table.js';
import { createPolicy, type PoolSurroundings, reshapePolicy } from './policies/create.js';
import type { Leg, Policy } from './policies/policy.js';
import { clockOf, randomOf } from './policies/runtime-options.js';
import { pinEventsOf, policyEventsOf } from './policy-events.js';
import type { Pool } from './pool.js';
import { type PoolHost, PoolSet } from './pools.js';
import { KvEventFeed } from './prefix/kv-event-feed.js';
import type { PolicyPlan, RouterPlan } from './router-options.js';
import { type Clock, ElapsedTime } from './runtime/clock.js';
import type { Hash64 } from './runtime/hash.js';
import { forkOf, type RandomSource, systemRandom } from './runtime/random.js';
import { PinMap } from './sticky/pins.js';
import { Upkeep } from './upkeep.js';
import type { BreakerTransition } from './workers/breaker.js';
import type { WorkerId } from './workers/candidate.js';
import { classifyOutcome, type RequestScope } from './workers/outcome-class.js';
import { RequestScopes } from './workers/request-scopes.js';
import type { Worker, WorkerState } from './workers/worker.js';

/** Warnings kept for `router.warnings`; older ones go. */
const maxWarnings = 256;

export class RouterCore implements PoolHost {
  plan: RouterPlan;
  readonly clock: Clock;
  readonly time: ElapsedTime;
  readonly random: RandomSource;
  /** Drawn from by `explain` and `rank` when `random` offers no fork (LB-12). */
  readonly spareRandom: RandomSource = systemRandom;
  readonly hash: Hash64;
  readonly hub: EventHub = new EventHub();
  readonly workers: Map<WorkerId, WorkerState> = new Map();
  readonly pins: PinMap;
  readonly kvEvents: KvEventFeed;
  readonly leases: LeaseBook;
  readonly pools: PoolSet;
  readonly warnings: Warning[] = [];
  readonly #scopes = new RequestScopes();
  readonly #salt: number;
  readonly upkeep: Upkeep = new Upkeep(this);

  constructor(plan: RouterPlan, hash: Hash64) {
    this.plan = plan;
    this.hash = hash;
    this.clock = clockOf(plan.options);
    this.time = new ElapsedTime(this.clock);
    this.random = randomOf(plan.options);
    // From a fork: a seeded sequence of decisions begins at its beginning.
    this.#salt = Math.floor(forkOf(this.random, this.spareRandom)() * 2 ** 32);
    this.pins = new PinMap(plan.pinLimits, pinEventsOf(this.hub));
    this.kvEvents = new KvEventFeed({ warning: (warning) => this.warn(warning) });
    this.leases = new LeaseBook(
      (lease, end, outcome) => this.#leaseEnded(lease, end, outcome),
      (ending) => this.upkeep.expire(ending, this.advance()),
    );
    this.pools = new PoolSet(this);
  }

  /** The start of every public call: reads the clock and does what is due. */
  advance(): number {
    const now = this.time.advance();
    this.upkeep.run(now);
    return now;
  }

  makePolicy(plan: PolicyPlan, model: string, leg: Leg, router: RouterPlan = this.plan): Policy {
    return createPolicy(plan, this.#surroundings(model, leg, router));
  }

  reshapePolicy(pool: Pool, plan: PolicyPlan): Policy {
    const members = [...pool.all.members()].map((worker) => worker.id);
    return reshapePolicy(pool.policy, plan, this.#surroundings(pool.model, pool.leg, this.plan), members);
  }

  #surroundings(model: string, leg: Leg, router: RouterPlan): PoolSurroundings {
    return {
      leg,
      hash: this.hash,
      pins: this.pins,
      kvIndex: () => this.kvEvents.indexFor(model),
      events: policyEventsOf(this.hub, (warning) => this.warn(warning), model, leg),
      sticky: router.options,
      salt: this.#salt,
    };
  }

  /** The KV index of a model is kept as the policy that reads it says (CA-91, CA-96). */
  policyTaken(plan: PolicyPlan, model: string): void {
    if (plan.name !== 'cache_aware') return;
    const options = plan.options as Resolved<typeof cacheAwareTable>;
    const { kvIndexerTtlMs: ttlMs, kvIndexerMaxEntries: maxEntries, blockSize } = options;
    this.kvEvents.configure(model, { ttlMs, maxEntries, blockSize });
  }

  modelLeft(model: string): void {
    this.kvEvents.forgetModel(model);
  }

  policyReplaced({ model, leg, policy }: Pool): void {
    if (this.hub.heard('policyReplaced')) this.hub.emit('policyReplaced', { model, leg, policy: policy.name });
  }

  labelIgnored(worker: Worker, label: string, code: 'unknownPolicyLabel' | 'bucketWithoutRanges'): void {
    const message =
      code === 'unknownPolicyLabel'
        ? `worker label policy=${label} names no policy; the configured one is used`
        : `worker label policy=${label} needs ranges, which only a prefill leg has; the configured policy is used`;
    this.warn({ code, message, fields: ['labels.policy'], worker: worker.id });
  }

  policyFailed({ model }: Pool, message: string, error: unknown, worker?: WorkerId): void {
    this.warnOnce({ code: 'policyFailed', message, fields: ['policy'], model, ...(worker && { worker }), error });
  }

  /** Warns unless the same was said before. */
  warnOnce(warning: Warning): void {
    const same = ({ code, model, message }: Warning): boolean =>
      code === warning.code && model === warning.model && message === warning.message;
    if (!this.warnings.some(same)) this.warn(warning);
  }

  warn(warning: Warning): void {
    this.warnings.push(warning);
    if (this.warnings.length > maxWarnings) this.warnings.shift();
    if (this.hub.heard('warning')) this.hub.emit('warning', warning);
  }

  /** A worker's availability may have changed: every list that holds it looks again. */
  availabilityChanged(worker: WorkerState): void {
    for (const membership of worker.memberships) membership.list.changed();
  }

  /** Commits what a breaker's change of state means, and announces it. */
  breakerMoved(worker: WorkerState, transitions: readonly BreakerTransition[]): void {
    if (transitions.length === 0) return;
    this.availabilityChanged(worker);
    this.upkeep.workerDue(worker);
    if (!this.hub.heard('breakerTransition')) return;
    for (const { from, to } of transitions) this.hub.emit('breakerTransition', { worker, from, to });
  }

  /** The scope a caller names, by itself or by request id. @throws TypeError on `scope` */
  scopeOf(scope: RequestScope | string | undefined): RequestScope | undefined {
    if (scope === undefined) return undefined;
    if (!RequestScopes.accepts(scope)) throw refuse('scope', 'a RequestScope or a request id', scope);
    return typeof scope === 'string' ? this.#scopes.of(scope) : scope;
  }

  /** Feeds one outcome to a worker's breaker (CB-20 to CB-32). */
  recordOutcome(
    worker: WorkerState,
    outcome: LeaseOutcome | undefined,
    scope: RequestScope | undefined,
    epoch: number | undefined,
  ): void {
    const kind = classifyOutcome(outcome, worker.settings.codes);
    if (kind === 'nothing' || (scope !== undefined && !scope.admits(worker.id, kind))) return;
    const now = this.time.now;
    const transitions = worker.breaker.record(kind, now, epoch);
    this.breakerMoved(worker, transitions);
    if (!this.hub.heard('breakerOutcome')) return;
    const { consecutiveFailures, consecutiveSuccesses } = worker;
    this.hub.emit('breakerOutcome', { worker, outcome: kind, consecutiveFailures, consecutiveSuccesses });
  }

  /** Warnings about a worker go with it (LB-30). */
  forgetWarnings(id: WorkerId): void {
    for (let i = this.warnings.length - 1; i >= 0; i--) if (this.warnings[i]?.worker === id) this.warnings.splice(i, 1);
  }

  #leaseEnded(lease: Lease, end: LeaseEnd, outcome: LeaseOutcome | undefined): void {
    const worker = lease.state;
    // Bound to the instance it counted on: whoever came after under the same id is none of its business (LB-21).
    if (worker.removed) return;
    const { now } = this.time;
    if (end !== 'expired') this.recordOutcome(worker, outcome, lease.terms.scope, lease.terms.epoch);
    if (!this.hub.heard('leaseEnded')) return;
    const ageMs = now - lease.terms.begunAt;
    this.hub.emit('leaseEnded', { worker, inFlight: worker.inFlight, end, outcome, ageMs });
  }
}
