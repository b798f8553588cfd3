/** Plays calls on a router: what each does to the model, and that a refused one does nothing. */
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { Lease, ReconcileResult, Router, Selection, Snapshot, Worker, WorkerSpec, WorkerStatus } from 'kvroute';
import { RequestScope } from 'kvroute';
import type { ManualClock } from 'kvroute/testing';
import { type Call, type Hostile, made } from './hostile.js';
import { judge, judgeLater, type Tally, type Verdict } from './judge.js';
import { observed, type RouterModel } from './router-model.js';

/** What a failing attempt of `route` throws: no refusal, `route` hands it on. */
class AttemptError extends Error {}

/** Plays calls on a router and checks the model after each. */
export class RouterGame {
  readonly #router: Router;
  readonly #clock: ManualClock;
  readonly #model: RouterModel;
  readonly #tally: Tally;
  readonly #started: number;
  /** Leases begun, ended ones and those of removed workers included. */
  readonly #leases: Lease[] = [];
  #eventCount = 0;

  constructor(router: Router, clock: ManualClock, model: RouterModel, tally: Tally) {
    this.#router = router;
    this.#clock = clock;
    this.#model = model;
    this.#tally = tally;
    this.#started = clock.now;
    for (const event of [
      'selected',
      'notSelected',
      'leaseBegan',
      'leaseEnded',
      'workerAdded',
      'workerRemoved',
    ] as const)
      router.on(event, () => this.#heard());
    for (const event of ['workerStatus', 'reportApplied', 'reportLost', 'placement', 'warning'] as const)
      router.on(event, () => this.#heard());
    router.on('workerStatus', ({ worker, to }) => {
      // A probe may move the status by rules of its own; whoever sets it is checked against the model.
      if (this.#probing) model.setStatus(worker.id, to, this.#now);
    });
    router.on('workerRemoved', ({ worker }) => this.#removed.push(worker.id));
  }

  #probing = false;
  readonly #removed: string[] = [];

  async play([method, ...args]: Call): Promise<void> {
    const before = observed(this.#router);
    this.#eventCount = 0;
    const verdict = await this.#call(method, args);
    if (verdict.refused) {
      strictEqual(observed(this.#router), before, `the refused ${method} changed something`);
      strictEqual(this.#eventCount, 0, `the refused ${method} told something`);
    }
    if (['explain', 'rank', 'worker', 'workers', 'pollGroups'].includes(method)) {
      strictEqual(observed(this.#router), before, `${method} changed something`);
    }
    this.#model.settle();
    this.#model.check();
  }

  get #now(): number {
    return this.#clock.now - this.#started;
  }

  #heard(): void {
    this.#eventCount += 1;
  }

  async #call(method: string, given: readonly unknown[]): Promise<Verdict> {
    const router = this.#router;
    const model = this.#model;
    const args = given.map((arg) => this.#made(arg));
    const ask = (call: () => unknown): Verdict => judge('kvroute: Router', call, this.#tally);
    const invoke = (name: string): Verdict => {
      const method = Reflect.get(router, name) as (...values: unknown[]) => unknown;
      return ask(() => method.apply(router, args));
    };
    switch (method) {
      case 'addWorker': {
        const verdict = invoke(method);
        if (!verdict.refused) this.#added(verdict.result as Worker, given[0]);
        return verdict;
      }
      case 'replaceWorker': {
        const verdict = invoke(method);
        if (verdict.refused) return verdict;
        const worker = verdict.result as Worker;
        const { status } = this.#readSpec(given[0]);
        if (model.workers.has(worker.id)) model.replace(worker.id, worker.models, status, this.#now);
        else this.#added(worker, given[0]);
        return verdict;
      }
      case 'reconcile': {
        this.#removed.length = 0;
        const verdict = invoke(method);
        if (verdict.refused) return verdict;
        const { added, replaced, removed } = verdict.result as ReconcileResult;
        deepStrictEqual(this.#removed.toSorted(), removed.toSorted());
        for (const gone of removed) model.remove(gone);
        for (const name of added) {
          const worker = router.worker(name) as Worker;
          model.add(name, worker.models, worker.status, this.#now);
        }
        for (const name of replaced) {
          model.replace(name, (router.worker(name) as Worker).models, undefined, this.#now);
        }
        return verdict;
      }
      case 'removeWorker': {
        const known = model.workers.has(args[0] as string);
        const verdict = invoke(method);
        if (!verdict.refused) strictEqual(verdict.result, known);
        if (known) model.remove(args[0] as string);
        return verdict;
      }
      case 'setStatus': {
        const known = model.workers.has(args[0] as string);
        const verdict = invoke(method);
        if (verdict.refused) return verdict;
        strictEqual(verdict.result, known);
        if (known) model.setStatus(args[0] as string, args[1] as WorkerStatus, this.#now);
        return verdict;
      }
      case 'recordProbe': {
        this.#probing = true;
        const verdict = invoke(method);
        this.#probing = false;
        return verdict;
      }
      case 'selectWorker': {
        const verdict = invoke(method);
        if (!verdict.refused) model.checkSelection(verdict.result as Selection, excluded(given[0]));
        return verdict;
      }
      case 'acquire':
      case 'begin': {
        const verdict = invoke(method);
        if (verdict.refused) return verdict;
        const { lease } = (method === 'begin' ? { lease: verdict.result } : verdict.result) as { lease?: Lease };
        if (lease !== undefined) {
          this.#leases.push(lease);
          model.begun(lease);
        }
        return verdict;
      }
      case 'route':
        return judgeLater(
          'kvroute: Router',
          async () => {
            try {
              return await Reflect.apply(router.route, router, args);
            } catch (error) {
              if (error instanceof AttemptError) return error;
              throw error;
            }
          },
          this.#tally,
        );
      case 'kvApply':
        return ask(() => router.kvEvents.applyBatch(args[0] as string, args[1] as never));
      case 'kvReset':
        return ask(() => router.kvEvents.reset(args[0] as string));
      case 'restoreOwn': {
        const own = JSON.parse(JSON.stringify(router.snapshot())) as Snapshot;
        const before = observed(router);
        const verdict = ask(() => router.restore(own));
        strictEqual(observed(router), before);
        return verdict;
      }
      case 'end':
        return this.#withLease(args[0] as number, (lease) => ask(() => lease.end(args[1] as never)));
      case 'follow':
        return this.#withLease(args[0] as number, (lease) => {
          return ask(() => lease.follow(args[1], args[2] as never));
        });
      case 'advance': {
        this.#clock.advance(given[0] as number);
        const verdict = ask(() => {
          while (router.maintain());
        });
        model.timePassed(this.#now);
        return verdict;
      }
      default:
        return invoke(method);
    }
  }

  #added(worker: Worker, description: unknown): void {
    const { id: own, url, status } = this.#readSpec(description);
    if (own !== undefined || url !== undefined) strictEqual(worker.id, own ?? url);
    const isPlain = typeof description === 'object' && description !== null && !('$' in description);
    this.#model.add(worker.id, worker.models, isPlain ? (status ?? 'ready') : worker.status, this.#now);
  }

  /** What of a spec can be read off its description: hostile objects that pass as specs say nothing here. */
  #readSpec(description: unknown): Partial<WorkerSpec> {
    if (typeof description !== 'object' || description === null || '$' in description) return {};
    const { id: own, url, status } = made(description) as WorkerSpec;
    return { id: own, url, status };
  }

  #withLease(index: number, call: (lease: Lease) => Verdict): Verdict {
    const lease = this.#leases[index % Math.max(1, this.#leases.length)];
    return lease === undefined ? { refused: false, result: undefined } : call(lease);
  }

  /** Values that only a running game can make, and those of `made`. */
  #made(description: unknown): unknown {
    if (typeof description === 'object' && description !== null && !Array.isArray(description)) {
      const { $: name } = description as Partial<Hostile>;
      switch (name) {
        case 'live':
          return new AbortController().signal;
        case 'aborted':
          return AbortSignal.abort(new TypeError('request: expected a client, got none'));
        case 'scope':
          return new RequestScope();
        case 'answers':
          return () => ({ status: 200 });
        case 'fails':
          return () => {
            throw new AttemptError();
          };
        case 'follows':
          return (_: unknown, { lease }: { lease: Lease }) => lease.follow(null);
        case 'sleeps':
          return async () => {};
        case 'judges':
          return () => ({ status: 500 });
        case 'stream':
          return new ReadableStream();
        case 'throws':
          return () => {
            throw new Error('an observer failed');
          };
      }
      if (name === undefined) {
        return Object.defineProperties(
          {},
          Object.fromEntries(
            Object.entries(description).map(([key, part]) => [
              key,
              { value: this.#made(part), enumerable: true, configurable: true, writable: true },
            ]),
          ),
        );
      }
    }
    return made(description);
  }
}

/** The exclusions of a request's description, when they are a sound list. */
function excluded(description: unknown): unknown {
  const { exclude } = (description ?? {}) as { readonly exclude?: unknown };
  return Array.isArray(exclude) ? exclude.filter((value) => typeof value === 'string') : undefined;
}
