/**
 * What time makes due (LB-5): draining workers that have settled, breakers that turn half-open, leases past their age,
 * reports that aged out, and the periodic passes of the policies, the pins and the KV index. There are no timers: it
 * runs inside calls that come anyway, in small steps, and in `maintain()`. While nothing is due a call pays for three
 * comparisons; when a worker is due, those that drain or have an open breaker are looked at, and once a second the fleet
 * is, in steps, for aged reports.
 */
import type { RouterCore } from './core.js';
import { loseReport, removeWorker } from './fleet.js';
import type { Lease } from './lease.js';
import { type MaintenanceBudget, StepBudget, TimeBudget } from './runtime/maintenance-budget.js';
import type { WorkerState } from './workers/worker.js';

/** Looks at the budget that one step inside another call may take: each stands for a few dozen entries. */
const stepLooks = 8;
/** Workers between two looks at the budget. */
const workersPerLook = 32;
/** Leases between two looks: letting go of a signal takes microseconds each. */
const leasesPerLook = 16;
/** How often periodic work is looked for when none is left over, milliseconds. */
const passIntervalMs = 1000;

export class Upkeep {
  readonly #core: RouterCore;
  /** Workers for which a time will come: that drain, or whose breaker is open. */
  readonly #waiting = new Set<WorkerState>();
  /** The earliest of their times; `workerDue` brings it forward. */
  #workersAt = Infinity;
  #passAt = 0;
  #reportsAt = 0;
  /** The walk for aged reports, as far as it has come. */
  #walk: IterableIterator<WorkerState> | undefined;
  #isExpiring = false;

  constructor(core: RouterCore) {
    this.#core = core;
  }

  /** Something about a worker may be due at another time than before. */
  workerDue(worker: WorkerState): void {
    const at = dueAt(worker);
    if (at === Infinity) return;
    this.#waiting.add(worker);
    this.#workersAt = Math.min(this.#workersAt, at);
  }

  /** The worker has been removed (LB-30). */
  workerGone(worker: WorkerState): void {
    this.#waiting.delete(worker);
  }

  /** Called at the start of every public call. Bounded; O(1) when nothing is due. */
  run(now: number): void {
    if (now >= this.#workersAt) this.#settleWorkers(now);
    if (this.#isPastAge(this.#core.leases.oldest, now)) this.#expireLeases(now, new StepBudget(stepLooks));
    if (now >= this.#passAt) this.#pass(now, new StepBudget(stepLooks));
  }

  /** One `maintain()` call; returns whether work is left. */
  maintain(now: number): boolean {
    const { clock, plan } = this.#core;
    const budget = new TimeBudget(clock, plan.options.maintenanceBudgetMs);
    if (now >= this.#workersAt) this.#settleWorkers(now);
    const leasesLeft = this.#expireLeases(now, budget);
    return this.#pass(now, budget) || leasesLeft;
  }

  /** Releases a lease that is past its age, also before its turn has come (LB-23). */
  expire(lease: Lease, now: number): void {
    if (!this.#isPastAge(lease, now)) return;
    lease.finish('expired', undefined);
    const { hub } = this.#core;
    if (hub.heard('leaseExpired')) {
      hub.emit('leaseExpired', { worker: lease.worker, ageMs: now - lease.terms.begunAt });
    }
  }

  #settleWorkers(now: number): void {
    const core = this.#core;
    // What listeners do meanwhile may bring it forward again.
    this.#workersAt = Infinity;
    const due = [...this.#waiting].filter((worker) => dueAt(worker) <= now).sort((a, b) => dueAt(a) - dueAt(b));
    // A listener may have removed one of them, or taken it back.
    for (const worker of due) if (worker.removeAt <= now) removeWorker(core, worker.id, worker.removeAt);
    for (const worker of due) if (!worker.removed) core.breakerMoved(worker, worker.breaker.takeTransitions(now));
    for (const worker of this.#waiting) {
      if (dueAt(worker) === Infinity) this.#waiting.delete(worker);
      else this.workerDue(worker);
    }
  }

  /** The leases of removed workers are their holders' alone (LB-21). */
  #isPastAge(lease: Lease | undefined, now: number): lease is Lease {
    const { maxLeaseAgeMs } = this.#core.plan.options;
    if (maxLeaseAgeMs === undefined || lease === undefined || !lease.open || lease.state.removed) return false;
    return now - lease.terms.begunAt >= maxLeaseAgeMs;
  }

  /** Releases leases past their age, oldest first; returns whether some are left. */
  #expireLeases(now: number, budget: MaintenanceBudget): boolean {
    // What a listener calls meanwhile leaves the rest to the calls after this one, however many there are.
    if (this.#isExpiring) return true;
    this.#isExpiring = true;
    const { hub, leases } = this.#core;
    try {
      return hub.afterwards(() => {
        for (let ended = 1; this.#isPastAge(leases.oldest, now); ended++) {
          this.expire(leases.oldest as Lease, now);
          if (ended % leasesPerLook === 0 && budget.spent()) return true;
        }
        return false;
      });
    } finally {
      this.#isExpiring = false;
    }
  }

  #pass(now: number, budget: MaintenanceBudget): boolean {
    const core = this.#core;
    // Listeners that call the router meanwhile begin no pass within the pass.
    this.#passAt = now + passIntervalMs;
    let isLeft = core.pins.maintain(now, budget);
    isLeft = core.kvEvents.maintain(now, budget) || isLeft;
    for (const pool of core.pools) isLeft = pool.maintain(now, budget) || isLeft;
    if (now >= this.#reportsAt) isLeft = this.#dropAgedReports(now, budget) || isLeft;
    if (isLeft) this.#passAt = now;
    return isLeft;
  }

  /**
   * Forgets reports that aged out and tells (LR-30); nobody has counted them since. Returns whether the walk goes on.
   */
  #dropAgedReports(now: number, budget: MaintenanceBudget): boolean {
    const core = this.#core;
    this.#walk ??= core.workers.values();
    let looked = 0;
    for (const worker of this.#walk) {
      if (worker.load !== undefined && !worker.hasFreshLoad(now)) loseReport(core, worker, 'aged_out');
      looked += 1;
      if (looked % workersPerLook === 0 && budget.spent()) return true;
    }
    this.#walk = undefined;
    this.#reportsAt = now + passIntervalMs;
    return false;
  }
}

/** Router time at which a draining worker settles or an open breaker turns half-open; `Infinity` = neither. */
function dueAt({ removeAt, breaker }: WorkerState): number {
  return Math.min(removeAt, breaker.halfOpenAt);
}
