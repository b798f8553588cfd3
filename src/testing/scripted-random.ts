/**
 * A generator that a test writes out (LB-2): the n-th draw gives the n-th value. `0` makes a uniform choice take the
 * first of its candidates, `0.999` the last.
 */
import { checkList, show } from '../errors.js';
import type { RandomSource } from '../runtime/random.js';

/** The option `random` of a router or a policy. A fork continues from the same place and leaves it where it is. */
export interface ScriptedRandom extends RandomSource {
  /** Values drawn so far, those of forks not counted. */
  readonly drawn: number;
}

/**
 * Makes a generator of exactly these draws.
 *
 * @param values in [0, 1)
 * @throws TypeError for values that are no list, RangeError for a value out of range; and when a draw is asked for that the script does not have
 */
export function scriptedRandom(values: readonly number[]): ScriptedRandom {
  for (const [i, value] of checkList(values, 'values').entries()) {
    if (typeof value !== 'number' || !(value >= 0 && value < 1)) {
      throw new RangeError(`values[${i}]: expected a number in [0, 1), got ${show(value)}`);
    }
  }
  return playFrom([...values], 0);
}

function playFrom(values: readonly number[], start: number): ScriptedRandom {
  let next = start;
  const random = (): number => {
    const value = values[next];
    if (value === undefined) throw new RangeError(`draw ${next + 1} was asked for, the script has ${values.length}`);
    next += 1;
    return value;
  };
  const fork = (): RandomSource => playFrom(values, next);
  return Object.defineProperty(Object.assign(random, { fork, drawn: 0 }), 'drawn', { get: () => next - start });
}
