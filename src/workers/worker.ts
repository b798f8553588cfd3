/**
 * A registered worker: identity from its spec, and the live signals every policy reads by plain property access. All
 * state of one worker has its home here, so removal has one place to look (LB-30); a host sees it as the read-only
 * `Worker`.
 *
 * Invariants: `inFlight` is never negative and equals the open leases begun on this instance (WK-31, LB-21); an entry
 * of `#keysInFlight` is never 0 (WK-43); a veto never outlives the report it was reached on (OV-9).
 */
import type { LoadSummary } from '../load/load-summary.js';
import type { LoadReport } from '../load/report.js';
import type { ElapsedTime } from '../runtime/clock.js';
import type { Membership } from './available-list.js';
import { Breaker, type BreakerConfig, type BreakerState } from './breaker.js';
import type { Candidate, WorkerId, WorkerSignals } from './candidate.js';
import { type HealthConfig, HealthState, type WorkerStatus } from './health.js';
import type { OutcomeCodes } from './outcome-class.js';
import type { OverloadThresholds, OverloadVerdict } from './overload.js';
import type { CheckedWorkerSpec, ConnectionMode, RuntimeType, WorkerKind } from './worker-spec.js';

/** A registered worker as a host sees it. Properties are live; those that depend on time hold as of the last call. */
export interface Worker extends Candidate {
  /** What everything the router keeps of it is kept under (WK-1). */
  readonly id: WorkerId;
  /** As registered; undefined for one that the host knows by its id alone (WK-1). */
  readonly url: string | undefined;
  /** What it does in a disaggregated deployment (WK-4). */
  readonly kind: WorkerKind;
  /** How the host talks to it (WK-5). */
  readonly connectionMode: ConnectionMode;
  /** The engine it runs; undefined = not known (WK-6). */
  readonly runtime: RuntimeType | undefined;
  /** Model keys, the primary one first; `['unknown']` when none was named (WK-10). */
  readonly models: readonly string[];
  /** As registered; some have a meaning for routing (WK-7). */
  readonly labels: ReadonlyMap<string, string>;
  /** Only `ready` workers receive new requests (WK-18). */
  readonly status: WorkerStatus;
  /** Ready, not blocked by its breaker and not vetoed (WK-20). */
  readonly available: boolean;
  /** Requests dispatched to it that have not ended (WK-30). */
  readonly inFlight: number;
  /** Distinct routing keys in flight (WK-41). */
  readonly activeKeys: number;
  /** Its report while it is fresh, else undefined (LR-30). */
  readonly report: LoadReport | undefined;
  /** Tokens of the requests it was selected for since its last report (EW-12). */
  readonly creditTokens: number;
  /** How many requests that were. */
  readonly creditRequests: number;
  /** State of its circuit breaker, an elapsed timeout included (CB-7). */
  readonly breakerState: BreakerState;
  /** Failed requests since its last success; 0 again once its breaker is half-open (CB-2, CB-4). */
  readonly consecutiveFailures: number;
  /** Successes since its last failure, or since its breaker last changed its state (CB-5). */
  readonly consecutiveSuccesses: number;
  /** The signal that vetoes it, or undefined (OV-7). */
  readonly overload: OverloadVerdict | undefined;
  /** Its own poll interval in milliseconds, at least 1 000; undefined = its group's (LR-20). */
  readonly loadMonitorIntervalMs: number | undefined;
  /** Port of a prefill worker's bootstrap server, which the host writes into both bodies of a pair. */
  readonly bootstrapPort: number | undefined;
  /** Selections since registration; observed only, no policy decides on it (WK-50). */
  readonly selections: number;
  /** Counts replacements, from 0 (WK-3). */
  readonly revision: number;
}

/** What a worker runs with: its own settings where its spec gives some, else the router's. */
export interface WorkerSettings {
  /** When its breaker opens and closes (CB-40). */
  readonly breaker: BreakerConfig;
  /** What probes make of its status (WK-19). */
  readonly health: HealthConfig;
  /** What vetoes it (OV-4). */
  readonly overload: OverloadThresholds;
  /** What its answers mean to its breaker (CB-21). */
  readonly codes: OutcomeCodes;
}

/** A worker as the router keeps it. */
export class WorkerState implements Worker, WorkerSignals {
  readonly id: WorkerId;
  spec: CheckedWorkerSpec;
  settings: WorkerSettings;
  readonly breaker: Breaker;
  readonly health: HealthState;
  inFlight = 0;
  creditTokens = 0;
  creditRequests = 0;
  load: LoadSummary | undefined = undefined;
  /** The verdict on `load`; it counts only while `load` is fresh. */
  verdict: OverloadVerdict | undefined = undefined;
  selections = 0;
  revision = 0;
  idLanes: readonly [number, number] | undefined = undefined;
  /** Warnings that are given once a worker. */
  readonly warned: Set<string> = new Set();
  /** Set when it left the registry: late ends touch nothing but this instance (LB-21). */
  removed = false;
  /** Router time at which a draining worker is removed; `Infinity` = not draining. */
  removeAt: number = Infinity;
  /** Its places in lists, whose running sums its in-flight count is part of. Emptied on removal. */
  memberships: Membership[] = [];
  readonly #time: ElapsedTime;
  readonly #keysInFlight = new Map<string, number>();

  constructor(spec: CheckedWorkerSpec, settings: WorkerSettings, time: ElapsedTime) {
    this.id = spec.id;
    this.spec = spec;
    this.settings = settings;
    this.breaker = new Breaker(settings.breaker);
    this.health = new HealthState(settings.health, spec.status);
    this.#time = time;
  }

  get url(): string | undefined {
    return this.spec.url;
  }
  get kind(): WorkerKind {
    return this.spec.kind;
  }
  get connectionMode(): ConnectionMode {
    return this.spec.connectionMode;
  }
  get runtime(): RuntimeType | undefined {
    return this.spec.runtime;
  }
  get models(): readonly string[] {
    return this.spec.models;
  }
  get labels(): ReadonlyMap<string, string> {
    return this.spec.labels;
  }
  get loadMonitorIntervalMs(): number | undefined {
    return this.spec.loadMonitorIntervalMs;
  }
  get bootstrapPort(): number | undefined {
    return this.spec.bootstrapPort;
  }
  get status(): WorkerStatus {
    return this.health.status;
  }
  get available(): boolean {
    return this.isAvailable(this.#time.now);
  }
  get activeKeys(): number {
    return this.#keysInFlight.size;
  }
  get report(): LoadReport | undefined {
    return this.hasFreshLoad(this.#time.now) ? this.load?.report : undefined;
  }
  get breakerState(): BreakerState {
    return this.breaker.state(this.#time.now);
  }
  get consecutiveFailures(): number {
    return this.breaker.consecutiveFailures(this.#time.now);
  }
  get consecutiveSuccesses(): number {
    return this.breaker.consecutiveSuccesses(this.#time.now);
  }
  get overload(): OverloadVerdict | undefined {
    return this.vetoAt(this.#time.now);
  }

  /** Whether its report counts at `now` (LR-30). */
  hasFreshLoad(now: number): boolean {
    return this.load !== undefined && this.load.expiresAt > now;
  }

  /** What vetoes it at `now`: the verdict, as long as the report it was reached on is fresh (OV-9). */
  vetoAt(now: number): OverloadVerdict | undefined {
    return this.verdict !== undefined && this.hasFreshLoad(now) ? this.verdict : undefined;
  }

  /** WK-20, the one availability predicate of every policy and branch (B51). */
  isAvailable(now: number): boolean {
    return this.health.status === 'ready' && this.breaker.allows(now) && this.vetoAt(now) === undefined;
  }

  /** Router time at which waiting alone may make it available; `Infinity` when only an event can. */
  get availableAt(): number {
    if (this.health.status !== 'ready') return Infinity;
    const vetoEnds = this.verdict !== undefined && this.load !== undefined ? this.load.expiresAt : 0;
    const breakerEnds = this.breaker.halfOpenAt === Infinity ? 0 : this.breaker.halfOpenAt;
    // Both must have passed; one that already has does no harm, the list is simply looked at again.
    return Math.max(vetoEnds, breakerEnds);
  }

  keyInFlight(pinKey: string): number {
    return this.#keysInFlight.get(pinKey) ?? 0;
  }

  /** Counts a dispatched request, with its pin key when it has one (WK-30, WK-43). */
  countBegin(pinKey: string | undefined): void {
    this.inFlight += 1;
    this.#addToSums(1);
    if (pinKey !== undefined) this.#keysInFlight.set(pinKey, this.keyInFlight(pinKey) + 1);
  }

  /** Undoes one `countBegin`; called once for each, by the lease. */
  countEnd(pinKey: string | undefined): void {
    this.inFlight -= 1;
    this.#addToSums(-1);
    if (pinKey === undefined) return;
    const left = this.keyInFlight(pinKey) - 1;
    if (left > 0) this.#keysInFlight.set(pinKey, left);
    else this.#keysInFlight.delete(pinKey);
  }

  #addToSums(change: 1 | -1): void {
    for (const membership of this.memberships) membership.list.addInFlight(membership, change);
  }
}
