import { describe, expect, it } from 'vitest';
import type { TreePiece } from '../../src/prefix/prefix-tree.js';
import { StringTree } from '../../src/prefix/string-tree.js';
import { TokenTree } from '../../src/prefix/token-tree.js';
import { seededRandom } from '../../src/runtime/random.js';

const unlimited = 2 ** 40;
const anyWorker = (): boolean => true;

function restored(pieces: Iterable<TreePiece<string>>): StringTree {
  const tree = new StringTree({ maxTreeSize: unlimited });
  for (const piece of pieces) tree.restore(piece, anyWorker);
  return tree;
}

const listed = (tree: StringTree): string[] => [...tree.placements()].map((p) => JSON.stringify(p)).sort();

describe('pieces', () => {
  it('LB-33: name each node once, and only ends', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    tree.insert('a system prompt, first', 'w1');
    tree.insert('a system prompt, second', 'w2', 'n');
    tree.insert('a system prompt, third', 'w2');
    tree.insert('a system prompt, third', 'w1');
    expect([...tree.pieces()]).toEqual([
      {
        workers: ['w1', 'w2'],
        namespaces: [null, 'n'],
        parents: [-1, 0, -2, 0],
        labels: ['a system prompt, ', 'first', 'a system prompt, second', 'third'],
        holds: [1, 0, 1, 2, 1, 2, 3, 1, 3, 3, 0, 4],
      },
    ]);
    expect([...new StringTree({ maxTreeSize: 1 }).pieces()]).toEqual([]);
  });

  it('LB-33: the copy has the same content, uses and order, in any order of pieces', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    const random = seededRandom(33);
    for (let i = 0; i < 500; i++) tree.insert(`${Math.floor(random() * 300)}`.repeat(3), `w${i % 7}`);
    const pieces = [...tree.pieces(20)];
    expect(pieces.length).toBeGreaterThan(10);
    expect(listed(restored(pieces))).toEqual(listed(tree));
    const copy = restored([...pieces].reverse());
    expect(listed(copy)).toEqual(listed(tree));
    expect(copy.lastUse).toBe(tree.lastUse);
    for (const target of [1000, 500, 100, 10]) {
      tree.evictTo(target);
      copy.evictTo(target);
    }
    expect(listed(copy)).toEqual(listed(tree));
  });

  it('LB-5, LB-33: long prompts make pieces of fewer placements', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    for (let i = 0; i < 40; i++) tree.insert(`${i}`.padEnd(5000, '.'), 'w');
    const pieces = [...tree.pieces()];
    const units = pieces.map(({ labels }) => labels.join('').length);
    // A piece is full once it holds 16 384 units: it exceeds them by less than one prompt.
    for (const size of units) expect(size).toBeLessThan(16_384 + 5000);
    expect(pieces.map(({ holds }) => holds.length / 3)).toEqual([4, 4, 4, 4, 4, 4, 4, 4, 4, 4]);
    expect(listed(restored(pieces))).toEqual(listed(tree));
  });

  it('LB-33: placements may go while they are listed', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    for (let i = 0; i < 200; i++) tree.insert(`prompt ${i}`, `w${i % 4}`);
    const seen: string[] = [];
    for (const { units } of tree.placements()) {
      seen.push(units);
      if (seen.length === 10) for (let i = 0; i < 50; i++) tree.insert(`news ${i}`, 'w1');
      if (seen.length === 20) tree.removeTenant('w2');
      if (seen.length === 30) tree.evictTo(tree.size >> 1);
    }
    // What was evicted or lost its worker meanwhile is left out, the newest is there.
    expect(seen.slice(0, 30).every((units) => units.startsWith('prompt '))).toBe(true);
    expect(seen).toContain('prompt 199');
    expect(seen.length).toBeLessThan(200);
  });

  it('LB-33: a tree that changes between pieces is listed without a fault, and nothing that stays is missed', () => {
    const random = seededRandom(34);
    const tree = new StringTree({ maxTreeSize: 60_000 });
    for (let i = 0; i < 1000; i++) {
      tree.insert(`text ${i} ${random()}`, `w${i % 4}`);
    }
    const copy = new StringTree({ maxTreeSize: unlimited });
    let pieces = 0;
    for (const piece of tree.pieces(30)) {
      pieces++;
      copy.restore(piece, anyWorker);
      if (pieces > 60) continue;
      for (let i = 0; i < 40; i++) tree.insert(`new ${pieces} ${i} ${random()}`, `w${i % 5}`);
      for (const { units } of [...tree.placements()].filter((p) => p.units.startsWith('text 9')).slice(0, 5))
        tree.insert(units, 'w9');
      if (pieces === 5) tree.removeTenant('w3');
      if (pieces % 7 === 0) tree.evictTo(tree.size - 500);
    }
    expect(pieces).toBeLessThan(100);
    const known = new Set([...copy.placements()].map((p) => `${p.worker} ${p.namespace} ${p.units}`));
    const stayed = [...tree.placements()].filter((p) => p.units.startsWith('text'));
    expect(stayed.length).toBeGreaterThan(100);
    for (const p of stayed) expect(known.has(`${p.worker} ${p.namespace} ${p.units}`)).toBe(true);
    expect(copy.sizeOf('w1')).toBeGreaterThan(0);
  });

  it('LB-5, LB-34: a merged placement counts as one, however far ahead its use is', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    for (let i = 0; i < 1000; i++) tree.insert(`${i} prompt`, 'w1');
    const sizes: number[] = [];
    for (const { holds } of tree.pieces(10)) {
      sizes.push(holds.length / 3);
      tree.insertPlacement(`from elsewhere ${sizes.length}`, 'w2', sizes.length * 1_000_000);
    }
    expect(Math.max(...sizes)).toBe(10);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(1000);
  });

  it('LB-33: survive JSON and structured clone, lone surrogates and high ids included', () => {
    const text = new StringTree({ maxTreeSize: unlimited });
    text.insert('\ud83d alone, 😀, __proto__', '__proto__', 'constructor');
    const textCopy = restored(JSON.parse(JSON.stringify([...text.pieces()])) as TreePiece<string>[]);
    expect(listed(textCopy)).toEqual(listed(text));
    const tokens = new TokenTree({ maxTreeSize: unlimited, blockSize: 2 });
    tokens.insert([1, 2 ** 32 - 1, 5, 6], 'w1');
    tokens.insert([1, 2 ** 32 - 1, 7, 8], 'w1', 'n');
    const copy = new TokenTree({ maxTreeSize: unlimited, blockSize: 2 });
    for (const piece of structuredClone([...tokens.pieces()])) copy.restore(piece, anyWorker);
    expect(copy.match([1, 2 ** 32 - 1, 5, 6]).matchedUnits).toBe(4);
    expect(copy.match([1, 2 ** 32 - 1, 7, 8], 'n').matchedUnits).toBe(4);
  });

  it('LB-33: unknown workers and malformed parts are skipped and counted', () => {
    const piece = {
      workers: ['w1', 'gone', 7],
      namespaces: [null, 5],
      parents: [-1, 0, 5, -2, -1, 'x', -1],
      labels: ['ab', 'c', 'd', 'e', '', 'f', 9],
      holds: [
        1, 0, 3, 0, 1, 4, 2, 0, 5, 3, 0, 6, 4, 0, 7, 5, 0, 8, 6, 0, 9, 0, 2, 10, 0, 0, 0, 0, 0, 1.5, 99, 0, 1, 0, 0,
      ],
    } as unknown as TreePiece<string>;
    const tree = new StringTree({ maxTreeSize: unlimited });
    expect(tree.restore(piece, (worker) => worker !== 'gone')).toEqual({ restored: 1, skipped: 11 });
    expect([...tree.placements()]).toEqual([{ namespace: undefined, units: 'abc', worker: 'w1', use: 3 }]);
    for (const parents of [[0], [1, 0], [-1, 2, 1]]) {
      const around = { ...piece, workers: ['w1'], namespaces: [null], parents, labels: ['a', 'b', 'c'] };
      expect(tree.restore({ ...around, holds: [parents.length - 1, 0, 1] }, anyWorker)).toEqual({
        restored: 0,
        skipped: 1,
      });
    }
    const root = { workers: ['w1'], namespaces: [null], parents: [-1], labels: [['ab'] as never], holds: [-1, 0, 99] };
    expect(tree.restore(root, anyWorker)).toEqual({ restored: 0, skipped: 1 });
    expect(tree.restore({ ...root, holds: [0, 0, 99] }, anyWorker)).toEqual({ restored: 0, skipped: 1 });
    expect(tree.lastUse).toBe(3);
    const nothing = { workers: [], namespaces: [], parents: {}, labels: [], holds: [] } as unknown as TreePiece<string>;
    expect(tree.restore(nothing, anyWorker)).toEqual({ restored: 0, skipped: 1 });
  });
});

describe('printTree', () => {
  it('shows nodes with their tenants and uses, newest first', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    tree.insert('hello world', 'w1');
    tree.insert('hello', 'w2');
    tree.insert('other', 'w1', 'n');
    expect(tree.printTree().split('\n')).toEqual([
      '(no namespace)',
      '  "hello" w2@2 w1@1',
      '    " world" w1@1',
      '(namespace "n")',
      '  "other" w1@3',
    ]);
  });
});

describe('wrong arguments', () => {
  it('LB-42: what is no function, or no number, is refused by name', () => {
    const tree = new StringTree({ maxTreeSize: 9 });
    expect(() => tree.restore({} as never, 'w1' as never)).toThrow(/^accepts: expected a function, got "w1"$/);
    expect(() => tree.pieces('9' as never).next()).toThrow(/^placementsPerPiece: expected a number, got "9"$/);
  });

  it('LB-33: indices that are no numbers are skipped and counted', () => {
    const odd = Object.create(null) as never;
    const piece = { workers: ['a'], namespaces: [null], parents: [-1], labels: ['text'], holds: [odd, odd, 1] };
    expect(new StringTree({ maxTreeSize: 9 }).restore(piece, anyWorker)).toEqual({ restored: 0, skipped: 1 });
  });

  it('LB-42: a worker, a namespace or tokens of the wrong type register nobody', () => {
    const text = new StringTree({ maxTreeSize: 99 });
    const tokens = new TokenTree({ maxTreeSize: 99, blockSize: 1 });
    expect(() => text.insert('text', 'a', 5 as never)).toThrow(/^namespace: expected a string, got 5/);
    expect(() => tokens.insert([1], 'a', 5 as never)).toThrow(/^namespace: expected a string, got 5/);
    expect(() => text.insert('text', Symbol('a') as never)).toThrow(/^worker: expected a string, got a symbol/);
    expect(() => tokens.insert([1], null as never)).toThrow(/^worker: expected a string, got null/);
    expect(() => tokens.insert(undefined as never, 'a')).toThrow(/^tokens: /);
    expect([text.tenantCount, tokens.tenantCount, text.lastUse, tokens.lastUse]).toEqual([0, 0, 0, 0]);
  });
});
