import { describe, expect, it } from 'vitest';
import { Ends } from '../../src/prefix/radix-ends.js';
import { Holders } from '../../src/prefix/radix-holders.js';
import { Holdings } from '../../src/prefix/radix-holdings.js';
import { RadixNode } from '../../src/prefix/radix-node.js';
import { Tenants } from '../../src/prefix/radix-tenants.js';
import { fc } from '../support/property.js';

class CountedHoldings extends Holdings<string> {
  reads = 0;

  override word(holding: number, word: number): number {
    this.reads++;
    return super.word(holding, word);
  }
}

const tenantsPerNode = 3;

/** Nodes that the same tenants hold, and nobody's ends yet. */
function setUp(nodeCount: number, holdings: Holdings<string> = new Holdings()) {
  const holders = new Holders(holdings, new Tenants());
  const nodes = Array.from({ length: nodeCount }, () => {
    const node = new RadixNode('', undefined);
    for (let tenant = 0; tenant < tenantsPerNode; tenant++) holders.addNewest(node, tenant, 1);
    return node;
  });
  return { holdings, ends: new Ends(holdings), nodes, holders };
}

function listed(ends: Ends<string>): number[] {
  const found: number[] = [];
  for (let end = ends.oldest(); end !== 0; end = ends.newer(end)) found.push(end);
  return found;
}

describe('ends', () => {
  it('LB-34: placements of equal use, merged, come before those that were there', () => {
    const { holdings, ends, nodes } = setUp(4);
    const [a, b, c, d] = nodes.map((node) => node.newestHolding) as [number, number, number, number];
    for (const [i, use] of [7, 7, 7, 9].entries()) {
      const node = nodes[i] as RadixNode<string>;
      holdings.setUse(node.newestHolding, use);
      ends.linkByUse(node, node.newestHolding);
    }
    expect(listed(ends)).toEqual([c, b, a, d]);
  });

  it('CA-42, LB-34: a node that takes the place of an evicted one comes after the others of its use', () => {
    const { holdings, ends, nodes } = setUp(4);
    const [a, b, c, d] = nodes.map((node) => node.newestHolding) as [number, number, number, number];
    for (const [i, use] of [7, 8, 7].entries()) {
      const node = nodes[i] as RadixNode<string>;
      holdings.setUse(node.newestHolding, use);
      ends.linkByUse(node, node.newestHolding);
    }
    holdings.setUse(d, 7);
    ends.linkOldest(nodes[3] as RadixNode<string>, d);
    expect(listed(ends)).toEqual([c, a, d, b]);
  });

  it('CA-42, CA-43, LB-33: are in order of use after any history, and each node knows whether its newest holder is one', () => {
    const nodeCount = 4;
    const operation = fc.record({
      kind: fc.constantFrom('renew', 'merge', 'oldest', 'unlink', 'unlink'),
      node: fc.nat(nodeCount - 1),
      holder: fc.nat(tenantsPerNode - 1),
      use: fc.integer({ min: 1, max: 12 }),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 40 }), (operations) => {
        const { holdings, holders, ends, nodes } = setUp(nodeCount);
        let model: { end: number; use: number }[] = [];
        for (const { kind, node: i, holder, use } of operations) {
          const node = nodes[i] as RadixNode<string>;
          const holding = holders.find(node, holder);
          const isEnd = model.some(({ end }) => end === holding);
          if (kind === 'unlink') {
            ends.unlink(node, holding);
            model = model.filter(({ end }) => end !== holding);
          } else if (kind === 'renew') {
            const end = node.newestHolding;
            model = model.filter((other) => other.end !== end);
            model.push({ end, use: (model.at(-1)?.use ?? 0) + 1 });
            holdings.setUse(end, model.at(-1)?.use as number);
            ends.renew(node);
          } else if (kind === 'merge' && !isEnd) {
            holdings.setUse(holding, use);
            ends.linkByUse(node, holding);
            const place = model.findIndex((other) => other.use >= use);
            model.splice(place < 0 ? model.length : place, 0, { end: holding, use });
          } else if (kind === 'oldest' && !isEnd) {
            const oldest = model[0]?.use ?? use;
            holdings.setUse(holding, oldest);
            ends.linkOldest(node, holding);
            const place = model.findIndex((other) => other.use > oldest);
            model.splice(place < 0 ? model.length : place, 0, { end: holding, use: oldest });
          }
          const expected = model.map(({ end }) => end);
          expect(listed(ends)).toEqual(expected);
          for (const each of nodes) {
            for (let tenant = 0; tenant < tenantsPerNode; tenant++) {
              const held = holders.find(each, tenant);
              expect(ends.has(held)).toBe(expected.includes(held));
            }
            expect(each.endsHere).toBe(expected.includes(each.newestHolding));
          }
        }
      }),
      { numRuns: 100 },
    );
  });

  it('LB-34, LB-5: merging begins at the nearest of the newest end, the oldest one and the last merged', () => {
    const holdings = new CountedHoldings();
    const { ends, nodes } = setUp(1005, holdings);
    for (let i = 0; i < 1000; i++) {
      const node = nodes[i] as RadixNode<string>;
      holdings.setUse(node.newestHolding, 10 * (i + 1));
      ends.renew(node);
    }
    let next = 1000;
    const readsOf = (use: number): number => {
      const node = nodes[next++] as RadixNode<string>;
      holdings.setUse(node.newestHolding, use);
      holdings.reads = 0;
      ends.linkByUse(node, node.newestHolding);
      return holdings.reads;
    };
    expect(readsOf(9995)).toBeLessThan(20);
    expect(readsOf(15)).toBeLessThan(20);
    readsOf(5000);
    const first = nodes[0] as RadixNode<string>;
    ends.unlink(first, first.newestHolding);
    expect(readsOf(5003)).toBeLessThan(20);
    expect(readsOf(9998)).toBeLessThan(20);
    const uses = listed(ends).map((end) => holdings.use(end));
    expect(uses).toEqual([...uses].sort((a, b) => a - b));
    expect(uses.length).toBe(1004);
  });
});
