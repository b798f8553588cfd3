/** Reading a tree out while it changes: what a walk over its ends meets when the ends it remembers move or go. */
import { describe, expect, it } from 'vitest';
import { StringTree } from '../../src/prefix/string-tree.js';

const whenDone = { spent: () => false };

/** `count` prompts that share nothing, so that each is an end, oldest first. */
function treeOf(count: number, workerOf: (i: number) => string): StringTree {
  const tree = new StringTree({ maxTreeSize: 2 ** 40 });
  for (let i = 0; i < count; i++) tree.insert(promptOf(i), workerOf(i));
  return tree;
}

function promptOf(i: number): string {
  return `${String.fromCharCode(0x4e00 + i)} is prompt ${i}`;
}

function prompts(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, i) => promptOf(from + i));
}

/** What is listed while `change` is called after each placement with the number listed so far. */
function listedWhile(tree: StringTree, change: (listed: number) => void): string[] {
  const listed: string[] = [];
  for (const { units } of tree.placements()) {
    listed.push(units);
    change(listed.length);
  }
  return listed;
}

describe('EndsWalk', () => {
  it('LB-33: goes on behind the last visited end after that one has moved', () => {
    const tree = treeOf(10, () => 'w1');
    const listed = listedWhile(tree, (count) => {
      if (count === 3) tree.insert(promptOf(2), 'w1');
    });
    expect(listed).toEqual([...prompts(0, 10), promptOf(2)]);
  });

  it('LB-33: lists nothing twice when more than it remembers has gone', () => {
    const tree = treeOf(1010, (i) => (i < 100 || i >= 1000 ? 'stays' : 'gone'));
    const listed = listedWhile(tree, (count) => {
      if (count !== 900) return;
      tree.removeTenant('gone');
      while (tree.maintain(whenDone));
    });
    expect(listed).toEqual([...prompts(0, 900), ...prompts(1000, 1010)]);
  });

  it('LB-33: ends although every placement it lists brings another', () => {
    const tree = treeOf(3, () => 'w1');
    let news = 100;
    const listed = listedWhile(tree, () => tree.insert(promptOf(news++), 'w1'));
    expect(listed.slice(0, 3)).toEqual(prompts(0, 3));
    expect(listed.length).toBeLessThan(20);
  });

  it('CA-44, LB-33: passes over what a removed worker still holds in memory', () => {
    const tree = treeOf(5000, (i) => (i === 2500 ? 'stays' : 'gone'));
    tree.removeTenant('gone');
    expect(tree.nodeCount).toBeGreaterThan(1000);
    expect([...tree.pieces()]).toEqual([
      { workers: ['stays'], namespaces: [null], parents: [-1], labels: [promptOf(2500)], holds: [0, 0, 2501] },
    ]);
    expect(listedWhile(tree, () => {})).toEqual([promptOf(2500)]);
    expect(tree.printTree()).toContain(`"${promptOf(2500)}" stays@2501`);
    expect(tree.printTree()).not.toMatch(/gone|undefined/);
  });
});
