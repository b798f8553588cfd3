import { expect, it } from 'vitest';
import { nobody, WorkerSets } from '../../src/prefix/worker-sets.js';
import { avalanche } from '../../src/runtime/mix.js';

/** Two pairs of slots whose sets have the same hash: among some thousand workers there are many. */
function collidingPairs(): readonly [readonly number[], readonly number[]] {
  const hashOf = (slot: number): number => avalanche(Math.imul(slot + 1, 0x9e3779b1));
  const seen = new Map<number, readonly number[]>();
  for (let high = 1; ; high++) {
    for (let low = 0; low < high; low++) {
      const hash = hashOf(low) ^ hashOf(high);
      const other = seen.get(hash);
      if (other !== undefined) return [other, [low, high]];
      seen.set(hash, [low, high]);
    }
  }
}

it('B23: different sets of one hash stay apart, in whatever order they are freed', () => {
  const [first, second] = collidingPairs();
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const sets = new WorkerSets();
    const held = [first, second].map((slots) => slots.reduce((set, slot) => sets.join(set, slot), nobody));
    expect(new Set(held).size).toBe(2);
    expect([first, second].map((slots, i) => slots.every((slot) => sets.has(held[i] as number, slot)))).toEqual([
      true,
      true,
    ]);
    // Made again from nothing, each is found again.
    const again = [first, second].map((slots) => slots.reduce((set, slot) => sets.join(set, slot), nobody));
    expect(again).toEqual(held);
    for (const i of order) {
      const slots = i === 0 ? first : second;
      for (const set of [held[i] as number, again[i] as number]) {
        expect(slots.reduce((rest, slot) => sets.leave(rest, slot), set)).toBe(nobody);
      }
    }
    expect(sets.size).toBe(0);
  }
});
