/** How much a `maintain` call may do before it returns (LB-5). */
import type { Clock } from './clock.js';

/** How long one step of periodic work may go on. */
export interface MaintenanceBudget {
  /** True once the budget is used up. Cheap: ask after every few dozen entries. */
  spent(): boolean;
}

/** Looks at the budget after which even a clock that stands still ends a step. */
const maxLooks = 4096;

/** A budget of time, for `maintain()` calls. */
export class TimeBudget implements MaintenanceBudget {
  readonly #clock: Clock;
  readonly #endsAt: number;
  #looks = 0;

  constructor(clock: Clock, budgetMs: number) {
    this.#clock = clock;
    this.#endsAt = clock() + budgetMs;
  }

  spent(): boolean {
    this.#looks += 1;
    return this.#looks > maxLooks || this.#clock() >= this.#endsAt;
  }
}

/** A budget of looks, for the small steps inside other calls: it reads no clock, so they stay reproducible (LB-3). */
export class StepBudget implements MaintenanceBudget {
  #left: number;

  constructor(looks: number) {
    this.#left = looks;
  }

  spent(): boolean {
    this.#left -= 1;
    return this.#left < 0;
  }
}
