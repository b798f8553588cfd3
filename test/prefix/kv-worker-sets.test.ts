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

/** Bit sets of slots below 40 whose hashes cancel each other out: by Gaussian elimination over the 32 bits of a hash. */
function cancellingSlots(): bigint[] {
  const reduced: { readonly hash: number; readonly slots: bigint }[] = [];
  const found: bigint[] = [];
  for (let slot = 0; slot < 40; slot++) {
    let row = { hash: hashOf(slot), slots: 1n << BigInt(slot) };
    for (const { hash, slots } of reduced) {
      if ((row.hash ^ hash) >>> 0 < row.hash >>> 0) row = { hash: row.hash ^ hash, slots: row.slots ^ slots };
    }
    if (row.hash === 0) found.push(row.slots);
    else reduced.push(row);
    reduced.sort((a, b) => (b.hash >>> 0) - (a.hash >>> 0));
  }
  return found;
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

  it('B23: one of many sets with the same hash may go, the others are found as before', () => {
    const [first, second] = cancellingSlots() as [bigint, bigint];
    // Slot 50 is in all of them, so none is empty.
    const members = [0n, first, second, first ^ second].map((bits) =>
      Array.from({ length: 51 }, (_, slot) => slot).filter((slot) => slot === 50 || (bits >> BigInt(slot)) & 1n),
    );
    expect(new Set(members.map((slots) => slots.reduce((hash, slot) => hash ^ hashOf(slot), 0))).size).toBe(1);
    for (let gone = 0; gone < members.length; gone++) {
      const sets = new WorkerSets();
      const held = members.map((slots) => setOf(sets, slots));
      expect(new Set(held).size).toBe(4);
      (members[gone] as number[]).reduce((set, slot) => sets.leave(set, slot), held[gone] as number);
      expect(sets.size).toBe(3);
      for (let kept = 0; kept < members.length; kept++) {
        if (kept !== gone) expect(setOf(sets, members[kept] as number[])).toBe(held[kept]);
      }
      expect(sets.size).toBe(3);
      setOf(sets, members[gone] as number[]);
      expect(sets.size).toBe(4);
    }
  });

  it('B23: equal sets are one, whatever the order in which workers joined, and count who refers to them', () => {
    const sets = new WorkerSets();
    const one = setOf(sets, [1, 40, 100]);
    const same = setOf(sets, [100, 1, 40]);
    expect(same).toBe(one);
    expect(sets.size).toBe(1);
    expect(Array.from(sets.words(one))).toEqual([0, 2, 1, 1 << 8, 3, 1 << 4]);
    // Joining again changes nothing, and neither does leaving as a stranger.
    expect([sets.join(one, 40), sets.leave(one, 41)]).toEqual([one, one]);
    const smaller = sets.leave(one, 40);
    expect([sets.size, sets.has(smaller, 40), sets.has(one, 40)]).toEqual([2, false, true]);
    expect(sets.leave(one, 40)).toBe(smaller);
    expect(sets.size).toBe(1);
    expect(Array.from(sets.words(smaller))).toEqual([0, 2, 3, 1 << 4]);
  });

  it('B23: a step remembered to a set that was freed since is made anew', () => {
    const sets = new WorkerSets();
    const from = setOf(sets, [1]);
    setOf(sets, [1]);
    const joined = sets.join(from, 2);
    expect(sets.leave(sets.leave(joined, 1), 2)).toBe(nobody);
    // Another set takes the place of the one that the step led to.
    const other = setOf(sets, [7, 8]);
    const again = sets.join(from, 2);
    expect([sets.has(again, 1), sets.has(again, 2), sets.has(again, 7)]).toEqual([true, true, false]);
    expect([sets.has(other, 7), sets.size]).toEqual([true, 2]);
    const pair = setOf(sets, [1, 2]);
    expect(pair).toBe(again);
    const left = sets.leave(pair, 2);
    expect(sets.leave(left, 1)).toBe(nobody);
    const third = setOf(sets, [30]);
    const alone = sets.leave(again, 2);
    expect([sets.has(alone, 1), sets.has(alone, 2), sets.has(alone, 30)]).toEqual([true, false, false]);
    expect([sets.has(third, 30), sets.size]).toEqual([true, 3]);
  });

  it('LB-31: nothing is in use when every reference has been given back', () => {
    const sets = new WorkerSets();
    const held: number[][] = [];
    for (let i = 0; i < 200; i++) held.push([i % 7, 30 + (i % 5), 64 + (i % 3)]);
    const ids = held.map((slots) => setOf(sets, slots));
    expect(sets.size).toBe(7 * 5 * 3);
    for (const [i, slots] of held.entries()) {
      expect(slots.reduce((set, slot) => sets.leave(set, slot), ids[i] as number)).toBe(nobody);
    }
    expect(sets.size).toBe(0);
  });
});
