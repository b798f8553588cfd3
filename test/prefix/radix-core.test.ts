import { describe, expect, it } from 'vitest';
import { RadixCore } from '../../src/prefix/radix-core.js';
import { childrenOf, type RadixNode } from '../../src/prefix/radix-node.js';
import { textLabels } from '../../src/prefix/radix-text.js';
import { StringTree } from '../../src/prefix/string-tree.js';
import { privateField } from '../support/private-field.js';
import { fc } from '../support/property.js';

const unlimited = 2 ** 40;

function setUp() {
  const tree = new StringTree({ maxTreeSize: unlimited });
  return { tree, core: privateField(tree, '#core') as RadixCore<string> };
}

function placementsOf(tree: StringTree): [text: string, worker: string, use: number][] {
  return [...tree.placements()].map(({ units, worker, use }) => [units, worker, use]);
}

/** Counts a tree anew and checks what is promised between calls. */
function audit({ tenants, holdings, holders, ends, roots, nodeCount }: RadixCore<string>): void {
  const counted = { nodes: 0, size: 0, live: 0, dead: 0, ends: 0 };
  const endUses: number[] = [];
  for (let end = ends.oldest(); end !== 0; end = ends.newer(end)) endUses.push(holdings.use(end));
  expect(endUses).toEqual([...endUses].sort((a, b) => a - b));
  const pending = roots.all().flatMap((root) => childrenOf(root));
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    counted.nodes++;
    let held = 0;
    let last = Number.POSITIVE_INFINITY;
    for (let holding = node.newestHolding; holding !== 0; holding = holders.older(holding)) {
      const tenant = holdings.tenant(holding);
      const use = holdings.use(holding);
      const isLive = tenants.workerOf(tenant) !== undefined;
      held++;
      counted[isLive ? 'live' : 'dead']++;
      if (isLive) counted.size += node.units;
      if (ends.has(holding)) counted.ends++;
      expect(use).toBeLessThanOrEqual(last);
      last = use;
      const parent = node.parent as RadixNode<string>;
      if (!isLive || parent.parent === undefined) continue;
      const above = holders.find(parent, tenant);
      expect(above).not.toBe(0);
      expect(holdings.use(above)).toBeGreaterThanOrEqual(use);
    }
    expect(node.holders).toBe(held);
    expect(node.endsHere).toBe(held > 0 && ends.has(node.newestHolding));
    const children = childrenOf(node);
    expect(held + children.length).toBeGreaterThan(0);
    pending.push(...children);
  }
  expect({ ...counted, ends: endUses.length }).toEqual({
    nodes: nodeCount,
    size: tenants.size,
    live: tenants.liveHoldings,
    dead: tenants.deadHoldings,
    ends: counted.ends,
  });
}

describe('a tree from the inside', () => {
  it('CA-30, CA-39, B05, B78: counts and order are those of a recount after any history', () => {
    const operation = fc.record({
      kind: fc.constantFrom('insert', 'insert', 'insert', 'merge', 'merge', 'remove', 'reclaim', 'evict'),
      text: fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 6 }),
      worker: fc.constantFrom('w1', 'w2', 'w3', 'w4'),
      use: fc.integer({ min: 1, max: 10 }),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 30 }), (operations) => {
        const { tree, core } = setUp();
        for (const { kind, text, worker, use } of operations) {
          if (kind === 'insert') tree.insert(text, worker);
          else if (kind === 'merge') tree.insertPlacement(text, worker, use);
          else if (kind === 'remove') core.tenants.remove(worker);
          else if (kind === 'reclaim') core.reclaimOne();
          else core.evictOldest();
          audit(core);
        }
      }),
      { numRuns: 100 },
    );
  });

  it('LB-31: holdings are bounded by 65 536, or by a sixteenth of a larger budget', () => {
    const core = new RadixCore(textLabels, 16);
    core.tenants.liveHoldings = 65_536;
    expect(core.isOverBudget()).toBe(false);
    core.tenants.liveHoldings = 65_537;
    expect(core.isOverBudget()).toBe(true);
    core.maxTreeSize = 16 * 65_537;
    expect(core.isOverBudget()).toBe(false);
    core.maxTreeSize -= 1;
    expect(core.isOverBudget()).toBe(true);
  });

  it('CA-42, CA-44: evicting and reclaiming do nothing where there is nothing', () => {
    const core = new RadixCore(textLabels, unlimited);
    expect(core.evictOldest()).toBe(-1);
    core.reclaimOne();
    audit(core);
  });

  it('CA-32, CA-44: a node of a removed worker has no tenants', () => {
    const { tree, core } = setUp();
    tree.insert('a', 'w1');
    core.tenants.remove('w1');
    expect(
      core.tenantsOf(childrenOf(core.roots.of(undefined) as RadixNode<string>)[0] as RadixNode<string>, 8),
    ).toEqual([]);
  });

  it('LB-34: merging the same use again changes nothing', () => {
    const { tree, core } = setUp();
    tree.insertPlacement('a', 'w1', 5);
    tree.insertPlacement('b', 'w1', 6);
    const [first] = childrenOf(core.roots.of(undefined) as RadixNode<string>);
    core.holdMerged(first as RadixNode<string>, core.tenants.numberOf('w1'), 5);
    expect(placementsOf(tree)).toEqual([
      ['a', 'w1', 5],
      ['b', 'w1', 6],
    ]);
  });

  it('LB-34: of two placements of one use on one path only the longer is kept, in either order', () => {
    for (const texts of [
      ['a', 'ab'],
      ['ab', 'a'],
    ]) {
      const { tree } = setUp();
      for (const text of texts) tree.insertPlacement(text, 'w1', 5);
      expect(placementsOf(tree)).toEqual([['ab', 'w1', 5]]);
    }
  });

  it('LB-34: tells whether a placement is news', () => {
    const { tree } = setUp();
    const isNews = (text: string, worker: string, use: number) => tree.insertPlacement(text, worker, use);
    expect(isNews('ab', 'w1', 5)).toBe(true);
    expect([isNews('ab', 'w1', 5), isNews('ab', 'w1', 4), isNews('a', 'w1', 5)]).toEqual([false, false, false]);
    expect([isNews('ab', 'w2', 5), isNews('ab', 'w1', 6), isNews('abc', 'w1', 1)]).toEqual([true, true, true]);
    expect(placementsOf(tree)).toEqual([
      ['abc', 'w1', 1],
      ['ab', 'w2', 5],
      ['ab', 'w1', 6],
    ]);
  });

  it('LB-31: a split counts the holdings it copies, which are those of the living', () => {
    const { tree, core } = setUp();
    for (const worker of ['w1', 'w2', 'w3']) tree.insert('ab', worker);
    core.tenants.remove('w2');
    const [node] = childrenOf(core.roots.of(undefined) as RadixNode<string>);
    const head = core.split(node as RadixNode<string>, 1);
    expect([core.copiedHoldings, core.tenantsOf(head, 8), head.holders]).toEqual([2, ['w3', 'w1'], 2]);
    audit(core);
  });

  it('CA-42, CA-44: evicting the end of a removed worker frees no units', () => {
    const { tree, core } = setUp();
    tree.insert('abc', 'w1');
    tree.insert('de', 'w2');
    core.tenants.remove('w1');
    expect([core.evictOldest(), core.evictOldest(), core.evictOldest()]).toEqual([0, 2, -1]);
    audit(core);
  });

  it('CA-106: the root of a namespace goes with the last that is held in it; the plain one stays', () => {
    const { tree, core } = setUp();
    const plain = core.roots.of(undefined);
    tree.insert('a', 'w1', 'n');
    tree.insert('a', 'w1');
    expect(core.roots.all().length).toBe(2);
    tree.evictTo(0);
    expect([core.roots.of('n'), core.roots.all()]).toEqual([undefined, [plain]]);
    expect(core.roots.of(undefined)).toBe(plain);
  });
});

describe('joining', () => {
  it('B07: nodes that nothing tells apart are joined up to 16 384 units', () => {
    for (const [length, nodes] of [
      [16_384, 1],
      [16_385, 2],
    ] as const) {
      const { tree, core } = setUp();
      tree.insert('x'.repeat(length), 'w1');
      tree.insert('x'.repeat(10), 'w2');
      tree.removeTenant('w2');
      expect([tree.nodeCount, tree.match('x'.repeat(length)).matchedUnits]).toEqual([nodes, length]);
      audit(core);
    }
  });

  it('B07: a node is joined with the one above when the one below differs', () => {
    const { tree, core } = setUp();
    tree.insert('pmc', 'w1');
    tree.insert('pm', 'w2');
    tree.insert('pm', 'w3');
    tree.insert('p', 'w2');
    expect(tree.nodeCount).toBe(3);
    tree.removeTenant('w2');
    expect(tree.nodeCount).toBe(2);
    audit(core);
  });

  it('B07: a node with several children is not joined with one of them', () => {
    const { tree, core } = setUp();
    tree.insert('pb', 'w1');
    tree.insert('pa', 'w1');
    tree.insert('pa', 'w2');
    tree.removeTenant('w2');
    expect([tree.nodeCount, tree.match('pa').matchedUnits, tree.match('pb').matchedUnits]).toEqual([3, 2, 2]);
    audit(core);
  });

  it('B07, LB-34: equal uses of different workers do tell nodes apart', () => {
    const { tree, core } = setUp();
    tree.insertPlacement('pb', 'w2', 5);
    tree.insertPlacement('p', 'w1', 5);
    tree.removeTenant('w2');
    expect(placementsOf(tree)).toEqual([['p', 'w1', 5]]);
    expect([tree.nodeCount, tree.size]).toEqual([1, 1]);
    audit(core);
  });
});
