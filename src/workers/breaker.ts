/**
 * The circuit breaker of one worker: closed, open, half-open, driven by consecutive outcomes (CB-1 to CB-9).
 *
 * Its state is a pure function of (last committed state, when it opened, now): an open breaker whose timeout has
 * passed *is* half-open, whether or not anybody looked (CB-7). Reading changes nothing; `record`, `takeTransitions`
 * and `configure` commit what time has done and return the transitions they committed, so that each is handed out
 * exactly once, in order, after the state is settled (B54).
 * Every operation is O(1).
 */

import { checkNumber, checkObject } from '../errors.js';
import type { OptionsOf, Resolved } from '../options/spec.js';
import { type circuitBreakerTable, workerResilienceTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';

/** State of a circuit breaker (CB-1). */
export type BreakerState = 'closed' | 'open' | 'half_open';

/** One change of state. */
export interface BreakerTransition {
  /** The state it left. */
  readonly from: BreakerState;
  /** The state it entered. */
  readonly to: BreakerState;
  /** Router time, milliseconds: for the one to half-open, when the timeout passed, whenever somebody looked (CB-4). */
  readonly at: number;
}

/** The settings a breaker runs with. */
export interface BreakerConfig {
  /** Consecutive failed requests that open it; an integer ≥ 1. */
  readonly failureThreshold: number;
  /** Consecutive successes that close it when half-open; an integer ≥ 1. */
  readonly successThreshold: number;
  /** Milliseconds it blocks once open; > 0. */
  readonly timeoutDurationMs: number;
}

/** The router's breaker options, as far as they decide a worker's (CB-40). */
export interface RouterBreakerOptions {
  /** What a worker gets that has no settings of its own. */
  readonly circuitBreaker: Resolved<typeof circuitBreakerTable>;
  /** Breakers never open; outcomes are counted all the same (CB-9). */
  readonly disableCircuitBreaker: boolean;
}

/** A worker's own breaker settings as its spec gives them. */
export type WorkerResilience = OptionsOf<typeof workerResilienceTable>;

/**
 * A worker's settings: its own where given, else the router's (CB-40). Disabled means a failure threshold that no
 * streak reaches: outcomes are still counted, and a `cbFailureThreshold` of the worker's own still counts (CB-9). A
 * worker that says `disableCircuitBreaker: false` keeps its breaker in a router that disables them.
 *
 * @throws RoutingConfigError for an invalid block; the field starts with `worker.resilience.`
 */
export function resolveBreakerConfig(
  router: RouterBreakerOptions,
  resilience: WorkerResilience | undefined,
): BreakerConfig {
  const own = resolveOptions(workerResilienceTable, resilience, 'worker.resilience.');
  const disabled = resilience?.disableCircuitBreaker ?? router.disableCircuitBreaker;
  const shared = router.circuitBreaker;
  return {
    failureThreshold: own.cbFailureThreshold ?? (disabled ? Number.MAX_SAFE_INTEGER : shared.failureThreshold),
    successThreshold: own.cbSuccessThreshold ?? shared.successThreshold,
    timeoutDurationMs: own.cbTimeoutMs ?? shared.timeoutDurationMs,
  };
}

const noTransitions: readonly BreakerTransition[] = [];

function checkedConfig(config: BreakerConfig): BreakerConfig {
  const { failureThreshold, successThreshold, timeoutDurationMs } = checkObject(config, 'config');
  checkNumber(failureThreshold, 'config.failureThreshold');
  checkNumber(successThreshold, 'config.successThreshold');
  checkNumber(timeoutDurationMs, 'config.timeoutDurationMs');
  return { failureThreshold, successThreshold, timeoutDurationMs };
}

/** The breaker of one worker. `now` is router time in milliseconds and never decreases. */
export class Breaker {
  #config: BreakerConfig;
  /** As of the last commit; what time has done since is `#due`. */
  #state: BreakerState = 'closed';
  #openedAt = 0;
  #epoch = 0;
  #failures = 0;
  #successes = 0;

  /** @throws TypeError for settings that are no numbers */
  constructor(config: BreakerConfig) {
    this.#config = checkedConfig(config);
  }

  /** The state at `now`, an elapsed timeout included (CB-7). */
  state(now: number): BreakerState {
    return this.#due(now) ? 'half_open' : this.#state;
  }

  /** False only while open: half-open does not throttle (CB-5). */
  allows(now: number): boolean {
    return this.#state !== 'open' || now >= this.halfOpenAt;
  }

  /**
   * Router time from which an open breaker allows again; `Infinity` when nothing is waiting for a moment, that is when
   * the last committed state is closed or half-open.
   */
  get halfOpenAt(): number {
    return this.#state === 'open' ? this.#openedAt + this.#config.timeoutDurationMs : Infinity;
  }

  /** Transitions so far, the lazy one included. A lease notes it at its begin and gives it back to `record` (CB-26). */
  epoch(now: number): number {
    return this.#due(now) ? this.#epoch + 1 : this.#epoch;
  }

  /** The current streak of failures; kept while open, 0 again when half-open (CB-4, CB-6). */
  consecutiveFailures(now: number): number {
    return this.#due(now) ? 0 : this.#failures;
  }

  /** The current streak of successes. */
  consecutiveSuccesses(now: number): number {
    return this.#due(now) ? 0 : this.#successes;
  }

  /**
   * Records the outcome of one request (CB-2, CB-3, CB-5); returns what changed by it and by time before it.
   *
   * @param begunInEpoch `epoch` when the request was dispatched. An outcome from before the last transition moves the
   * streaks and never the state (CB-26). Absent: the request counts as begun now.
   */
  record(outcome: 'success' | 'failure', now: number, begunInEpoch?: number): readonly BreakerTransition[] {
    const lapsed = this.#commit(now);
    if (outcome === 'success') {
      this.#failures = 0;
      this.#successes += 1;
    } else {
      this.#successes = 0;
      this.#failures += 1;
    }
    const late = begunInEpoch !== undefined && begunInEpoch !== this.#epoch;
    const next = late ? this.#state : this.#after(outcome);
    if (next === this.#state) return lapsed;
    return [...lapsed, this.#moveTo(next, now)];
  }

  /** The transition that time alone has made since the last commit, if any; handed out once (CB-7). */
  takeTransitions(now: number): readonly BreakerTransition[] {
    return this.#commit(now);
  }

  /**
   * Applies other settings and keeps the state, the streaks and the moment it opened (CB-41). A threshold that a streak
   * already exceeds takes effect with the next outcome.
   *
   * @throws TypeError for settings that are no numbers; nothing changed then
   */
  configure(config: BreakerConfig, now: number): readonly BreakerTransition[] {
    const checked = checkedConfig(config);
    const lapsed = this.#commit(now);
    this.#config = checked;
    return lapsed;
  }

  /** The state that follows the streaks as they stand after `outcome`. */
  #after(outcome: 'success' | 'failure'): BreakerState {
    if (this.#state === 'half_open') {
      if (outcome === 'failure') return 'open';
      return this.#successes >= this.#config.successThreshold ? 'closed' : 'half_open';
    }
    // An open one stays open, whatever its streaks are: only time ends that (CB-3).
    return this.#failures >= this.#config.failureThreshold ? 'open' : this.#state;
  }

  #due(now: number): boolean {
    return this.#state === 'open' && now >= this.halfOpenAt;
  }

  #commit(now: number): readonly BreakerTransition[] {
    checkNumber(now, 'now');
    return this.#due(now) ? [this.#moveTo('half_open', this.halfOpenAt)] : noTransitions;
  }

  #moveTo(to: BreakerState, at: number): BreakerTransition {
    const transition = { from: this.#state, to, at };
    this.#state = to;
    this.#epoch += 1;
    // Opening keeps the failures for whoever looks (CB-6); every other transition starts both streaks anew.
    if (to === 'open') this.#openedAt = at;
    else this.#failures = 0;
    this.#successes = 0;
    return transition;
  }
}
