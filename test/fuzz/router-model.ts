/**
 * What a router's state has to be after a series of calls, kept in the simplest way: a list of workers, of leases, of
 * pins. What only the router can know, such as who was selected, is taken from results and events and checked for being
 * possible.
 */

import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { Lease, Router, Selection, Worker, WorkerId, WorkerStatus } from 'kvroute';

/** A worker as the model knows it. */
export interface ModelWorker {
  readonly id: WorkerId;
  models: readonly string[];
  status: WorkerStatus;
  revision: number;
  inFlight: number;
  creditRequests: number;
  selections: number;
  /** When a draining one goes. */
  removeAt: number;
}

interface ModelLease {
  readonly lease: Lease;
  readonly worker: ModelWorker;
}

const drainSettleMs = 5000;

/** Everything about a router that can be observed, as text. */
export function observed(router: Router): string {
  return JSON.stringify([
    router.workers().map((worker) => {
      const { id, url, kind, models, status, inFlight, activeKeys, creditTokens, creditRequests } = worker;
      const { available, breakerState, consecutiveFailures, consecutiveSuccesses, selections, revision } = worker;
      const counts = [inFlight, activeKeys, creditTokens, creditRequests, selections, revision];
      const breaker = [breakerState, consecutiveFailures, consecutiveSuccesses];
      const reported = [worker.report !== undefined, worker.overload?.signal];
      return [id, url, kind, models, [...worker.labels], status, available, counts, breaker, reported];
    }),
    router.pools(),
    [router.leases().open, [...router.leases().byWorker]],
    router.pinCount,
    router.warnings.length,
    router.kvEvents.counts,
    router.snapshot(),
  ]);
}

function stateOf({ models, status, revision, inFlight, creditRequests, selections }: ModelWorker | Worker): unknown {
  return { models: [...models], status, revision, inFlight, creditRequests, selections };
}

export class RouterModel {
  readonly workers = new Map<WorkerId, ModelWorker>();
  leases: ModelLease[] = [];
  readonly #router: Router;

  constructor(router: Router) {
    this.#router = router;
    router.on('selected', ({ worker }) => {
      const known = this.#known(worker.id);
      known.creditRequests += 1;
      known.selections += 1;
    });
    router.on('reportApplied', ({ worker }) => {
      this.#known(worker.id).creditRequests = 0;
    });
  }

  add(id: WorkerId, models: readonly string[], status: WorkerStatus, now: number): void {
    ok(!this.workers.has(id));
    const worker = {
      id,
      models,
      status,
      revision: 0,
      inFlight: 0,
      creditRequests: 0,
      selections: 0,
      removeAt: Infinity,
    };
    if (status === 'draining') worker.removeAt = now + drainSettleMs;
    this.workers.set(id, worker);
  }

  replace(id: WorkerId, models: readonly string[], status: WorkerStatus | undefined, now: number): void {
    const worker = this.#known(id);
    worker.models = models;
    worker.revision += 1;
    if (status !== undefined) this.setStatus(id, status, now);
  }

  remove(id: WorkerId): void {
    this.workers.delete(id);
    this.leases = this.leases.filter(({ worker }) => worker.id !== id);
  }

  setStatus(id: WorkerId, status: WorkerStatus, now: number): void {
    const worker = this.#known(id);
    if (worker.status === status) return;
    worker.status = status;
    worker.removeAt = status === 'draining' ? now + drainSettleMs : Infinity;
  }

  timePassed(now: number): void {
    for (const { id, removeAt } of [...this.workers.values()]) if (removeAt <= now) this.remove(id);
  }

  begun(lease: Lease): void {
    const worker = this.#known(lease.worker.id);
    if (!lease.open) return;
    worker.inFlight += 1;
    this.leases.push({ lease, worker });
  }

  /** A lease may have ended: it counts no longer. */
  settle(): void {
    for (const { lease, worker } of this.leases) if (!lease.open) worker.inFlight -= 1;
    this.leases = this.leases.filter(({ lease }) => lease.open);
  }

  /** Whether a selection was possible: one of the ready workers that serve the model and are not excluded. */
  checkSelection(selection: Selection, exclude: unknown): void {
    if (!selection.ok) {
      strictEqual(typeof selection.code, 'string');
      return;
    }
    const worker = this.#known(selection.worker.id);
    strictEqual(worker.status, 'ready');
    if (Array.isArray(exclude)) ok(!exclude.includes(worker.id));
    const { model } = selection.record;
    if (model !== 'unknown') ok(worker.models.includes(model));
  }

  check(): void {
    const router = this.#router;
    const real = router.workers();
    deepStrictEqual(
      real.map(({ id }) => id),
      [...this.workers.keys()],
    );
    for (const worker of real) {
      const known = this.#known(worker.id);
      deepStrictEqual(stateOf(worker), stateOf(known), worker.id);
      ok(worker.creditTokens >= 0 && worker.creditTokens < Infinity, `credit ${worker.creditTokens}`);
      if (known.inFlight === 0) strictEqual(worker.activeKeys, 0);
      if (known.status !== 'ready') ok(!worker.available);
    }
    const leases = router.leases();
    strictEqual(leases.open, this.leases.length);
    for (const [id, open] of leases.byWorker) strictEqual(this.#known(id).inFlight, open);
    // A regular router has pools for its regular workers only.
    const pooled = real.filter(({ kind }) => kind === 'regular');
    const models = new Set(pooled.flatMap((worker) => worker.models)).add('unknown');
    deepStrictEqual(new Set(router.pools().map((pool) => pool.model)), models);
    for (const pool of router.pools()) {
      const members = pooled.filter(({ models: own }) => pool.model === 'unknown' || own.includes(pool.model));
      deepStrictEqual(new Set(pool.workers), new Set(members.map(({ id }) => id)));
    }
  }

  #known(id: WorkerId): ModelWorker {
    const worker = this.workers.get(id);
    if (worker === undefined) throw new Error(`the model does not know ${id}`);
    return worker;
  }
}
