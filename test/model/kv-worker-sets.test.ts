import { deepStrictEqual as check } from 'node:assert/strict';
import { it } from 'vitest';
import { nobody, WorkerSets } from '../../src/prefix/worker-sets.js';
import { fc } from '../support/property.js';
import { modelTimeoutMs, runsFor } from './kv-model-ops.js';

const operation = fc.record({
  // Each owner is a block: it holds a reference to one set.
  owner: fc.nat({ max: 5 }),
  slot: fc.constantFrom(0, 1, 31, 32, 33, 64, 5000),
  joins: fc.boolean(),
});

function members(words: Int32Array): number[] {
  const slots: number[] = [];
  for (let at = 0; at < words.length; at += 2) {
    for (let bit = 0; bit < 32; bit++) {
      if ((((words[at + 1] as number) >>> bit) & 1) === 1) slots.push((words[at] as number) * 32 + bit);
    }
  }
  return slots;
}

const sorted = (set: ReadonlySet<number>): number[] => [...set].sort((a, b) => a - b);

it('B23: shared worker sets answer like sets, whatever the slots', { timeout: modelTimeoutMs }, () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
      const sets = new WorkerSets();
      const held = new Array<number>(6).fill(nobody);
      const model = held.map(() => new Set<number>());
      for (const { owner, slot, joins } of operations) {
        const before = held[owner] as number;
        held[owner] = joins ? sets.join(before, slot) : sets.leave(before, slot);
        const expected = model[owner] as Set<number>;
        check(held[owner] === before, expected.has(slot) === joins);
        if (joins) expected.add(slot);
        else expected.delete(slot);
        check(members(sets.words(held[owner] as number)), sorted(expected));
        check(sets.has(held[owner] as number, slot), expected.has(slot));
        // Equal sets are one set, and nothing else is kept.
        const distinct = new Set(model.map((set) => sorted(set).join()).filter((key) => key !== ''));
        check(sets.size, distinct.size);
        check(new Set(held.filter((set) => set !== nobody)).size, distinct.size);
      }
      // Steps of one owner have left the sets of the others alone.
      held.forEach((set, i) => {
        check(members(sets.words(set)), sorted(model[i] as Set<number>));
      });
    }),
    { numRuns: runsFor(100) },
  );
});
