/**
 * Both prefix trees beside a naive one: any sequence of operations gives the same matches, sizes, nodes and placements.
 * KVROUTE_MODEL_OPS sets how many operations each tree runs in all; the default keeps the test short.
 */
import { deepStrictEqual, ok, strictEqual } from 'node:assert';
import { afterAll, describe, it } from 'vitest';
// Plain assertions: a million of them take seconds.
import type { PrefixTree, TreePiece } from '../../src/prefix/prefix-tree.js';
import { StringTree } from '../../src/prefix/string-tree.js';
import { TokenTree } from '../../src/prefix/token-tree.js';
import { fc } from '../support/property.js';
import { NaivePrefixTree } from './naive-prefix-tree.js';

const operationsPerTree = Number(process.env.KVROUTE_MODEL_OPS ?? 4000);
/** On average. */
const operationsPerRun = 50;
const whenDone = { spent: () => false };

/** How one kind of tree is driven: requests as it takes them, and as units. */
interface Kind<Units, Label> {
  readonly name: string;
  readonly page: number;
  make(maxTreeSize: number): PrefixTree<Units, Label>;
  readonly request: fc.Arbitrary<Units>;
  readonly nothing: Units;
  unitsOf(request: Units): number[];
}

type Operation<Units> =
  | {
      readonly op: 'match' | 'insert' | 'matchInsert';
      readonly units: Units;
      readonly worker: string;
      readonly namespace: string | undefined;
    }
  | {
      readonly op: 'merge';
      readonly units: Units;
      readonly worker: string;
      readonly namespace: string | undefined;
      readonly use: number;
    }
  | { readonly op: 'evict' | 'budget'; readonly share: number }
  | { readonly op: 'remove' | 'add'; readonly worker: string }
  | { readonly op: 'copy' };

// Few and similar pieces, so that requests share much, part anywhere, and repeat.
const textPieces = [
  'a',
  'a',
  'aa',
  'b',
  'ab',
  '😀',
  '😁',
  '\ud83d',
  '\ude00',
  'é',
  '你好',
  'a'.repeat(20),
  'ab'.repeat(20),
];
const text = fc.array(fc.constantFrom(...textPieces), { maxLength: 6 }).map((pieces) => pieces.join(''));

function tokenLists(pieces: readonly (readonly number[])[]): fc.Arbitrary<number[]> {
  return fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((chosen) => chosen.flat());
}

const threes = tokenLists([
  [1, 2, 3],
  [1, 2, 4],
  [1],
  [2, 2, 2],
  [4294967295, 2147483648, 0],
  [7, 8, 9, 7, 8, 9, 7, 8, 9],
]);
const ones = tokenLists([[1], [2], [1, 1, 1], [4294967295]]);

const kinds = [
  {
    name: 'StringTree',
    page: 1,
    make: (maxTreeSize: number) => new StringTree({ maxTreeSize }),
    request: text,
    nothing: '',
    unitsOf: (request: string) => Array.from(request, (unit) => unit.codePointAt(0) as number),
  },
  ...[
    [3, threes],
    [1, ones],
  ].map(([page, request]) => ({
    name: `TokenTree, pages of ${page}`,
    page: page as number,
    make: (maxTreeSize: number) => new TokenTree({ maxTreeSize, blockSize: page as number, salt: 1 }),
    request: request as fc.Arbitrary<number[]>,
    nothing: [],
    unitsOf: (units: number[] | Uint32Array) => [...units],
  })),
] as unknown as Kind<unknown, unknown>[];

const workers = ['w1', 'w2', '__proto__', 'constructor', 'w5', 'w6', 'w7', 'w8', 'w9', 'w10'];

function operations(request: fc.Arbitrary<unknown>): fc.Arbitrary<Operation<unknown>[]> {
  const worker = fc.constantFrom(...workers);
  const namespace = fc.constantFrom(undefined, undefined, undefined, 'n1', '__proto__');
  const operation = fc.oneof(
    { weight: 3, arbitrary: fc.record({ op: fc.constant('match' as const), units: request, worker, namespace }) },
    { weight: 8, arbitrary: fc.record({ op: fc.constant('insert' as const), units: request, worker, namespace }) },
    { weight: 8, arbitrary: fc.record({ op: fc.constant('matchInsert' as const), units: request, worker, namespace }) },
    {
      weight: 3,
      arbitrary: fc.record({
        op: fc.constant('merge' as const),
        units: request,
        worker,
        namespace,
        use: fc.integer({ min: -40, max: 12 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        op: fc.constantFrom('evict' as const, 'budget' as const),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ op: fc.constantFrom('remove' as const, 'add' as const), worker }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('copy' as const) }) },
  );
  return fc.array(operation, { maxLength: 2 * operationsPerRun });
}

/** Units each worker holds, counted afresh from the placements: the union of the paths, page by page. */
function recount(
  tree: PrefixTree<unknown, unknown>,
  unitsOf: (request: unknown) => number[],
  page: number,
): Map<string, number> {
  const prefixes = new Map<string, Set<string>>();
  for (const { namespace, units, worker } of tree.placements()) {
    const held = prefixes.get(worker) ?? new Set();
    prefixes.set(worker, held);
    const path = unitsOf(units);
    for (let end = page; end <= path.length; end += page) {
      held.add(JSON.stringify([namespace ?? null, path.slice(0, end)]));
    }
  }
  return new Map([...prefixes].map(([worker, held]) => [worker, held.size * page]));
}

function sorted(
  placements: Iterable<{ namespace: string | undefined; units: readonly number[]; worker: string; use: number }>,
): string[] {
  return [...placements].map((p) => JSON.stringify([p.use, p.worker, p.namespace ?? null, p.units])).sort();
}

const totals: string[] = [];
afterAll(() => {
  for (const line of totals) process.stdout.write(`${line}\n`);
});

describe.each(kinds)('$name beside a naive tree', ({ name, page, make, request, nothing, unitsOf }) => {
  const placementsOf = (tree: PrefixTree<unknown, unknown>): string[] =>
    sorted([...tree.placements()].map((placement) => ({ ...placement, units: unitsOf(placement.units) })));

  it('CA-30..CA-44, LB-33, LB-34: matches, sizes, nodes and placements agree after every operation', () => {
    let performed = 0;
    let evicted = 0;
    let merged = 0;
    const runs = Math.max(1, Math.ceil(operationsPerTree / operationsPerRun));
    fc.assert(
      fc.property(operations(request), fc.integer({ min: 20, max: 400 }), (sequence, budget) => {
        let tree = make(budget);
        const naive = new NaivePrefixTree(budget, page);
        const taken = new Set<number>();
        for (const step of sequence) {
          performed++;
          switch (step.op) {
            case 'match':
            case 'matchInsert':
            case 'insert': {
              const units = unitsOf(step.units);
              if (step.op !== 'insert') {
                deepStrictEqual(tree.match(step.units, step.namespace), naive.match(units, step.namespace));
              }
              if (step.op !== 'match') {
                const use = naive.insert(units, step.worker, step.namespace);
                strictEqual(tree.insert(step.units, step.worker, step.namespace), use);
                taken.add(use);
                ok(tree.size <= tree.maxTreeSize);
              }
              break;
            }
            case 'merge': {
              // Uses are unique, as in one instance; prefix-tree-merge.test.ts has ties.
              const use = naive.lastUse + step.use;
              if (use < 1 || taken.has(use)) break;
              taken.add(use);
              const changed = naive.insertPlacement(unitsOf(step.units), step.worker, use, step.namespace);
              strictEqual(tree.insertPlacement(step.units, step.worker, use, step.namespace), changed);
              if (changed) merged++;
              break;
            }
            case 'evict': {
              const target = Math.floor(naive.size * step.share);
              const freed = tree.evictTo(target);
              strictEqual(freed, naive.evictTo(target));
              evicted += freed;
              break;
            }
            case 'budget':
              naive.maxTreeSize = 20 + Math.floor(step.share * 400);
              naive.evictTo(naive.maxTreeSize);
              tree.maxTreeSize = naive.maxTreeSize;
              strictEqual(tree.maintain(whenDone), false);
              break;
            case 'remove':
              naive.removeTenant(step.worker);
              tree.removeTenant(step.worker);
              strictEqual(tree.hasTenant(step.worker), false);
              break;
            case 'add':
              naive.addTenant(step.worker);
              tree.addTenant(step.worker);
              break;
            case 'copy': {
              // A snapshot by way of JSON takes the tree's place; workers that hold nothing are not in it.
              const pieces = JSON.parse(JSON.stringify([...tree.pieces(7)])) as TreePiece<unknown>[];
              const copy = make(tree.maxTreeSize);
              for (const worker of tree.tenants()) copy.addTenant(worker);
              for (const piece of pieces) strictEqual(copy.restore(piece, () => true).skipped, 0);
              if (tree.lastUse > 0) copy.insertPlacement(nothing, 'w1', tree.lastUse);
              if (!tree.hasTenant('w1')) copy.removeTenant('w1');
              deepStrictEqual(placementsOf(copy), placementsOf(tree));
              tree = tree.nodeCount === copy.nodeCount ? copy : tree;
              break;
            }
          }
          strictEqual(tree.size, naive.size);
          strictEqual(tree.nodeCount, naive.nodeCount);
        }
        deepStrictEqual(placementsOf(tree), sorted(naive.placements()));
        deepStrictEqual(tree.tenants().sort(), naive.tenants().sort());
        const counted = recount(tree, unitsOf, page);
        for (const worker of workers) {
          strictEqual(tree.sizeOf(worker), naive.sizeOf(worker));
          strictEqual(tree.sizeOf(worker), counted.get(worker) ?? 0);
        }
        tree.evictTo(0);
        deepStrictEqual([tree.size, tree.nodeCount], [0, 0]);
      }),
      { numRuns: runs },
    );
    totals.push(`${name}: ${performed} operations in ${runs} runs, ${evicted} units evicted, ${merged} merges`);
  }, 3_600_000);
});
