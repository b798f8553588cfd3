/** CA-30: labels that end with a lone surrogate beside texts in which its partner follows. Units are code points. */
import { describe, expect, it } from 'vitest';
import { StringTree } from '../../src/prefix/string-tree.js';

const high = '\ud83d';
const low = '\ude00';

function treeOf(...placements: readonly (readonly [text: string, worker: string])[]): StringTree {
  const tree = new StringTree({ maxTreeSize: 2 ** 40 });
  for (const [text, worker] of placements) tree.insert(text, worker);
  return tree;
}

describe('a label that ends with half a pair', () => {
  it('agrees with a whole pair up to the unit before it', () => {
    const tree = treeOf([`ab${high}`, 'w1']);
    expect(tree.match('ab😀c')).toEqual({ matchedUnits: 2, requestUnits: 4, tenants: ['w1'] });
    expect(tree.match(`ab${high}c`)).toEqual({ matchedUnits: 3, requestUnits: 4, tenants: ['w1'] });
    expect(tree.match(`ab${high}`)).toEqual({ matchedUnits: 3, requestUnits: 3, tenants: ['w1'] });
  });

  it('is split before it by a text with the whole pair, whether that was matched first or not', () => {
    for (const isMatched of [true, false]) {
      const tree = treeOf([`ab${high}`, 'w1'], [`ab${high}cd`, 'w1']);
      if (isMatched) tree.match('ab😀c');
      tree.insert('ab😀c', 'w2');
      expect([tree.sizeOf('w1'), tree.sizeOf('w2'), tree.nodeCount]).toEqual([5, 4, 4]);
      expect(tree.match('ab😀c')).toEqual({ matchedUnits: 4, requestUnits: 4, tenants: ['w2'] });
      expect(tree.match(`ab${high}cd`)).toEqual({ matchedUnits: 5, requestUnits: 5, tenants: ['w1'] });
      expect(tree.match('ab').tenants).toEqual(['w2', 'w1']);
    }
  });

  it('and has one unit shares nothing with the pair', () => {
    const tree = treeOf([high, 'w1']);
    expect(tree.match('😀')).toEqual({ matchedUnits: 0, requestUnits: 1, tenants: [] });
    tree.insert('😀', 'w2');
    expect(tree.match('😀').tenants).toEqual(['w2']);
    expect(tree.match(high).tenants).toEqual(['w1']);
    expect(tree.match(high + low)).toEqual({ matchedUnits: 1, requestUnits: 1, tenants: ['w2'] });
  });

  it('CA-44: matches nothing when only a removed worker still holds it in memory', () => {
    const tree = treeOf([`ab${high}`, 'gone']);
    for (let i = 0; i < 5000; i++) tree.insert(`${String.fromCharCode(0x4e00 + i)}${i}`, 'gone');
    tree.insert('x', 'stays');
    tree.removeTenant('gone');
    expect(tree.nodeCount).toBeGreaterThan(1000);
    expect(tree.match('ab😀')).toEqual({ matchedUnits: 0, requestUnits: 3, tenants: [] });
  });
});
