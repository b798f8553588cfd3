/**
 * How long single calls take, on a machine that has other things to do as well.
 *
 * A call is measured by the wall clock (`performance.now`). Garbage collections that fall into it are subtracted: they are
 * reported separately, because whose garbage it was nobody can tell. What is left may still be time in which the thread
 * waited for a processor, so it is bounded by the thread's CPU time, up to `callsPerMark` earlier calls included. Both are
 * upper bounds of the call's own work: a call may be blamed for what it did not do, never the other way round. Where a
 * run can be repeated call by call, the smaller of two measurements of the same call is the better bound.
 */
import { PerformanceObserver, performance } from 'node:perf_hooks';
import { threadCpuMs } from '../support/thread-cpu.js';

/** Reading the CPU time costs several microseconds, so it is not read for every call. */
const callsPerMark = 16;

/** After a longer pause between two calls, in which others may have used the processor, it is read anew. */
const pauseMs = 0.1;

/** In front of the labels of calls of a start. */
export const startLabel = 'start: ';

/** Calls shorter than this by the wall clock are not looked at closely. */
const closeLookMs = 1;

interface SlowCall {
  /** How many calls came before it. */
  readonly place: number;
  readonly label: string;
  readonly start: number;
  readonly wallMs: number;
  readonly cpuMs: number;
}

interface Pause {
  readonly start: number;
  readonly end: number;
}

/** A call over the limit, whoever may have been the cause. */
export interface Suspect {
  readonly label: string;
  readonly ownMs: number;
}

/** What is known about the calls of one kind. */
export interface CallTimes {
  calls: number;
  /** Longest by the wall clock, and what is left of any call without collections and without waiting. */
  longestWallMs: number;
  longestOwnMs: number;
  /** Calls over the limit by the wall clock, without collections, and without waiting too. */
  overWall: number;
  overWithoutGc: number;
  overOwn: number;
}

export class Meter {
  readonly limitMs: number;
  readonly byLabel: Map<string, CallTimes> = new Map();
  /** Calls over the limit without collections and waiting, by place; none of the start. */
  readonly suspects: Map<number, Suspect> = new Map();
  longestGcMs = 0;
  /** The calls of a start are counted by themselves: code is compiled, and a fleet is registered at once. */
  isStarting = false;
  readonly #observer: PerformanceObserver;
  #slow: SlowCall[] = [];
  /** Slow calls that are judged next time. */
  #waiting: SlowCall[] = [];
  #pauses: Pause[] = [];
  #calls = 0;
  #callsSinceMark = callsPerMark;
  #mark = threadCpuMs();
  #lastEnd = 0;

  constructor(limitMs: number) {
    this.limitMs = limitMs;
    this.#observer = new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) {
        this.#pauses.push({ start: startTime, end: startTime + duration });
        this.longestGcMs = Math.max(this.longestGcMs, duration);
      }
    });
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  /** Runs a call and takes its time. */
  readonly around = <T>(label: string, call: () => T): T => {
    if (this.#callsSinceMark === callsPerMark || performance.now() - this.#lastEnd > pauseMs) {
      this.#mark = threadCpuMs();
      this.#callsSinceMark = 0;
    }
    this.#callsSinceMark += 1;
    const start = performance.now();
    const result = call();
    this.#lastEnd = performance.now();
    const wallMs = this.#lastEnd - start;
    const staged = this.isStarting ? startLabel + label : label;
    const times = this.#timesOf(staged);
    times.calls += 1;
    this.#calls += 1;
    if (wallMs > times.longestWallMs) times.longestWallMs = wallMs;
    if (wallMs > closeLookMs) {
      this.#slow.push({ place: this.#calls, label: staged, start, wallMs, cpuMs: threadCpuMs() - this.#mark });
      this.#callsSinceMark = callsPerMark;
    } else if (wallMs > times.longestOwnMs) times.longestOwnMs = wallMs;
    return result;
  };

  /** Judges what was slow before the last time: collections are told about in a later turn of the event loop. */
  async settle(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    for (const { place, label, start, wallMs, cpuMs } of this.#waiting) {
      let gcMs = 0;
      for (const pause of this.#pauses) {
        gcMs += Math.max(0, Math.min(pause.end, start + wallMs) - Math.max(pause.start, start));
      }
      const withoutGcMs = wallMs - gcMs;
      const ownMs = Math.min(withoutGcMs, cpuMs);
      const times = this.#timesOf(label);
      if (ownMs > times.longestOwnMs) times.longestOwnMs = ownMs;
      if (wallMs > this.limitMs) times.overWall += 1;
      if (withoutGcMs > this.limitMs) times.overWithoutGc += 1;
      if (ownMs <= this.limitMs) continue;
      times.overOwn += 1;
      if (!label.startsWith(startLabel)) this.suspects.set(place, { label, ownMs });
    }
    this.#waiting = this.#slow;
    const earliest = this.#waiting[0]?.start ?? Infinity;
    this.#pauses = this.#pauses.filter(({ end }) => end > earliest);
    this.#slow = [];
  }

  async stop(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) await this.settle();
    this.#observer.disconnect();
  }

  #timesOf(label: string): CallTimes {
    let times = this.byLabel.get(label);
    if (times === undefined) {
      times = { calls: 0, longestWallMs: 0, longestOwnMs: 0, overWall: 0, overWithoutGc: 0, overOwn: 0 };
      this.byLabel.set(label, times);
    }
    return times;
  }
}
