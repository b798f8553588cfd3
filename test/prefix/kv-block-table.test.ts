import { expect, it } from 'vitest';
import { BlockTable, noBlock } from '../../src/prefix/block-table.js';

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
