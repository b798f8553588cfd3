import { describe, expect, it } from 'vitest';
import { forkOf, type RandomSource, randomIndex, seededRandom } from '../../src/runtime/random.js';

const draws = (random: RandomSource, count = 5): number[] => Array.from({ length: count }, () => random());

describe('seededRandom', () => {
  it('LB-3: a seed gives one sequence, and each seed its own', () => {
    const seeds = [0, 1, -1, 2 ** 31, '', '1', '#1', 'a', 'aa', 'ab', 'ba'];
    // The number 1 is read as the text '#1'.
    const sequences = seeds.map((seed) => draws(seededRandom(seed)).join());
    expect(seeds.map((seed) => draws(seededRandom(seed)).join())).toEqual(sequences);
    expect(new Set(sequences).size).toBe(seeds.length - 1);
    for (const draw of sequences.join().split(',').map(Number)) expect(draw >= 0 && draw < 1).toBe(true);
  });

  it('LB-2: what is neither an integer nor a string is refused', () => {
    for (const seed of [1.5, Number.NaN, Infinity, undefined, null, 1n, {}]) {
      expect(() => seededRandom(seed as number)).toThrow(/^seed: expected an integer or a string, got /);
    }
  });

  it('LB-12: a fork is another sequence, and leaves its origin where it is', () => {
    const random = seededRandom('origin');
    const expected = draws(seededRandom('origin'));
    const fork = random.fork?.() as RandomSource;
    const forked = draws(fork, 100);
    expect(draws(random)).toEqual(expected);
    expect(forked.some((draw) => expected.includes(draw))).toBe(false);
  });
});

it('LB-12: forkOf takes the spare generator where none is offered', () => {
  const spare = seededRandom(1);
  expect(forkOf(() => 0.5, spare)).toBe(spare);
  expect(forkOf(seededRandom(2), spare)).not.toBe(spare);
});

it('LB-2: an index stays in range, whatever a generator of the host returns', () => {
  expect([0, 0.5, 0.999_999, 1].map((draw) => randomIndex(() => draw, 3))).toEqual([0, 1, 2, 2]);
});
