/**
 * What time makes due (LB-5): draining workers that have settled, breakers that turn half-open, leases past their age,
 * reports that aged out, and the periodic passes of the policies, the pins and the KV index. There are no timers: it
 * runs inside calls that come anyway, in small steps, and in `maintain()`. While nothing is due a call pays for three
 * comparisons; the fleet is walked only when one of its workers is due, and once a second for aged reports.
 */
import type { RouterCore } from './core.js';
import { removeWorker } from './fleet.js';
import { dropAgedReports } from './reports.js';
import { type MaintenanceBudget, StepBudget, TimeBudget } from './runtime/maintenance-budget.js';

/** Looks at the budget that one step inside another call may take: each stands for a few dozen entries. */
const stepLooks = 8;
/** How often periodic work is looked for when none is left over, milliseconds. */
const passIntervalMs = 1000;

export class Upkeep {
  readonly #core: RouterCore;
  /** Router time at which a worker settles or a breaker turns half-open; `workerDue` brings it forward. */
  #workersAt = Infinity;
  #reportsAt = 0;
  #passAt = 0;

  constructor(core: RouterCore) {
    this.#core = core;
  }

  /** Something about a worker will be due at `time`. */
  workerDue(time: number): void {
    this.#workersAt = Math.min(this.#workersAt, time);
  }

  /** Called at the start of every public call. Bounded; O(1) when nothing is due. */
  run(now: number): void {
    this.#settle(now);
    if (now >= this.#passAt) this.#pass(now, new StepBudget(stepLooks));
  }

  /** One `maintain()` call; returns whether work is left. */
  maintain(now: number): boolean {
    this.#settle(now);
    const { clock, plan } = this.#core;
    return this.#pass(now, new TimeBudget(clock, plan.options.maintenanceBudgetMs));
  }

  #settle(now: number): void {
    if (now >= this.#workersAt) this.#settleWorkers(now);
    this.#expireLeases(now);
  }

  #settleWorkers(now: number): void {
    const core = this.#core;
    this.#workersAt = Infinity;
    const settled = [...core.workers.values()].filter(({ removeAt }) => removeAt <= now);
    settled.sort((a, b) => a.removeAt - b.removeAt);
    // A listener may have removed one of them, or taken it back.
    for (const worker of settled) if (worker.removeAt <= now) removeWorker(core, worker.id, worker.removeAt);
    for (const worker of [...core.workers.values()]) {
      core.breakerMoved(worker, worker.breaker.takeTransitions(now));
      this.workerDue(Math.min(worker.removeAt, worker.breaker.halfOpenAt));
    }
  }

  #expireLeases(now: number): void {
    const core = this.#core;
    const maxAge = core.plan.options.maxLeaseAgeMs;
    if (maxAge === undefined) return;
    for (let lease = core.leases.oldest; lease !== undefined; lease = core.leases.oldest) {
      const ageMs = now - lease.terms.begunAt;
      if (ageMs < maxAge) return;
      lease.finish('expired', undefined);
      if (core.hub.heard('leaseExpired')) core.hub.emit('leaseExpired', { worker: lease.worker, ageMs });
    }
  }

  #pass(now: number, budget: MaintenanceBudget): boolean {
    const core = this.#core;
    if (now >= this.#reportsAt) {
      this.#reportsAt = now + passIntervalMs;
      dropAgedReports(core, now);
    }
    let isLeft = core.pins.maintain(now, budget);
    isLeft = core.kvEvents.maintain(now, budget) || isLeft;
    for (const pool of core.pools) isLeft = (pool.policy.maintain?.(now, budget) ?? false) || isLeft;
    this.#passAt = isLeft ? now : now + passIntervalMs;
    return isLeft;
  }
}
