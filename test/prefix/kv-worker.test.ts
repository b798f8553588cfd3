import { describe, expect, it } from 'vitest';
import { IndexedWorker } from '../../src/prefix/kv-worker.js';

/** A worker and how it names: names and blocks are small numbers. */
function started() {
  const worker = new IndexedWorker('w1');
  const name = (name: number, block: number, isNew: boolean): void => worker.name(name, 0, block, isNew);
  return { worker, name };
}

describe('IndexedWorker', () => {
  it('CA-90: starts with nothing, and empty makes it so again', () => {
    const { worker, name } = started();
    expect([worker.slot, worker.blocks, worker.blockSize, worker.learnedAt, worker.isClean]).toEqual([
      -1,
      0,
      0,
      0,
      true,
    ]);
    name(1, 10, true);
    name(2, 10, false);
    worker.blocks = 1;
    const { names, surplus } = worker;
    worker.empty();
    expect([worker.blocks, worker.names.size, worker.surplus.size, worker.isClean]).toEqual([0, 0, 0, true]);
    // Whoever has taken the maps before keeps them.
    expect([names.size, [...surplus]]).toEqual([2, [[10, 1]]]);
  });

  it('CA-90: is clean with neither a name nor a block that has lost its name', () => {
    const { worker, name } = started();
    name(1, 10, true);
    expect(worker.isClean).toBe(false);
    name(1, 11, true);
    worker.names.delete(1, 0);
    expect([worker.names.size, [...worker.surplus], worker.isClean]).toEqual([0, [[10, -1]], false]);
  });

  it('CA-90: a block is kept by each name but the last', () => {
    const { worker, name } = started();
    name(1, 10, true);
    name(2, 10, false);
    name(3, 10, false);
    expect([...worker.surplus]).toEqual([[10, 2]]);
    expect([worker.loseName(10), worker.loseName(10), worker.loseName(10)]).toEqual([true, true, false]);
    expect(worker.surplus.size).toBe(0);
  });

  it('CA-90: naming a block again by the same name adds nothing', () => {
    const { worker, name } = started();
    name(1, 10, true);
    name(1, 10, false);
    expect([worker.names.size, worker.surplus.size, worker.loseName(10)]).toEqual([1, 0, false]);
  });

  it('CA-90: a name that moves to another block is one less for the former', () => {
    const { worker, name } = started();
    name(1, 10, true);
    name(2, 10, false);
    name(2, 11, true);
    expect([worker.names.get(2, 0), worker.surplus.size, worker.loseName(10)]).toEqual([11, 0, false]);
    // Without any name a block is held until it is named again and then loses that name.
    name(1, 12, true);
    expect([...worker.surplus]).toEqual([[10, -1]]);
    name(3, 10, false);
    expect([worker.surplus.size, worker.loseName(10)]).toEqual([0, false]);
  });
});
