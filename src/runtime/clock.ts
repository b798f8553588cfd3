/**
 * Time. The router never reads the wall clock: it asks an injected monotonic clock and adds up the positive
 * differences between consecutive readings, so a clock that steps back costs nothing and undoes nothing (LB-2).
 */

/** Returns milliseconds from any fixed origin. It should be monotonic; one that steps back is tolerated (LB-2). */
export type Clock = () => number;

/** The part of the global scope the default clock needs; declared here because `src` compiles without DOM or Node types. */
interface PerformanceScope {
  readonly performance: { now(): number };
}

/** The default clock: `performance.now()`, monotonic in every supported runtime. The only ambient time in the package. */
export const monotonicClock: Clock = () => (globalThis as unknown as PerformanceScope).performance.now();

/**
 * Accumulated time of one router or one policy used alone, in milliseconds since its creation.
 *
 * `advance()` is called once at the start of every public call; everything inside that call reads `now`, so one
 * decision sees one instant.
 */
export class ElapsedTime {
  readonly #clock: Clock;
  #lastReading: number;
  /** Milliseconds since creation, as of the last `advance()`. Never decreases. */
  now = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastReading = clock();
  }

  /** Reads the clock, adds the time that passed (a negative or non-finite difference counts as 0) and returns `now`. */
  advance(): number {
    const reading = this.#clock();
    const passed = reading - this.#lastReading;
    this.#lastReading = reading;
    if (passed > 0 && passed !== Infinity) this.now += passed;
    return this.now;
  }

  /** Age in milliseconds of an instant given as a reading of the injected clock; one in the future is 0 old (LR-31). */
  ageOfReading(reading: number): number {
    const age = this.#lastReading - reading;
    return age > 0 ? age : 0;
  }
}
