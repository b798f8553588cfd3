/** What a decision makes of its pin, case by case. */
import { describe, expect, it } from 'vitest';
import { PinChange } from '../../src/sticky/pin-change.js';
import { PinMap } from '../../src/sticky/pins.js';
import type { WorkerSignals } from '../../src/workers/candidate.js';
import { CandidateSet } from '../../src/workers/candidate-set.js';

function worker(id: string): WorkerSignals {
  return { id, inFlight: 0, activeKeys: 0, load: undefined, creditTokens: 0, creditRequests: 0, keyInFlight: () => 0 };
}

const setOf = (...ids: string[]): CandidateSet => new CandidateSet(ids.map(worker));
const noOne: ReadonlySet<string> = new Set();

function changeOf(
  [primary, secondary]: readonly [string, string?],
  candidates: CandidateSet,
  registered: ReadonlySet<string> = noOne,
): PinChange {
  return new PinChange('k', { primary, secondary, lastUsedAt: 0 }, candidates, registered);
}

describe('the workers of a pin', () => {
  it('ST-34: the first stored one that is a candidate serves', () => {
    expect(changeOf(['a', 'b'], setOf('b', 'a')).pinned?.id).toBe('a');
    expect(changeOf(['a', 'b'], setOf('b', 'c')).pinned?.id).toBe('b');
    expect(changeOf(['a'], setOf('b', 'c')).pinned).toBeUndefined();
    expect(new PinChange('k', undefined, setOf('a'), noOne).pinned).toBeUndefined();
  });

  it('ST-62, LB-30: those that are down stay, those that left go', () => {
    const registered = new Set(['a', 'b']);
    expect(changeOf(['a', 'b'], setOf('c'), registered).workers).toEqual(['a', 'b']);
    expect(changeOf(['gone', 'b'], setOf('c'), registered).workers).toEqual(['b']);
    expect(changeOf(['a', 'gone'], setOf('c'), registered).workers).toEqual(['a']);
    expect(changeOf(['gone'], setOf('c'), registered).workers).toEqual([]);
  });

  it('ST-62: a candidate stays whether the pool lists it or not', () => {
    expect(changeOf(['a', 'b'], setOf('a', 'b')).workers).toEqual(['a', 'b']);
    expect(changeOf(['a', 'b'], setOf('b')).workers).toEqual(['b']);
  });

  it('ST-36: one more goes behind, and drops the first when there are two', () => {
    const change = changeOf(['a', 'b'], setOf('a', 'b'));
    change.append('c');
    expect(change.workers).toEqual(['b', 'c']);
  });

  it('ST-35, ST-41: one that is put first keeps the former first second, itself only once', () => {
    const change = changeOf(['a', 'b'], setOf('a', 'b'));
    change.promote('c');
    expect(change.workers).toEqual(['c', 'a']);
    change.promote('c');
    expect(change.workers).toEqual(['c', 'a']);
  });
});

describe('exclusions', () => {
  const available = setOf('a', 'b', 'c');

  it('LB-14a: bypass a pin when they take one of its workers that is available, the first or the second', () => {
    expect(changeOf(['a', 'b'], available).isBypassed(available.without(['a']), available)).toBe(true);
    expect(changeOf(['a', 'b'], available).isBypassed(available.without(['b']), available)).toBe(true);
  });

  it('LB-14a: bypass nothing when its workers are left, when they are down, or when nobody is excluded', () => {
    const registered = new Set(['a', 'b', 'down']);
    const left = available.without(['c']);
    expect(changeOf(['a', 'b'], left).isBypassed(left, available)).toBe(false);
    const others = available.without(['a']);
    expect(changeOf(['down', 'b'], others, registered).isBypassed(others, available)).toBe(false);
    expect(changeOf(['down'], available, registered).isBypassed(available, available)).toBe(false);
  });
});

describe('committing', () => {
  const limits = { maxPins: 10, maxIdleMs: 0, evictionIntervalMs: 0 };

  it('ST-35a: writes the workers down, as used now', () => {
    const pins = new PinMap(limits);
    changeOf(['a', 'b'], setOf('a', 'b')).commit(pins, 7);
    expect(pins.find('k', 7)).toMatchObject({ primary: 'a', secondary: 'b', lastUsedAt: 7 });
  });

  it('LB-30: a pin whose workers have all left is forgotten', () => {
    const pins = new PinMap(limits);
    pins.put('k', 'gone', undefined, 0);
    changeOf(['gone'], setOf('c')).commit(pins, 7);
    expect(pins.size).toBe(0);
  });

  it('ST-35: a key that was not pinned and got no worker leaves nothing', () => {
    const pins = new PinMap(limits);
    new PinChange('k', undefined, setOf(), noOne).commit(pins, 7);
    expect(pins.size).toBe(0);
  });
});
