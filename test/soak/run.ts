/** Runs the soak: routers in turn, a step of traffic each, on virtual clocks; audits on the way, everything ended at last. */
import { getEventListeners } from 'node:events';
import { createRouter } from 'kvroute';
import { manualClock } from 'kvroute/testing';
import { Player } from '../support/player.js';
import { type Call, Traffic } from '../support/traffic.js';
import { Audit } from './audit.js';
import type { Meter } from './meter.js';
import { bounds, maxLeaseAgeMs, optionsOf, type Subject } from './subjects.js';

export interface Phase {
  readonly name: string;
  readonly subjects: readonly Subject[];
  /** Workers of each router at the start. */
  readonly workers: number;
  /** Selections in all. */
  readonly selections: number;
  /** The first selections, which with the registration of the fleet make the start. Default 0. */
  readonly startSelections?: number | undefined;
  /** Bytes in use after a collection; undefined = not measured. */
  readonly heap?: (() => Promise<number>) | undefined;
  readonly progress?: ((done: number) => void) | undefined;
}

export interface SubjectResult {
  readonly name: string;
  readonly selections: number;
  readonly refused: number;
  readonly calls: number;
  readonly largestTree: number;
  readonly mostPins: number;
  readonly mostRotations: number;
  readonly mostHeads: number;
  readonly recounts: number;
}

export interface PhaseResult {
  readonly name: string;
  readonly subjects: readonly SubjectResult[];
  readonly findings: readonly string[];
  /** Bytes in use at the middle and at the end of the traffic, and after everything was ended and dropped. */
  readonly heap: readonly number[];
}

/** Steps between two audits of a router, and between two turns of the event loop. */
const stepsPerAudit = 2000;
const stepsPerTurn = 500;

export async function runPhase(phase: Phase, meter: Meter): Promise<PhaseResult> {
  const heap: number[] = [];
  const { startSelections = 0 } = phase;
  meter.isStarting = true;
  let runs: Run[] = [];
  for (const [i, subject] of phase.subjects.entries()) runs.push(await Run.start(subject, phase.workers, i + 1, meter));
  const middle = Math.floor(phase.selections / 2);
  for (let done = 0; done < phase.selections; done++) {
    meter.isStarting = done < startSelections;
    if (done === middle && phase.heap !== undefined) heap.push(await phase.heap());
    (runs[done % runs.length] as Run).step();
    if (done % stepsPerTurn !== 0) continue;
    await meter.settle();
    phase.progress?.(done);
  }
  if (phase.heap !== undefined) heap.push(await phase.heap());
  for (const run of runs) run.end();
  await meter.settle();
  const findings = runs.flatMap((run) => run.audit.findings);
  const subjects = runs.map((run) => run.result());
  runs = [];
  if (phase.heap !== undefined) heap.push(await phase.heap());
  return { name: phase.name, subjects, findings, heap };
}

/** One router under traffic. */
class Run {
  readonly audit: Audit;
  readonly #subject: Subject;
  readonly #player: Player;
  readonly #traffic: Traffic;
  readonly #advance: (ms: number) => void;
  #selections = 0;
  #refused = 0;
  #calls = 0;

  static async start(subject: Subject, workers: number, seed: number, meter: Meter): Promise<Run> {
    const clock = manualClock(1_000_000);
    const router = await createRouter({ ...optionsOf(subject, seed), clock: clock.clock });
    const player = new Player(router, clock, meter.around);
    const run = new Run(subject, player, new Traffic({ ...subject.traffic, seed, workers }), clock.advance);
    for (const call of run.#traffic.start()) run.#play(call);
    await meter.settle();
    return run;
  }

  private constructor(subject: Subject, player: Player, traffic: Traffic, advance: (ms: number) => void) {
    this.#subject = subject;
    this.#player = player;
    this.#traffic = traffic;
    this.#advance = advance;
    this.audit = new Audit(subject.name, player.router, bounds);
    player.selected = (request, selection) => {
      this.#selections += 1;
      if (!selection.ok) this.#refused += 1;
      this.audit.afterSelection(request, selection.ok ? selection.worker : undefined);
    };
    player.snapshotTaken = (pieces) => this.audit.recount(pieces);
  }

  step(): void {
    for (const call of this.#traffic.step()) this.#play(call);
    if (this.#selections % stepsPerAudit === 1) this.audit.look(this.#player.openLeases());
  }

  /** Ends everything; leases that were forgotten go with their age (B34). */
  end(): void {
    const { router, sharedSignal } = this.#player;
    this.audit.look(this.#player.openLeases());
    this.#player.snapshot();
    const left = this.#player.openLeases().map(({ worker }) => worker);
    this.#player.endAll();
    this.#advance(maxLeaseAgeMs);
    while (router.maintain());
    this.audit.end();
    // Late ends on workers that have left touch nothing but the instance they were counted on (LB-21).
    for (const worker of left) this.audit.check(worker.inFlight >= 0, () => `${worker.id} counts ${worker.inFlight}`);
    const listeners = getEventListeners(sharedSignal, 'abort').length;
    this.audit.check(listeners === 0, () => `${listeners} listeners are left on the shared signal`);
  }

  result(): SubjectResult {
    const { largestTree, mostPins, mostRotations, mostHeads, recounts } = this.audit;
    return {
      name: this.#subject.name,
      selections: this.#selections,
      refused: this.#refused,
      calls: this.#calls,
      largestTree,
      mostPins,
      mostRotations,
      mostHeads,
      recounts,
    };
  }

  #play(call: Call): void {
    this.#calls += 1;
    this.#player.play(call);
  }
}
