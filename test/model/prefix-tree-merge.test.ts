/**
 * What holds for prefix trees whatever the order of events: merges commute, and a removal whose memory is still being
 * reclaimed cannot be told from one that is complete.
 */
import { deepStrictEqual, ok, strictEqual } from 'node:assert';
import { describe, it } from 'vitest';
import { StringTree } from '../../src/prefix/string-tree.js';
import { fc } from '../support/property.js';
import { NaivePrefixTree } from './naive-prefix-tree.js';

const unlimited = 1_000_000;
const workers = ['w1', 'w2', 'w3', 'w4'];

const codePoints = (text: string): number[] => Array.from(text, (unit) => unit.codePointAt(0) as number);
const path = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '😀'), maxLength: 9 });
const placement = fc.record({
  path,
  worker: fc.constantFrom(...workers),
  // Small numbers: equal uses on different paths and of different workers are common.
  use: fc.integer({ min: 1, max: 6 }),
  namespace: fc.constantFrom(undefined, 'n'),
});

function merged(
  placements: readonly { path: string; worker: string; use: number; namespace: string | undefined }[],
): StringTree {
  const tree = new StringTree({ maxTreeSize: unlimited });
  for (const worker of workers) tree.addTenant(worker);
  for (const { path: units, worker, use, namespace } of placements) tree.insertPlacement(units, worker, use, namespace);
  return tree;
}

describe('merging placements', () => {
  it('LB-34: arrival order and repetitions make no difference', () => {
    fc.assert(
      fc.property(
        fc
          .array(placement, { maxLength: 25 })
          .chain((list) =>
            fc.tuple(fc.constant(list), fc.shuffledSubarray([...list, ...list], { minLength: 2 * list.length })),
          ),
        fc.array(path, { minLength: 4, maxLength: 4 }),
        ([list, shuffled], probes) => {
          const one = merged(list);
          const other = merged(shuffled);
          const listed = (tree: StringTree): string[] => [...tree.placements()].map((p) => JSON.stringify(p)).sort();
          deepStrictEqual(listed(one), listed(other));
          strictEqual(one.size, other.size);
          strictEqual(one.lastUse, other.lastUse);
          for (const worker of workers) strictEqual(one.sizeOf(worker), other.sizeOf(worker));
          for (const probe of probes) {
            deepStrictEqual(one.match(probe), other.match(probe));
            deepStrictEqual(one.match(probe, 'n'), other.match(probe, 'n'));
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('removal in bounded steps', () => {
  it('CA-44: what is left to reclaim is never seen, counted or matched', () => {
    const long = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '😀'), minLength: 4, maxLength: 12 });
    const words = fc.sample(long, { numRuns: 1200, seed: 7 });
    const tree = new StringTree({ maxTreeSize: unlimited });
    const naive = new NaivePrefixTree(unlimited, 1);
    const insert = (word: string, worker: string): void => {
      strictEqual(tree.insert(word, worker), naive.insert(codePoints(word), worker));
    };
    let incomplete = 0;
    for (let round = 0; round < 6; round++) {
      const removed = workers[round % workers.length] as string;
      for (const word of words.slice(200 * round, 200 * round + 200)) insert(word, removed);
      tree.removeTenant(removed);
      naive.removeTenant(removed);
      for (let i = 0; i < 5; i++) {
        if (tree.nodeCount > naive.nodeCount) incomplete++;
        for (const word of words.slice(200 * round, 200 * round + 40)) {
          deepStrictEqual(tree.match(word), naive.match(codePoints(word)));
        }
        // Also a worker that came back meanwhile.
        const worker = workers[(round + i) % workers.length] as string;
        const word = words[200 * round + i] as string;
        tree.match(word);
        insert(word, worker);
        strictEqual(tree.size, naive.size);
        strictEqual(tree.sizeOf(worker), naive.sizeOf(worker));
      }
    }
    ok(incomplete > 4, `only ${incomplete} steps met a removal that was not complete`);
    while (tree.maintain({ spent: () => true }));
    strictEqual(tree.nodeCount, naive.nodeCount);
    const expected = naive.placements().map(({ use, worker }) => [use, worker]);
    deepStrictEqual(
      [...tree.placements()].map(({ use, worker }) => [use, worker]),
      expected,
    );
  });
});
