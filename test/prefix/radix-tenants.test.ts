import { describe, expect, it } from 'vitest';
import { Tenants } from '../../src/prefix/radix-tenants.js';

describe('tenants', () => {
  it('CA-44: a removed worker’s number is given out again when its last holding is reclaimed', () => {
    const tenants = new Tenants();
    expect([tenants.numberOf('w0'), tenants.numberOf('w1')]).toEqual([0, 1]);
    tenants.grow(0, 5);
    tenants.grow(0, 7);
    expect(tenants.remove('w0')).toBe(true);
    expect(tenants.numberOf('w0')).toBe(2);
    tenants.shrink(0, 5);
    expect(tenants.numberOf('w3')).toBe(3);
    tenants.shrink(0, 7);
    expect(tenants.numberOf('w4')).toBe(0);
    expect([tenants.workerOf(0), tenants.sizeOf('w4')]).toEqual(['w4', 0]);
  });

  it('CA-44: the number of a worker that held nothing is free at once', () => {
    const tenants = new Tenants();
    expect(tenants.numberOf('w0')).toBe(0);
    expect(tenants.remove('w0')).toBe(true);
    expect([tenants.someDead(), tenants.deadHoldings]).toEqual([undefined, 0]);
    expect(tenants.numberOf('w1')).toBe(0);
  });

  it('CA-44: removing a worker that is not registered changes nothing', () => {
    const tenants = new Tenants();
    tenants.grow(tenants.numberOf('w0'), 5);
    expect(tenants.remove('w1')).toBe(false);
    expect([tenants.ids(), tenants.size, tenants.liveHoldings, tenants.deadHoldings]).toEqual([['w0'], 5, 1, 0]);
  });

  it('CA-39, CA-44: size and holdings are those of the living; the dead are counted apart', () => {
    const tenants = new Tenants();
    const [w0, w1] = [tenants.numberOf('w0'), tenants.numberOf('w1')];
    for (const units of [5, 7]) tenants.grow(w0, units);
    tenants.grow(w1, 5);
    tenants.remove('w0');
    expect([tenants.size, tenants.liveHoldings, tenants.deadHoldings]).toEqual([5, 1, 2]);
    expect(tenants.someDead()).toBe(w0);
    tenants.shrink(w0, 5);
    expect([tenants.size, tenants.liveHoldings, tenants.deadHoldings]).toEqual([5, 1, 1]);
  });

  it('CA-44: a number that a new worker has is not dead, whoever had it before', () => {
    const tenants = new Tenants();
    const number = tenants.numberOf('w0');
    tenants.grow(number, 5);
    tenants.remove('w0');
    tenants.shrink(number, 5);
    expect(tenants.numberOf('w1')).toBe(number);
    tenants.grow(number, 5);
    expect(tenants.someDead()).toBe(undefined);
  });

  it('LB-34: equal uses are in the order of worker ids, those of removed workers before', () => {
    const tenants = new Tenants();
    const [b, a, removed] = ['B', 'A', 'w'].map((worker) => tenants.numberOf(worker)) as [number, number, number];
    expect([tenants.precedes(a, b), tenants.precedes(b, a), tenants.precedes(a, a)]).toEqual([true, false, false]);
    tenants.grow(removed, 1);
    tenants.remove('w');
    expect([tenants.precedes(removed, a), tenants.precedes(a, removed)]).toEqual([true, false]);
  });
});
