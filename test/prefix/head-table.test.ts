/** The storage of the hash index: heads with their holders, from the stalest to the freshest. */
import { describe, expect, it } from 'vitest';
import { HeadOwners } from '../../src/prefix/head-owners.js';
import { HeadProbe } from '../../src/prefix/head-probe.js';
import { HeadTable, holdersPerHead, noHead } from '../../src/prefix/head-table.js';

describe('HeadTable', () => {
  it('CA-73: finds heads with what was written to them, in more than one chunk', () => {
    const table = new HeadTable();
    const heads = Array.from({ length: 2500 }, (_, i) => table.add(i, -i));
    expect([table.size, table.headEnd, new Set(heads).size]).toEqual([2500, 2500, 2500]);
    for (const [i, head] of heads.entries()) {
      for (let place = 0; place < holdersPerHead; place++) {
        expect(table.owner(head, place)).toBe(0);
        table.setHolder(head, place, 3 * i + place + 1, i + place / 4, 2 ** 40 + i + place);
      }
    }
    for (const [i, head] of heads.entries()) {
      expect([table.find(i, -i), table.low(head), table.high(head)]).toEqual([head, i, i === 0 ? 0 : -i]);
      const places = [0, 1, 2].map((at) => [table.owner(head, at), table.touchMs(head, at), table.use(head, at)]);
      expect(places).toEqual([0, 1, 2].map((at) => [3 * i + at + 1, i + at / 4, 2 ** 40 + i + at]));
    }
    expect(table.find(1, 1)).toBe(noHead);
  });

  it('LB-31: gives the room of deleted heads to new ones, without their holders', () => {
    const table = new HeadTable();
    const [a, b, c] = [table.add(1, 1), table.add(2, 2), table.add(3, 3)] as [number, number, number];
    for (let place = 0; place < holdersPerHead; place++) table.setHolder(b, place, 7, 1, 1);
    table.delete(b);
    table.delete(a);
    expect([table.size, table.find(2, 2), table.find(1, 1), table.find(3, 3)]).toEqual([1, noHead, noHead, c]);
    const again = [table.add(4, 4), table.add(5, 5)];
    expect(again).toEqual([a, b]);
    expect([0, 1, 2].map((place) => table.owner(b, place))).toEqual([0, 0, 0]);
    expect([table.add(6, 6), table.headEnd, table.size]).toEqual([3, 4, 4]);
  });

  it('CA-72: the stalest head is the one that was refreshed longest ago', () => {
    const table = new HeadTable();
    expect(table.stalest).toBe(noHead);
    const heads = [1, 2, 3, 4].map((key) => table.add(key, 0)) as [number, number, number, number];
    const [a, b, c, d] = heads;
    table.refresh(d);
    table.refresh(a);
    table.refresh(c);
    const order: number[] = [];
    for (let head = table.stalest; head !== noHead; head = table.stalest) {
      order.push(head);
      table.delete(head);
    }
    expect(order).toEqual([b, d, a, c]);
    table.refresh(table.add(9, 9));
    expect(table.stalest).toBe(table.find(9, 9));
  });
});

describe('HeadOwners', () => {
  it('CA-75: numbers count up from 1, and none is given twice', () => {
    const owners = new HeadOwners();
    expect([owners.numberOf('a'), owners.numberOf('__proto__'), owners.numberOf('a')]).toEqual([1, 2, 1]);
    owners.remove('a');
    owners.remove('nobody');
    expect([owners.workerOf(1), owners.workerOf(2), owners.workerOf(3)]).toEqual([undefined, '__proto__', undefined]);
    expect(owners.numberOf('a')).toBe(3);
    expect(() => owners.numberOf(5 as never)).toThrow(/^worker: expected a string, got 5$/);
  });
});

describe('HeadProbe', () => {
  it('CA-71: reads as far as the deepest boundary that the request reaches', () => {
    const probe = new HeadProbe();
    const tokens = Array.from({ length: 12 }, (_, i) => i);
    probe.read(tokens, undefined, [4, 8, 12, 16]);
    expect([probe.count, probe.boundary(0), probe.boundary(2)]).toEqual([3, 4, 12]);
    probe.read(tokens.slice(0, 3), undefined, [4, 8]);
    expect(probe.count).toBe(0);
    probe.read([...tokens.slice(0, 4), -1], undefined, [4, 8]);
    expect(probe.count).toBe(1);
  });

  it('CA-71: a head depends on its tokens, its length and the namespace, and on nothing else', () => {
    const keyOf = (tokens: ArrayLike<number>, namespace: string | undefined, boundaries: number[], at: number) => {
      const probe = new HeadProbe();
      probe.read(tokens as number[], namespace, boundaries);
      return [probe.low(at), probe.high(at)].join();
    };
    const tokens = Array.from({ length: 12 }, (_, i) => i + 1);
    const key = keyOf(tokens, undefined, [7], 0);
    expect(keyOf(Uint32Array.from(tokens), undefined, [7], 0)).toBe(key);
    expect(keyOf(tokens, undefined, [3, 4, 7, 12], 2)).toBe(key);
    expect(keyOf([...tokens.slice(0, 7), 99], undefined, [7], 0)).toBe(key);
    const others = [
      keyOf([...tokens.slice(0, 6), 99], undefined, [7], 0),
      keyOf([...tokens.slice(0, 6), 0], undefined, [6], 0),
      keyOf([99, ...tokens.slice(1)], undefined, [7], 0),
      keyOf(tokens, '', [7], 0),
      keyOf(tokens, 'n', [7], 0),
      keyOf(tokens, undefined, [8], 0),
    ];
    expect(new Set([key, ...others]).size).toBe(7);
  });

  it('LB-42: names the first entry that is no id, and none behind the deepest boundary', () => {
    const probe = new HeadProbe();
    expect(() => probe.read([-1, 2, 3, 4], undefined, [4])).toThrow(/^tokens: expected ids .+, got -1 at 0$/);
    expect(() => probe.read([1, 2, 3, 4.5], undefined, [4])).toThrow(/got 4\.5 at 3$/);
    expect(probe.count).toBe(0);
    probe.read([1, 2, 3, 4.5], undefined, [2, 3]);
    expect(probe.count).toBe(2);
  });
});
