import { describe, expect, it } from 'vitest';
import { Ends } from '../../src/prefix/radix-ends.js';
import { Holders } from '../../src/prefix/radix-holders.js';
import { Holdings } from '../../src/prefix/radix-holdings.js';
import { RadixNode } from '../../src/prefix/radix-node.js';
import { Tenants } from '../../src/prefix/radix-tenants.js';
import { fc } from '../support/property.js';

/** Worker ids in an order other than that of their numbers. */
const workers = ['w4', 'w0', 'w8', 'w2', 'w6', 'w1', 'w7', 'w3', 'w5'];

function setUp() {
  const tenants = new Tenants();
  for (const worker of workers) tenants.numberOf(worker);
  const holdings = new Holdings<string>();
  const holders = new Holders(holdings, tenants);
  return { holdings, holders, ends: new Ends(holdings), node: new RadixNode('', undefined) };
}

function listed(holders: Holders<string>, node: RadixNode<string>): number[] {
  const found: number[] = [];
  for (let holding = node.newestHolding; holding !== 0; holding = holders.older(holding)) found.push(holding);
  return found;
}

describe('holders of a node', () => {
  it('CA-32, LB-34: are listed latest use first, equal uses by worker id, after any history', () => {
    const operation = fc.record({
      kind: fc.constantFrom('record', 'record', 'merge', 'merge', 'remove', 'end'),
      tenant: fc.nat(workers.length - 1),
      use: fc.integer({ min: 1, max: 6 }),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
        const { holdings, holders, ends, node } = setUp();
        const uses = new Map<number, number>();
        for (const { kind, tenant, use } of operations) {
          const holding = holders.find(node, tenant);
          const known = uses.get(tenant);
          expect(holding !== 0).toBe(known !== undefined);
          if (kind === 'record') {
            const latest = Math.max(0, ...uses.values()) + 1;
            if (known === undefined) {
              holders.addNewest(node, tenant, latest);
            } else {
              ends.unlink(node, holding);
              holders.moveToNewest(node, holding);
              node.newestUse = latest;
            }
            uses.set(tenant, latest);
          } else if (kind === 'merge' && known === undefined) {
            holders.addByUse(node, holdings.create(node, tenant, use));
            uses.set(tenant, use);
          } else if (kind === 'merge' && (known as number) < use) {
            ends.unlink(node, holding);
            holdings.setUse(holding, use);
            holders.moveByUse(node, holding);
            uses.set(tenant, use);
          } else if (kind === 'remove' && known !== undefined) {
            ends.unlink(node, holding);
            holders.remove(node, holding);
            holdings.free(holding);
            uses.delete(tenant);
          } else if (kind === 'end' && known !== undefined && !ends.has(holding)) {
            ends.linkByUse(node, holding);
          }
          const expected = [...uses].sort(([a, useOfA], [b, useOfB]) => {
            if (useOfA !== useOfB) return useOfB - useOfA;
            return (workers[a] as string) < (workers[b] as string) ? -1 : 1;
          });
          const found = listed(holders, node);
          expect(found.map((each) => [holdings.tenant(each), holdings.use(each)])).toEqual(expected);
          const newest = expected[0] ?? [-1, 0];
          expect([node.holders, node.newestTenant, node.newestUse]).toEqual([expected.length, ...newest]);
          expect(node.endsHere).toBe(found[0] !== undefined && ends.has(found[0]));
        }
      }),
      { numRuns: 200 },
    );
  });

  it('CA-32: a new holder is no end before it is made one', () => {
    const { holders, ends, node } = setUp();
    expect(node.endsHere).toBe(false);
    holders.addNewest(node, 0, 1);
    ends.renew(node);
    expect(node.endsHere).toBe(true);
    holders.addNewest(node, 1, 2);
    expect(node.endsHere).toBe(false);
  });

  it('B23: are found through an index, made for the sixth and kept until two are left', () => {
    const { holders, holdings, node } = setUp();
    for (let tenant = 0; tenant < 5; tenant++) holders.addNewest(node, tenant, tenant + 1);
    expect(holders.find(node, 0)).toBe(1);
    expect(node.holdingIndex).toBe(undefined);
    holders.addNewest(node, 5, 6);
    expect(holders.find(node, 0)).toBe(1);
    const index = node.holdingIndex;
    expect(index?.size).toBe(6);
    holders.addNewest(node, 6, 7);
    expect([holders.find(node, 6), holders.find(node, 7)]).toEqual([7, 0]);
    expect(node.holdingIndex).toBe(index);
    for (const tenant of [6, 5, 4, 3]) {
      const holding = holders.find(node, tenant);
      holders.remove(node, holding);
      holdings.free(holding);
      expect(holders.find(node, tenant)).toBe(0);
    }
    expect([node.holders, node.holdingIndex]).toEqual([3, index]);
    holders.remove(node, holders.find(node, 2));
    expect([node.holders, node.holdingIndex]).toEqual([2, undefined]);
    expect([0, 1, 2].map((tenant) => holders.find(node, tenant))).toEqual([1, 2, 0]);
  });
});

describe('holdings', () => {
  it('CA-44: a freed holding is the next one given out, and a tenant without any has none', () => {
    const { holdings, node } = setUp();
    expect(holdings.firstOfTenant(0)).toBe(0);
    const [first, second, third] = [0, 0, 0].map((tenant) => holdings.create(node, tenant, 1)) as [
      number,
      number,
      number,
    ];
    expect([first, second, third]).toEqual([1, 2, 3]);
    holdings.free(second);
    expect(holdings.create(node, 1, 1)).toBe(second);
    holdings.free(third);
    expect([holdings.firstOfTenant(0), holdings.firstOfTenant(1)]).toEqual([first, second]);
    holdings.free(first);
    expect(holdings.firstOfTenant(0)).toBe(0);
  });

  it('LB-34: keeps uses beyond 32 bits exactly', () => {
    const { holdings } = setUp();
    for (const use of [1, 2 ** 30 - 1, 2 ** 30, 2 ** 31 + 5, 2 ** 52]) {
      holdings.storeUse(1, use);
      expect(holdings.storedUse(1)).toBe(use);
    }
  });
});
