/** Makes the calls of a `Traffic` on a router and keeps the leases they begin. */
import { setMaxListeners } from 'node:events';
import type { Lease, LoadReport, ReportEntry, RouteRequest, Router, Selection, SnapshotPiece } from 'kvroute';
import type { ManualClock } from 'kvroute/testing';
import type { Call } from './traffic.js';

/** A lease with the controller of its own signal, when it has one. */
interface Held {
  readonly lease: Lease;
  readonly controller: AbortController | undefined;
  readonly isShared: boolean;
}

/** Runs one public call of the router; a place to measure. */
export type Around = <T>(label: string, call: () => T) => T;

const plainly: Around = (_label, call) => call();

export class Player {
  readonly router: Router;
  /** Watches many requests and never aborts (B35). */
  readonly sharedSignal: AbortSignal = new AbortController().signal;
  /** Told of every selection, and of every snapshot with its pieces. */
  selected: ((request: RouteRequest, selection: Selection) => void) | undefined;
  snapshotTaken: ((pieces: readonly SnapshotPiece[]) => void) | undefined;
  readonly #clock: ManualClock;
  readonly #around: Around;
  #held: Held[] = [];
  #forgotten: Lease[] = [];

  constructor(router: Router, clock: ManualClock, around: Around = plainly) {
    this.router = router;
    this.#clock = clock;
    this.#around = around;
    setMaxListeners(0, this.sharedSignal);
  }

  /** Leases that nobody has ended: those held, of removed workers too, and those their owner forgot. */
  openLeases(): Lease[] {
    this.#held = this.#held.filter(({ lease }) => lease.open);
    // One whose worker has left never ends; nobody but its host could hold it, and that one has forgotten it.
    this.#forgotten = this.#forgotten.filter(
      (lease) => lease.open && this.router.worker(lease.worker.id) === lease.worker,
    );
    return [...this.#held.map(({ lease }) => lease), ...this.#forgotten];
  }

  play(call: Call): void {
    const { router } = this;
    const around = this.#around;
    switch (call.do) {
      case 'select':
        this.#select(call);
        break;
      case 'explain':
        around('explain', () => router.explain(call.request));
        break;
      case 'rank':
        around('rank', () => router.rank(call.request, { limit: 4 }));
        break;
      case 'elsewhere':
        if (around('worker', () => router.worker(call.worker)) === undefined) break;
        this.#hold(around('begin', () => router.begin(call.worker, { routingKey: call.routingKey })));
        break;
      case 'end':
        this.#end(call);
        break;
      case 'register':
        around('replaceWorker', () => router.replaceWorker(call.spec));
        break;
      case 'remove':
        around('removeWorker', () => router.removeWorker(call.worker));
        break;
      case 'status':
        around('setStatus', () => router.setStatus(call.worker, call.status));
        break;
      case 'probe':
        around('recordProbe', () => router.recordProbe(call.worker, call.ok));
        break;
      case 'outcome':
        around('recordOutcome', () => router.recordOutcome(call.worker, call.outcome));
        break;
      case 'reports': {
        const batch = call.batch.map(
          ({ worker, report, ageMs }): ReportEntry => [worker, this.#stamped(report, ageMs)],
        );
        around('reportLoads', () => router.reportLoads(batch));
        break;
      }
      case 'kvEvents':
        around('kvEvents.applyBatch', () => router.kvEvents.applyBatch(call.worker, call.batch));
        break;
      case 'kvReset':
        around('kvEvents.reset', () => router.kvEvents.reset(call.worker));
        break;
      case 'clock':
        this.#clock.set(this.#clock.now + call.byMs);
        break;
      case 'maintain':
        around('maintain', () => router.maintain());
        break;
      case 'snapshot':
        this.snapshot();
        break;
    }
  }

  /** Takes a snapshot piece by piece, and merges each piece back: a merge of what is known changes nothing. */
  snapshot(): void {
    const { router } = this;
    const walk = router.snapshotPieces();
    const pieces: SnapshotPiece[] = [];
    for (;;) {
      const next = this.#around('snapshotPieces', () => walk.next());
      if (next.done === true) break;
      pieces.push(next.value);
    }
    this.snapshotTaken?.(pieces);
    for (const piece of pieces) this.#around('restorePiece', () => router.restorePiece(piece));
  }

  /** Ends what is open; forgotten leases stay so. */
  endAll(): void {
    for (const { lease } of this.#held) lease.end({ status: 200 });
    this.#held.length = 0;
  }

  #select({ request, candidates, begin }: Call & { do: 'select' }): void {
    const { router } = this;
    const selection = this.#around('selectWorker', () => router.selectWorker(request, candidates));
    this.selected?.(request, selection);
    if (!selection.ok || begin === undefined) return;
    const controller = begin.signal === 'own' ? new AbortController() : undefined;
    const signal = begin.signal === 'shared' ? this.sharedSignal : controller?.signal;
    this.#hold(
      this.#around('begin', () => selection.begin({ signal, scope: begin.scope })),
      controller,
      begin.signal === 'shared',
    );
  }

  #hold(lease: Lease, controller?: AbortController, isShared = false): void {
    this.#held.push({ lease, controller, isShared });
  }

  #end({ which, how, outcome }: Call & { do: 'end' }): void {
    const at = Math.floor(which * this.#held.length);
    const held = this.#held[at];
    if (held === undefined) return;
    this.#held[at] = this.#held[this.#held.length - 1] as Held;
    this.#held.pop();
    const { lease, controller, isShared } = held;
    // A signal that outlives the request would keep what is forgotten alive: whoever shares one ends its leases.
    if (how === 'forget' && !isShared) this.#forgotten.push(lease);
    else if (how === 'dispose') this.#around('dispose', () => lease[Symbol.dispose]());
    else if (how === 'abort' && controller !== undefined) this.#around('abort', () => controller.abort());
    else this.#around('end', () => lease.end(how === 'abort' ? { aborted: true } : outcome));
  }

  #stamped(report: LoadReport | null, ageMs: number | undefined): LoadReport | null {
    return report === null || ageMs === undefined ? report : { ...report, observedAt: this.#clock.now - ageMs };
  }
}
