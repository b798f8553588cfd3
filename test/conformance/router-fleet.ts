/**
 * Runs a row on a router: the workers of the row are registered in order, and every state the row gives comes about as
 * it would in a host (CC-16): reports, leases, breaker outcomes, placements, KV events, and for `bucket` traffic.
 */

import { createRouter, type Lease, type LoadReport, namespaceKey, type Router } from 'kvroute';
import { sizesFor } from './bucket-traffic.js';
import { routerOptions } from './config.js';
import { type Fleet, type Outcome, RowClock, randomFor, reportOf, requestOf } from './fleet.js';
import { blocksOf } from './kv-blocks.js';
import {
  type DecisionRow,
  type RequestRow,
  type SetupStep,
  textOf,
  tokensOf,
  UnmappableRow,
  type WorkerRow,
} from './row.js';

/** Waiting requests that veto a worker which the row calls overloaded: more than any row reports. */
const overloadThreshold = 1_000_000_000;

/** Breaker checks of BU-9, milliseconds. */
const bucketCheckMs = 5000;

interface HeldLease {
  readonly lease: Lease;
  readonly key: string | undefined;
}

export class RouterFleet implements Fleet {
  readonly #clock: RowClock;
  readonly #row: DecisionRow;
  readonly #router: Router;
  readonly #leases = new Map<string, HeldLease[]>();
  /** The last report of each worker, without what makes it overloaded. */
  readonly #reports = new Map<string, LoadReport>();
  /** Never behind the use counter of any tree, so that what is seeded after selections is newer than they are. */
  #uses = 0;

  static async create(row: DecisionRow, seed: number): Promise<RouterFleet> {
    const clock = new RowClock();
    // The way a prefill leg has it: with boundaries (CC-12).
    const ranges = row.policy === 'bucket' ? { bucket: { legs: 'any' } } : {};
    const options = routerOptions({ ...row.config, ...ranges, policy: row.policy });
    const router = await createRouter({ ...options, clock: clock.read, random: randomFor(seed) });
    return new RouterFleet(row, router, clock);
  }

  constructor(row: DecisionRow, router: Router, clock: RowClock) {
    this.#row = row;
    this.#router = router;
    this.#clock = clock;
    const overloadable = new Set(row.workers.filter((worker) => worker.overloaded).map(({ id }) => id));
    for (const step of row.setup) if (step.op === 'set' && step.values.overloaded) overloadable.add(step.worker);
    // Sizes are routed, and ranges shaped, while everybody is available: both outlast availability (BU-6).
    const everybody = row.state.routed !== undefined || row.state.ranges !== undefined;
    for (const { id, status } of row.workers) {
      const overload = overloadable.has(id) ? { waitingRequests: overloadThreshold } : undefined;
      router.addWorker({ id, status: everybody ? undefined : status, overload });
      this.#leases.set(id, []);
    }
    this.#shapeBuckets();
    this.#driveBreakers('half_open');
    for (const [id, size] of Object.entries(row.state.routed ?? {})) {
      router.selectWorker({ text: 'x'.repeat(size) }, [id]);
    }
    this.#driveBreakers('open');
    if (everybody) for (const { id, status } of row.workers) if (status !== undefined) router.setStatus(id, status);
    this.#reportAll();
    for (const { id, inFlight } of row.workers) this.#begin(id, inFlight ?? 0);
    this.#fillKvIndex();
  }

  select(request: RequestRow): Outcome {
    this.#uses += 1;
    const selection = this.#router.selectWorker(this.#requestOf(request));
    const { branch, level, source, matchedRatio: ratio } = selection.record;
    return { worker: selection.ok ? selection.worker.id : undefined, branch, level, source, ratio };
  }

  scores(request: RequestRow): ReadonlyMap<string, number> {
    const { policy } = this.#router.explain(this.#requestOf(request));
    return new Map((policy.scores ?? policy.delegated?.scores)?.map(({ worker, score }) => [worker, score]));
  }

  apply(step: Exclude<SetupStep, { op: 'select' }>): void {
    switch (step.op) {
      case 'report':
        this.#router.reportLoads(
          Object.entries(step.reports).map(([id, report]) => [
            id,
            report === null ? null : this.#remember(id, reportOf(report, this.#clock.read())),
          ]),
        );
        return;
      case 'set':
        this.#set(step.worker, step.values);
        return;
      case 'acquire':
        this.#begin(step.worker, step.n ?? 1, step.key);
        return;
      case 'release':
        this.#end(step.worker, step.n ?? 1, step.key);
        return;
      case 'advance':
        this.#clock.advance(step.secs * 1000);
        return;
      case 'seed':
        this.#seed(step);
        return;
      case 'remove':
        if (!this.#router.removeWorker(step.worker)) throw new UnmappableRow(`worker ${step.worker} is unknown`);
        return;
      case 'adjustBuckets': {
        // The next instant at which a check is due, counted from the first registration.
        this.#clock.advance(bucketCheckMs - (this.#clock.read() % bucketCheckMs));
        this.#router.maintain();
        return;
      }
    }
  }

  /** Of a `bucket` row a leg only says which pool the policy stands for, and here it is the only one (CC-12). */
  #requestOf(row: RequestRow) {
    const { leg, model, ...rest } = requestOf(row);
    return this.#row.policy === 'bucket' ? rest : { ...rest, leg, model };
  }

  /** Brings about the ranges of the row by the traffic that leads to them, and lets it expire (BU-7, BU-10). */
  #shapeBuckets(): void {
    const { ranges } = this.#row.state;
    if (ranges === undefined) return;
    if (ranges.some(([id], i) => id !== this.#row.workers[i]?.id)) {
      throw new UnmappableRow('ranges must be given for all workers in order');
    }
    for (const size of sizesFor(ranges.map(([, , high]) => high))) {
      this.#router.selectWorker({ text: 'x'.repeat(size) });
    }
    this.#clock.advance(bucketCheckMs);
    this.#router.maintain();
    this.#clock.advance(bucketCheckMs);
    this.#router.maintain();
  }

  /** Open breakers by outcomes; half-open ones by outcomes and then the clock, so those come first (CC-16). */
  #driveBreakers(state: 'half_open' | 'open'): void {
    const workers = this.#row.workers.filter(({ breaker }) => breaker === state);
    for (const { id } of workers) this.#breakTo(id, 'open');
    if (state === 'half_open' && workers.length > 0) this.#clock.advance(this.#breakerTimeoutMs());
  }

  #breakTo(id: string, state: NonNullable<WorkerRow['breaker']>): void {
    const current = (): string | undefined => this.#router.worker(id)?.breakerState;
    if (state === 'closed') {
      if (current() === 'open') this.#clock.advance(this.#breakerTimeoutMs());
      while (current() === 'half_open') this.#router.recordOutcome(id, { status: 200 });
      return;
    }
    for (let i = 0; current() !== 'open' && i < 1000; i++) this.#router.recordOutcome(id, { status: 500 });
    if (state === 'half_open') this.#clock.advance(this.#breakerTimeoutMs());
    if (current() !== state) throw new UnmappableRow(`the breaker of ${id} cannot be brought to ${state}`);
  }

  #breakerTimeoutMs(): number {
    const section = this.#row.config.circuitBreaker as { readonly timeoutDurationSecs?: number } | undefined;
    return (section?.timeoutDurationSecs ?? 60) * 1000;
  }

  #reportAll(): void {
    this.#router.reportLoads(
      this.#row.workers.flatMap(({ id, report, overloaded }) => {
        if (report) this.#remember(id, reportOf(report, this.#clock.read()));
        return report || overloaded ? [[id, this.#currentReport(id, overloaded === true)] as const] : [];
      }),
    );
  }

  #remember(id: string, report: LoadReport): LoadReport {
    this.#reports.set(id, report);
    return report;
  }

  /** The worker's report, with so many waiting requests on top that the veto comes, when wanted. */
  #currentReport(id: string, overloaded: boolean): LoadReport | null {
    const report = this.#reports.get(id);
    if (!overloaded) return report ?? null;
    const [first, ...others] = report?.ranks ?? [report ?? {}];
    const waitingRequests = (first?.waitingRequests ?? 0) + overloadThreshold;
    return { ranks: [{ ...first, waitingRequests }, ...others], observedAt: report?.observedAt };
  }

  #fillKvIndex(): void {
    const blockSize = (this.#row.config.blockSize as number | undefined) ?? 16;
    for (const [id, sequences] of Object.entries(this.#row.state.kvIndex ?? {})) {
      const events = blocksOf(sequences, blockSize);
      const result = this.#router.kvEvents.applyBatch(id, { sequence: 1, events });
      if (result.result !== 'applied') throw new UnmappableRow(`KV events of ${id}: ${result.result}`);
    }
  }

  #set(id: string, values: Partial<WorkerRow>): void {
    const { inFlight, status, breaker, overloaded, report } = values;
    if (status !== undefined) this.#router.setStatus(id, status);
    if (breaker !== undefined) this.#breakTo(id, breaker);
    if (report) this.#remember(id, reportOf(report, this.#clock.read()));
    else if (report === null) this.#reports.delete(id);
    if (report !== undefined || overloaded !== undefined) {
      this.#router.reportLoad(id, this.#currentReport(id, overloaded === true));
    }
    if (inFlight !== undefined) {
      const held = this.#held(id);
      this.#begin(id, inFlight - held.length);
      // Those without a key go first: a key's requests end by `release`.
      const keyless = held.filter(({ key }) => key === undefined).length;
      this.#end(id, Math.min(keyless, held.length - inFlight));
      while (held.length > inFlight) this.#end(id, 1, held[0]?.key);
    }
  }

  #begin(id: string, n: number, routingKey?: string): void {
    for (let i = 0; i < n; i++) {
      this.#held(id).push({ lease: this.#router.begin(id, { routingKey }), key: routingKey });
    }
  }

  #end(id: string, n: number, key?: string): void {
    const held = this.#held(id);
    for (let i = 0; i < n; i++) {
      const at = held.findIndex((entry) => entry.key === key);
      if (at < 0) throw new UnmappableRow(`${id} has fewer requests in flight than the row releases`);
      // The client went away: nothing is recorded for the breaker.
      held.splice(at, 1)[0]?.lease.end({ aborted: true });
    }
  }

  #held(id: string): HeldLease[] {
    const held = this.#leases.get(id);
    if (held === undefined) throw new UnmappableRow(`worker ${id} is unknown`);
    return held;
  }

  #seed(step: Extract<SetupStep, { op: 'seed' }>): void {
    const units = tokensOf(step) ?? textOf(step) ?? '';
    const learned = typeof units === 'string' ? 'text' : 'tokens';
    const kind = this.#row.config.cacheIndex === 'hash' ? 'hash' : learned;
    const namespace = namespaceKey(step.namespace);
    for (const worker of step.tenants) {
      this.#uses += 1;
      this.#router.applyPlacement({ model: 'unknown', leg: 'single', kind, namespace, units, worker, use: this.#uses });
    }
  }
}
