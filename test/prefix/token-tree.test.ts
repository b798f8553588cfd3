import { describe, expect, it } from 'vitest';
import { TokenHash } from '../../src/prefix/token-hash.js';
import { TokenTree } from '../../src/prefix/token-tree.js';
import { seededRandom } from '../../src/runtime/random.js';

const unlimited = 2 ** 40;

/** The ids from `from` to `to` − 1. */
function ids(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

function treeOf(
  blockSize: number,
  ...placements: [tokens: number[] | Uint32Array, worker: string, namespace?: string][]
): TokenTree {
  const tree = new TokenTree({ maxTreeSize: unlimited, blockSize });
  for (const placement of placements) tree.insert(...placement);
  return tree;
}

describe('pages', () => {
  it('CA-33: matched ids are whole pages, request units are not rounded', () => {
    const tree = treeOf(16, [ids(0, 32), 'w1']);
    expect(tree.match(ids(0, 40))).toEqual({ matchedUnits: 32, requestUnits: 40, tenants: ['w1'] });
    expect(tree.match(ids(0, 31))).toEqual({ matchedUnits: 16, requestUnits: 31, tenants: ['w1'] });
    expect(tree.match(ids(0, 15))).toEqual({ matchedUnits: 0, requestUnits: 15, tenants: [] });
    expect(tree.match([...ids(0, 20), ...ids(500, 520)]).matchedUnits).toBe(16);
    expect(tree.match([])).toEqual({ matchedUnits: 0, requestUnits: 0, tenants: [] });
  });

  it('CA-33: a request shorter than a page records nothing but its worker', () => {
    const tree = treeOf(16);
    expect(tree.insert(ids(0, 15), 'w1')).toBe(0);
    expect([tree.size, tree.lastUse, tree.tenants()]).toEqual([0, 0, ['w1']]);
  });

  it('CA-39, B05: sizes count pages once, and splits fall on page boundaries', () => {
    const tree = treeOf(16, [ids(0, 48), 'w1'], [ids(0, 48), 'w1'], [ids(0, 48), 'w1']);
    tree.insert([...ids(0, 16), ...ids(100, 116)], 'w2');
    expect([tree.sizeOf('w1'), tree.sizeOf('w2'), tree.nodeCount]).toEqual([48, 32, 3]);
    // 20 common ids share one page only.
    tree.insert([...ids(0, 20), ...ids(900, 912)], 'w3');
    expect([tree.sizeOf('w3'), tree.nodeCount]).toEqual([32, 4]);
  });

  it.each([1, 3, 7, 16, 64, 1000])('any page size: %i', (blockSize) => {
    const whole = Math.floor(5000 / blockSize) * blockSize;
    const tree = treeOf(blockSize, [ids(0, 5000), 'w1']);
    expect(tree.size).toBe(whole);
    const changed = ids(0, 5000);
    changed[2600] = 9_999_999;
    expect(tree.match(changed).matchedUnits).toBe(Math.floor(2600 / blockSize) * blockSize);
    tree.insert(changed, 'w2');
    expect(tree.match(ids(0, 5000))).toEqual({ matchedUnits: whole, requestUnits: 5000, tenants: ['w1'] });
    expect(tree.match(changed).tenants).toEqual(['w2']);
  });

  it('all ids up to 2³²−1 are ordinary, also next to namespaces (CA-105)', () => {
    const high = [2 ** 31, 2 ** 31 + 1, 2 ** 32 - 1, 0];
    const tree = treeOf(4, [high, 'w1'], [high, 'w2', 'n']);
    expect(tree.match(high).tenants).toEqual(['w1']);
    expect(tree.match(Uint32Array.from(high), 'n').tenants).toEqual(['w2']);
    expect(tree.match([0, 1, 2 ** 32 - 1, 0]).matchedUnits).toBe(0);
  });

  it('pages with equal keys live side by side', () => {
    const salt = 12345;
    const hash = new TokenHash();
    const seen = new Map<number, number>();
    const pairs: [number, number][] = [];
    for (let id = 0; pairs.length < 2 && id < 1_000_000; id++) {
      hash.start(salt, ~salt);
      hash.mix([id, 7], 0, 2);
      hash.close();
      const other = seen.get(hash.low);
      if (other !== undefined) pairs.push([other, id]);
      seen.set(hash.low, id);
    }
    expect(pairs.length).toBe(2);
    for (const [a, b] of pairs) {
      const tree = new TokenTree({ maxTreeSize: unlimited, blockSize: 2, salt });
      tree.insert([a, 7, 1, 1], 'w1');
      tree.insert([b, 7, 2, 2], 'w2');
      tree.insert([a, 7, 3, 3], 'w3');
      tree.insert([b, 7], 'w4');
      expect(tree.size).toBe(4 + 4 + 4 + 2);
      expect(tree.match([a, 7, 1, 1])).toEqual({ matchedUnits: 4, requestUnits: 4, tenants: ['w1'] });
      expect(tree.match([b, 7, 2, 2])).toEqual({ matchedUnits: 4, requestUnits: 4, tenants: ['w2'] });
      expect(tree.match([b, 7]).tenants).toEqual(['w4', 'w2']);
      tree.removeTenant('w1');
      tree.removeTenant('w3');
      expect(tree.match([a, 7, 3, 3]).matchedUnits).toBe(0);
      expect(tree.match([b, 7, 2, 2]).tenants).toEqual(['w2']);
      tree.insert([a, 7], 'w1');
      tree.removeTenant('w2');
      tree.removeTenant('w4');
      expect([tree.nodeCount, tree.match([a, 7]).tenants]).toEqual([1, ['w1']]);
    }
  });
});

describe('input', () => {
  it('LB-42: a list is checked up to its last whole page, before anything changes', () => {
    for (const bad of [-1, 1.5, Number.NaN, Infinity, 2 ** 32, '5', null, undefined, {}, 5n]) {
      const tree = treeOf(4, [ids(0, 8), 'w1']);
      const tokens = [0, 1, 2, bad, 4, 5, 6, 7] as number[];
      expect(() => tree.match(tokens)).toThrow(/^tokens: expected ids from 0 to 4294967295, got .+ at 3$/);
      expect(() => tree.insert(tokens, 'w2')).toThrow(TypeError);
      expect(() => tree.insertPlacement(tokens, 'w2', 5)).toThrow(TypeError);
      expect([tree.tenants(), tree.size, tree.lastUse, tree.nodeCount]).toEqual([['w1'], 8, 1, 1]);
      const tail = [0, 1, 2, 3, bad] as number[];
      expect(tree.match(tail).matchedUnits).toBe(4);
    }
    for (const notTokens of ['1,2,3,4', { length: 4 }, 7, undefined, null, new Int32Array(4)]) {
      expect(() => treeOf(4).match(notTokens as unknown as number[])).toThrow(TypeError);
    }
    // Nothing is allocated for a length that is only claimed.
    expect(() => treeOf(4).match(new Array(2 ** 32 - 1) as number[])).toThrow(TypeError);
  });

  it('LB-40: a page size must be a positive integer', () => {
    for (const blockSize of [0, -1, 1.5, Number.NaN, Infinity, undefined] as number[]) {
      expect(() => new TokenTree({ maxTreeSize: 100, blockSize })).toThrow(/^blockSize: must be a positive integer/);
    }
  });

  it('LB-34: a use no tree gives out is refused', () => {
    const tree = treeOf(4);
    for (const use of [0, -1, 1.5, Number.NaN, Infinity, 2 ** 53]) {
      expect(() => tree.insertPlacement(ids(0, 4), 'w1', use)).toThrow(/^use: expected an integer/);
    }
    expect([tree.size, tree.tenantCount]).toEqual([0, 0]);
    expect(tree.insertPlacement(ids(0, 4), 'w1', 41)).toBe(true);
    expect(tree.insert(ids(0, 4), 'w2')).toBe(42);
  });

  it('an array that changes between match and insert cannot damage the tree', () => {
    for (const length of [64, 8192]) {
      const tree = treeOf(16, [ids(0, length), 'w1']);
      const tokens = Uint32Array.from([...ids(0, length / 2), ...ids(70_000, 70_000 + length / 2)]);
      const original = tokens.slice();
      tree.match(tokens);
      tokens.set(ids(0, length));
      tree.insert(tokens, 'w2');
      expect(tree.match(ids(0, length)).matchedUnits).toBe(length);
      if (length <= 4096) expect(tree.match(original).tenants).toEqual(['w2']);
      else expect(tree.match(tokens).tenants).toEqual(['w2', 'w1']);
      tree.removeTenant('w1');
      tree.removeTenant('w2');
      while (tree.maintain({ spent: () => false }));
      expect([tree.size, tree.nodeCount]).toEqual([0, 0]);
    }
  });

  it('128 000 ids, as a list and as an array', () => {
    const tree = treeOf(16);
    const many = ids(0, 128_000);
    tree.match(many);
    tree.insert(many, 'w1');
    expect(tree.match(Uint32Array.from(many))).toEqual({
      matchedUnits: 128_000,
      requestUnits: 128_000,
      tenants: ['w1'],
    });
    many[100_000] = 1;
    expect(tree.match(many).matchedUnits).toBe(100_000);
  });
});

describe('memory', () => {
  it('what survives around released labels stays intact while labels move', () => {
    const tree = new TokenTree({ maxTreeSize: unlimited, blockSize: 4 });
    const random = seededRandom(9);
    const kept: Uint32Array[] = [];
    for (let i = 0; i < 3000; i++) {
      const tokens = Uint32Array.from({ length: 4 + 4 * Math.floor(random() * 30) }, () => random() * 50);
      const isKept = i % 10 === 0;
      tree.insert(tokens, isKept ? 'w1' : `w${2 + (i % 3)}`);
      if (isKept) kept.push(tokens);
    }
    for (const worker of ['w2', 'w3', 'w4']) tree.removeTenant(worker);
    while (tree.maintain({ spent: () => true }));
    expect(tree.size).toBe(tree.sizeOf('w1'));
    for (const tokens of kept) expect(tree.match(tokens).matchedUnits).toBe(tokens.length);
  });
});
