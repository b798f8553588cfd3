/** A clock that a test moves by hand (LB-2). Breakers, pins and reports expire on reading, so moving it is enough (LB-5). */
import { show } from '../errors.js';
import type { Clock } from '../runtime/clock.js';

/** A clock and the hands that move it. */
export interface ManualClock {
  /** The option `clock` of a router or a policy. */
  readonly clock: Clock;
  /** The current reading, milliseconds. */
  readonly now: number;
  /** Moves the reading on. @throws RangeError when `ms` is negative or not finite */
  advance(ms: number): void;
  /** Sets the reading to any finite number, an earlier one too: routers tolerate it (LB-2). @throws RangeError */
  set(ms: number): void;
}

/**
 * Makes a clock that stands still until it is moved.
 *
 * @param start first reading in milliseconds; default 0
 */
export function manualClock(start = 0): ManualClock {
  let now = checked('start', start, -Infinity);
  return {
    clock: () => now,
    get now() {
      return now;
    },
    advance: (ms) => {
      now += checked('ms', ms, 0);
    },
    set: (ms) => {
      now = checked('ms', ms, -Infinity);
    },
  };
}

function checked(name: string, ms: number, min: number): number {
  if (Number.isFinite(ms) && ms >= min) return ms;
  throw new RangeError(`${name}: expected a finite number${min === 0 ? ' ≥ 0' : ''}, got ${show(ms)}`);
}
