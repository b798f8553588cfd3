/**
 * The descent that a match and the insert after it share: the insert goes on from the match as long as nothing came in
 * between, and records what the match saw; a large array, which is read in place, as it is by then.
 */
import { describe, expect, it } from 'vitest';
import type { TreeMatch } from '../../src/prefix/prefix-tree.js';
import { TokenTree } from '../../src/prefix/token-tree.js';

/** Arrays of more ids are read in place. */
const large = 8192;

function ids(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

function makeTree(): TokenTree {
  return new TokenTree({ maxTreeSize: 2 ** 40, blockSize: 4 });
}

function treeWith(tokens: readonly number[], worker: string): TokenTree {
  const tree = makeTree();
  tree.insert(tokens, worker);
  return tree;
}

function found(tokens: ArrayLike<number>, ...tenants: string[]): TreeMatch {
  return { matchedUnits: tokens.length, requestUnits: tokens.length, tenants };
}

describe('an insert after a match of the same request', () => {
  it.each([
    ['a list', () => ids(0, 12)],
    ['a large list', () => ids(0, large)],
    ['an array', () => Uint32Array.from(ids(0, 12))],
  ])('records what the match saw: %s', (_name, make) => {
    const tree = makeTree();
    const tokens = make();
    const seen = Array.from(tokens);
    tree.match(tokens);
    tokens.fill(7);
    tree.insert(tokens, 'w1');
    expect(tree.match(seen)).toEqual(found(seen, 'w1'));
    expect(tree.match(tokens).matchedUnits).toBe(0);
    // The next insert was not matched before.
    tree.insert(tokens, 'w2');
    expect(tree.match(tokens)).toEqual(found(tokens, 'w2'));
  });

  it('CA-101: descends again in another namespace', () => {
    const tokens = ids(0, 8);
    for (const known of ['one', 'other', undefined]) {
      const tree = makeTree();
      tree.insert(ids(0, 8), 'w0', known);
      tree.match(tokens, 'one');
      tree.insert(tokens, 'w1', 'other');
      expect(tree.match(tokens, 'one').tenants).toEqual(known === 'one' ? ['w0'] : []);
      expect(tree.match(tokens, 'other')).toEqual(found(tokens, ...(known === 'other' ? ['w1', 'w0'] : ['w1'])));
      expect(tree.match(tokens).tenants).toEqual(known === undefined ? ['w0'] : []);
    }
  });

  it('descends again when the tree has changed', () => {
    const tree = treeWith(ids(0, 16), 'w1');
    const tokens = [...ids(0, 8), ...ids(100, 108)];
    tree.match(tokens);
    tree.evictTo(0);
    tree.insert(tokens, 'w2');
    expect([tree.size, tree.nodeCount]).toEqual([16, 1]);
    expect(tree.match(tokens)).toEqual(found(tokens, 'w2'));
  });

  it.each([4, 12])('descends again when the list has %i ids by now', (length) => {
    const tree = makeTree();
    const tokens = ids(0, 8);
    tree.match(tokens);
    tokens.splice(0, tokens.length, ...ids(50, 50 + length));
    tree.insert(tokens, 'w1');
    expect(tree.match(tokens)).toEqual(found(tokens, 'w1'));
    expect(tree.size).toBe(length);
  });
});

describe('an insert after a match of a large array', () => {
  it('where the array ended inside a node: descends again when it no longer ends there', () => {
    const tree = treeWith(ids(0, large), 'w1');
    const tokens = Uint32Array.from(ids(0, large));
    tokens.fill(9, 4096);
    tree.match(tokens);
    tokens.set(ids(4096, 4100), 4096);
    tree.insert(tokens, 'w2');
    expect(tree.match(tokens)).toEqual(found(tokens, 'w2'));
    expect(tree.nodeCount).toBe(3);
    expect(tree.match(ids(0, 4100)).tenants).toEqual(['w2', 'w1']);
  });

  it('where no child went on: descends again when one does by now', () => {
    const tree = treeWith(ids(0, large), 'w1');
    tree.insert([...ids(0, large), ...ids(1, 5)], 'w1');
    const tokens = Uint32Array.from([...ids(0, large), ...ids(70, 78)]);
    tree.match(tokens);
    tokens.set(ids(1, 5), large);
    tree.insert(tokens, 'w2');
    expect(tree.match(tokens)).toEqual(found(tokens, 'w2'));
    expect(tree.nodeCount).toBe(3);
  });

  it('goes on where the match ended when the array still ends there, recording it as it is by now', () => {
    for (const known of [ids(0, large), [...ids(0, large), ...ids(1, 5)]]) {
      const tree = treeWith(known, 'w1');
      const tokens = Uint32Array.from([...ids(0, large), ...ids(70, 78)]);
      tree.match(tokens);
      tokens.set(ids(80, 88), large);
      tree.insert(tokens, 'w2');
      expect(tree.match(tokens)).toEqual(found(tokens, 'w2'));
    }
  });

  it('in a namespace that is not known yet, and one that is known as a whole', () => {
    const tree = makeTree();
    const tokens = Uint32Array.from(ids(0, large));
    tree.match(tokens, 'n');
    tree.insert(tokens, 'w1', 'n');
    expect(tree.match(tokens, 'n')).toEqual(found(tokens, 'w1'));
    expect(tree.insert(tokens, 'w2', 'n')).toBe(2);
    expect(tree.match(tokens, 'n')).toEqual(found(tokens, 'w2', 'w1'));
    expect([tree.size, tree.nodeCount]).toEqual([2 * large, 1]);
  });
});

describe('a descent', () => {
  it('CA-44: does not read what a removed worker still holds in memory', () => {
    const tree = treeWith(ids(0, 8), 'kept');
    tree.insert([...ids(0, 8), ...ids(50, 54)], 'gone');
    tree.insert(ids(0, 4), 'gone');
    for (let i = 0; i < 5000; i++) tree.insert([i, i, i, i, i, i, i, 1], 'gone');
    tree.removeTenant('gone');
    expect(tree.nodeCount).toBeGreaterThan(1000);
    const tokens = [...ids(0, 8), ...ids(50, 54)];
    expect(tree.match(tokens)).toEqual({ matchedUnits: 8, requestUnits: 12, tenants: ['kept'] });
    for (const i of [0, 2500, 4999]) {
      expect(tree.match([i, i, i, i, i, i, i, 1])).toEqual({ matchedUnits: 0, requestUnits: 8, tenants: [] });
    }
    while (tree.maintain({ spent: () => false }));
    expect(tree.match(tokens)).toEqual({ matchedUnits: 8, requestUnits: 12, tenants: ['kept'] });
    expect([tree.size, tree.nodeCount]).toEqual([8, 1]);
  });
});

describe('placements', () => {
  it('LB-34: a placement that is known already, or a newer one, changes nothing', () => {
    const tree = makeTree();
    expect(tree.insertPlacement(ids(0, 8), 'w1', 5)).toBe(true);
    expect(tree.insertPlacement(ids(0, 8), 'w1', 5)).toBe(false);
    expect(tree.insertPlacement(ids(0, 4), 'w1', 4)).toBe(false);
    expect(tree.insertPlacement(ids(0, 4), 'w1', 6)).toBe(true);
    expect(tree.insertPlacement(ids(0, 12), 'w1', 3)).toBe(true);
    expect([tree.size, tree.lastUse]).toEqual([12, 6]);
  });

  it('LB-33: labels that are no lists of token ids, or empty, are skipped and counted', () => {
    const tree = makeTree();
    const placement = { workers: ['w1'], namespaces: [null], parents: [-1], holds: [0, 0, 1] };
    for (const label of [[], '1234', [1, 2, 3, 4.5], [-1, 2, 3, 4], { length: 4 }, null, Uint32Array.of(1, 2, 3, 4)]) {
      expect(tree.restore({ ...placement, labels: [label as number[]] }, () => true)).toEqual({
        restored: 0,
        skipped: 1,
      });
    }
    expect(tree.restore({ ...placement, labels: [[1, 2, 3, 4]] }, () => true)).toEqual({ restored: 1, skipped: 0 });
    expect(tree.match([1, 2, 3, 4])).toEqual(found([1, 2, 3, 4], 'w1'));
  });

  it('prints labels as lists of ids', () => {
    const tree = treeWith(ids(0, 8), 'w1');
    tree.insert(ids(0, 4), 'w2', undefined);
    expect(tree.printTree()).toBe('(no namespace)\n  [0,1,2,3] w2@2 w1@1\n    [4,5,6,7] w1@1');
  });
});
