import { describe, expect, it } from 'vitest';
import { RadixCore } from '../../src/prefix/radix-core.js';
import { RadixNode } from '../../src/prefix/radix-node.js';
import { textLabels } from '../../src/prefix/radix-text.js';
import { evictTreeTo, maintainTree, settle } from '../../src/prefix/radix-upkeep.js';
import { StringTree } from '../../src/prefix/string-tree.js';

const unlimited = 2 ** 40;

/** A tree of `count` leaves of one unit each, held by `worker`. */
function treeOf(count: number, worker: string): RadixCore<string> {
  const core = new RadixCore({ ...textLabels }, unlimited);
  addLeaves(core, count, worker);
  return core;
}

function addLeaves(core: RadixCore<string>, count: number, worker: string): void {
  for (let i = 0; i < count; i++) {
    const key = core.lastUse;
    const leaf = new RadixNode(String.fromCodePoint(key), core.roots.of(undefined));
    leaf.units = leaf.length = leaf.extent = 1;
    core.addNode(key, leaf);
    core.hold(leaf, core.tenants.numberOf(worker), ++core.lastUse);
  }
}

const spent = { spent: () => true };

describe('after an insert', () => {
  it('LB-5, CA-44: at most 256 holdings of removed workers are reclaimed while the budget has room', () => {
    const core = treeOf(1000, 'w1');
    core.tenants.remove('w1');
    settle(core, 10);
    expect(core.tenants.deadHoldings).toBe(744);
  });

  it('LB-32: as many more as units were added are reclaimed while those that wait exceed what is free', () => {
    const core = treeOf(1000, 'w1');
    addLeaves(core, 100, 'w2');
    core.tenants.remove('w1');
    core.maxTreeSize = 110;
    settle(core, 10);
    expect([core.tenants.size, core.tenants.deadHoldings]).toEqual([100, 734]);
    core.maxTreeSize = 100 + 734 - 256;
    settle(core, 10);
    expect(core.tenants.deadHoldings).toBe(734 - 256);
  });

  it('LB-31, LB-32: evicts at most 256 holdings, and one more for each unit added and each holding copied', () => {
    const core = treeOf(1000, 'w1');
    core.maxTreeSize = 10;
    core.copiedHoldings = 5;
    settle(core, 10);
    expect([core.tenants.size, core.copiedHoldings]).toEqual([1000 - 256 - 10 - 5, 0]);
    settle(core, 0);
    expect(core.tenants.size).toBe(1000 - 256 - 10 - 5 - 256);
  });

  it('LB-32: a merged placement makes room for the units it adds', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    for (let i = 0; i < 1000; i++) tree.insert(String.fromCodePoint(0x4e00 + i), 'w1');
    tree.maxTreeSize = 10;
    tree.insertPlacement('abc', 'w1', 2000);
    expect(tree.size).toBe(1003 - 256 - 3);
  });

  it('LB-5: labels are moved only after something was taken away', () => {
    const core = treeOf(1, 'w1');
    let moves = 0;
    core.labels.compact = () => {
      moves++;
    };
    settle(core, 1);
    expect(moves).toBe(0);
    core.tenants.remove('w1');
    settle(core, 0);
    expect(moves).toBe(1);
  });
});

describe('maintenance', () => {
  it('LB-5: looks at its budget after every 8 holdings, those of removed workers first', () => {
    const core = treeOf(20, 'w1');
    addLeaves(core, 20, 'w2');
    core.tenants.remove('w1');
    core.maxTreeSize = 10;
    const left: number[][] = [];
    const look = () => left.push([core.tenants.deadHoldings, core.tenants.size]);
    expect(maintainTree(core, { spent: () => look() === 2 })).toBe(true);
    expect(maintainTree(core, { spent: () => look() === 0 })).toBe(false);
    look();
    expect(left).toEqual([
      [12, 20],
      [4, 20],
      [0, 16],
      [0, 10],
    ]);
  });

  it('LB-5: goes on while labels are worth moving', () => {
    const core = treeOf(1, 'w1');
    let worthIt = 20;
    core.labels.compactSome = () => --worthIt > 0;
    expect([maintainTree(core, spent), worthIt]).toEqual([true, 12]);
    expect([maintainTree(core, { spent: () => false }), worthIt]).toEqual([false, 0]);
  });
});

describe('evicting in one go', () => {
  it('CA-42: goes on past what removed workers hold, counts the units of the living, and ends when nothing is left', () => {
    const core = treeOf(3, 'w1');
    addLeaves(core, 4, 'w2');
    core.tenants.remove('w1');
    expect(evictTreeTo(core, 1)).toBe(3);
    expect([core.tenants.size, core.tenants.deadHoldings]).toEqual([1, 0]);
    expect(evictTreeTo(core, -1)).toBe(1);
    expect([core.tenants.size, core.nodeCount]).toEqual([0, 0]);
  });

  it('LB-42: refuses units that are no number', () => {
    expect(() => evictTreeTo(treeOf(1, 'w1'), '1' as unknown as number)).toThrow(/^units: expected a number/);
  });
});
