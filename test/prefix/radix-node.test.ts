import { describe, expect, it } from 'vitest';
import { addChild, childrenOf, hasChildren, onlyChild, RadixNode, removeChild } from '../../src/prefix/radix-node.js';

/** A node with children of the given keys, and the children; equal keys make twins. */
function setUp(...keys: number[]) {
  const node = new RadixNode('', undefined);
  const children = keys.map((key) => {
    const child = new RadixNode(`${key}`, node);
    addChild(node, key, child);
    return child;
  });
  return { node, children };
}

describe('children', () => {
  it('B07: knows none, one, and several, with equal and with different keys', () => {
    const counts = [[], [1], [1, 1], [1, 2]].map((keys) => {
      const { node, children } = setUp(...keys);
      expect(onlyChild(node)).toBe(children.length === 1 ? children[0] : undefined);
      return [hasChildren(node), childrenOf(node).length];
    });
    expect(counts).toEqual([
      [false, 0],
      [true, 1],
      [true, 2],
      [true, 2],
    ]);
  });

  it('CA-30: any one of children with the same key is removed alone', () => {
    for (let removed = 0; removed < 4; removed++) {
      const { node, children } = setUp(7, 7, 7, 8);
      const child = children[removed] as RadixNode<string>;
      removeChild(node, removed === 3 ? 8 : 7, child);
      expect(new Set(childrenOf(node))).toEqual(new Set(children.filter((other) => other !== child)));
      expect(childrenOf(node).length).toBe(3);
      expect(child.twin).toBe(undefined);
    }
  });
});
