import { expect, it, onTestFinished, vi } from 'vitest';
import { BlockTable, noBlock } from '../../src/prefix/block-table.js';
import { Map64 } from '../../src/prefix/map64.js';
import { range } from './kv-helpers.js';

it('CA-87: a hint leads to the block of the chain or is not followed', () => {
  const table = new BlockTable();
  const parent = table.add(1, 1, 0);
  const child = table.add(2, 2, 0);
  table.setNext(parent, child);
  expect(table.findAfter(parent, 2, 2)).toBe(child);
  // Another child of the same parent is found without the hint.
  const other = table.add(3, 3, 0);
  expect(table.findAfter(parent, 3, 3)).toBe(other);
  expect(table.findAfter(parent, 4, 4)).toBe(noBlock);
  // A detached block is not found, though its record is still there.
  table.detach(child);
  expect(table.findAfter(parent, 2, 2)).toBe(noBlock);
  const again = table.add(2, 2, 0);
  expect(table.findAfter(parent, 2, 2)).toBe(again);
  // A freed record is reused for another chain.
  table.free(child);
  const reused = table.add(5, 5, 7);
  expect(reused).toBe(child);
  expect(table.findAfter(parent, 2, 2)).toBe(again);
  expect(table.findAfter(parent, 5, 5)).toBe(reused);
  expect([table.touchSecond(reused), table.size]).toEqual([7, 4]);
});

it('CA-87: whatever the hint, the block that is found is that of the whole chain', () => {
  const table = new BlockTable();
  // Chains share their lanes with each other, and with the other fields of the records.
  const lanes = range(0, 8);
  const blocks = lanes.flatMap((low) =>
    lanes.filter((high) => (low + high) % 3 === 0).map((high) => table.add(low, high, 0)),
  );
  const isRight = (parent: number, next: number): boolean => {
    table.setNext(parent, next);
    return lanes.every((low) => lanes.every((high) => table.findAfter(parent, low, high) === table.find(low, high)));
  };
  expect(blocks.flatMap((parent) => blocks.filter((next) => !isRight(parent, next)))).toEqual([]);
});

it('CA-81: along a chain only the first block is looked up', () => {
  const table = new BlockTable();
  const chain = range(0, 4096).map((i) => table.add(i, i, 0));
  // The first record serves as the last of the chain: every id may be a hint.
  table.free(0);
  chain.push(table.add(4096, 4096, 0));
  for (let i = 2; i < chain.length; i++) table.setNext(chain[i - 1] as number, chain[i] as number);
  const look = vi.spyOn(Map64.prototype, 'get');
  onTestFinished(() => look.mockRestore());
  let block = table.find(1, 1);
  for (let i = 2; i < chain.length; i++) block = table.findAfter(block, i, i);
  expect([block, look.mock.calls]).toEqual([0, [[1, 1]]]);
});

it('CA-95: freed records are given again, the last one first, before new ones are made', () => {
  const table = new BlockTable();
  for (const lane of range(0, 4)) table.add(lane, lane, 0);
  table.free(1);
  table.free(3);
  table.free(0);
  expect([table.size, table.idEnd, range(0, 4).map((id) => table.isDetached(id))]).toEqual([
    1,
    4,
    [true, true, false, true],
  ]);
  expect(range(10, 15).map((lane) => table.add(lane, lane, 0))).toEqual([0, 3, 1, 4, 5]);
  expect([table.size, table.idEnd]).toEqual([6, 6]);
});

it('LB-31: takes 20 bytes a block, in chunks of 4096, and what the map of chains takes', () => {
  const table = new BlockTable();
  const byChain = new Map64();
  const bytes = (): number => table.byteLength - byChain.byteLength;
  const add = (count: number): void => {
    for (let i = 0; i < count; i++) byChain.set(table.idEnd, 7, table.add(table.idEnd, 7, 0));
  };
  expect(bytes()).toBe(0);
  add(1);
  expect(bytes()).toBe(81_920);
  add(4095);
  expect(bytes()).toBe(81_920);
  add(1);
  expect(bytes()).toBe(163_840);
});
