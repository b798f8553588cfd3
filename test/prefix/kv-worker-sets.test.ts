import { describe, expect, it } from 'vitest';
import { nobody, WorkerSets } from '../../src/prefix/worker-sets.js';
import { avalanche } from '../../src/runtime/hash-text.js';

/** What a worker adds to a set's hash. Only to find sets that collide: were it another function, none of them would. */
const hashOf = (slot: number): number => avalanche(Math.imul(slot + 1, 0x9e3779b1));

/** Pairs of slots whose hashes are alike, three different pairs at least. */
function collidingPairs(slots: number): [number, number][][] {
  const byHash = new Map<number, [number, number][]>();
  for (let a = 0; a < slots; a++) {
    for (let b = a + 1; b < slots; b++) {
      const hash = hashOf(a) ^ hashOf(b);
      const known = byHash.get(hash);
      if (known === undefined) byHash.set(hash, [[a, b]]);
      else known.push([a, b]);
    }
  }
  return [...byHash.values()].filter((pairs) => pairs.length > 1);
}

const setOf = (sets: WorkerSets, slots: readonly number[]): number =>
  slots.reduce((set, slot) => sets.join(set, slot), nobody);

describe('WorkerSets', () => {
  it('B23: sets with the same hash stay apart, in whatever order they come and go', () => {
    const groups = collidingPairs(1000);
    expect(groups.length).toBeGreaterThan(5);
    for (const [first, second] of groups as [number, number][][]) {
      const [a, b] = [first as [number, number], second as [number, number]];
      for (const isFirstFreed of [true, false]) {
        const sets = new WorkerSets();
        const [one, other] = [setOf(sets, a), setOf(sets, b)];
        expect(other).not.toBe(one);
        const [freed, kept] = isFirstFreed ? [a, b] : [b, a];
        sets.leave(sets.leave(isFirstFreed ? one : other, freed[0]), freed[1]);
        expect(sets.size).toBe(1);
        // What is kept is found again under the shared hash; what was freed is made anew.
        expect(setOf(sets, kept)).toBe(isFirstFreed ? other : one);
        const again = setOf(sets, freed);
        expect([sets.has(again, freed[0]), sets.has(again, freed[1]), sets.has(again, kept[0])]).toEqual([
          true,
          true,
          false,
        ]);
        expect(sets.size).toBe(2);
      }
    }
  });
});
