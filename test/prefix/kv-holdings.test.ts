import { describe, expect, it } from 'vitest';
import { KvHoldings, type Walk } from '../../src/prefix/kv-holdings.js';
import { IndexedWorker } from '../../src/prefix/kv-worker.js';
import { range } from './kv-helpers.js';

/** Holdings of workers, and how one of them stores a new block under a name. */
function started(...ids: readonly string[]) {
  const holdings = new KvHoldings();
  const workers = ids.map((id) => new IndexedWorker(id));
  for (const worker of workers) holdings.admit(worker);
  const store = (worker: IndexedWorker, name: number, block = holdings.blocks.add(name, 0, 0)): number => {
    worker.name(name, 0, block, holdings.hold(worker, block));
    return block;
  };
  return { holdings, workers: workers as [IndexedWorker, ...IndexedWorker[]], store };
}

/** What is left of the blocks at each pause of the walk, and at its end. */
function sizesAlong(walk: Walk, holdings: KvHoldings): number[] {
  const sizes: number[] = [];
  let isDone = false;
  while (!isDone) {
    isDone = walk.next().done === true;
    sizes.push(holdings.blocks.size);
  }
  return sizes;
}

describe('slots', () => {
  it('CA-95, B23: slots count from 0; that of a retired worker is free only when its walk has ended', () => {
    const { holdings, workers, store } = started('w0', 'w1');
    const [w0, w1] = workers as [IndexedWorker, IndexedWorker];
    expect([w0.slot, w1.slot, holdings.workerOf(0)?.id, holdings.workerOf(1)?.id]).toEqual([0, 1, 'w0', 'w1']);
    store(w0, 1);
    const walk = holdings.retire(w0);
    expect([holdings.workerOf(0), w0.blocks, w0.isClean]).toEqual([undefined, 0, true]);
    const next = new IndexedWorker('w2');
    holdings.admit(next);
    expect(next.slot).toBe(2);
    expect(sizesAlong(walk, holdings)).toEqual([0]);
    holdings.admit(w0);
    expect([w0.slot, holdings.workerOf(0)?.id]).toEqual([0, 'w0']);
  });
});

describe('holding', () => {
  it('CA-90: holding twice counts once, and the last name that is lost ends it', () => {
    const { holdings, workers, store } = started('w1', 'w2');
    const [w1, w2] = workers as [IndexedWorker, IndexedWorker];
    const block = store(w1, 1);
    store(w1, 2, block);
    store(w2, 1, block);
    expect([w1.blocks, w2.blocks, holdings.memberships, holdings.blocks.size]).toEqual([1, 1, 2, 1]);
    expect(holdings.hold(w2, block)).toBe(false);
    holdings.loseName(w1, block);
    expect([w1.blocks, holdings.memberships]).toEqual([1, 2]);
    holdings.loseName(w1, block);
    expect([w1.blocks, w2.blocks, holdings.memberships, holdings.blocks.size]).toEqual([0, 1, 1, 1]);
    holdings.loseName(w2, block);
    expect([w2.blocks, holdings.memberships, holdings.blocks.size, holdings.detachedCount]).toEqual([0, 0, 0, 0]);
  });

  it('CA-96: a detached block counts for nobody, and its record goes with the last name', () => {
    const { holdings, workers, store } = started('w1', 'w2');
    const [w1, w2] = workers as [IndexedWorker, IndexedWorker];
    const block = store(w1, 1);
    store(w2, 1, block);
    store(w2, 2);
    holdings.detach(block);
    expect([w1.blocks, w2.blocks, holdings.memberships, holdings.detachedCount]).toEqual([0, 1, 1, 1]);
    holdings.loseName(w1, block);
    expect([w1.blocks, holdings.memberships, holdings.detachedCount]).toEqual([0, 1, 1]);
    holdings.loseName(w2, block);
    expect([w2.blocks, holdings.memberships, holdings.detachedCount]).toEqual([1, 1, 0]);
    expect(holdings.blocks.add(9, 9, 0)).toBe(block);
  });

  it('CA-95, CA-96: a block is detached while it still mentions a retired worker', () => {
    const { holdings, workers, store } = started('gone', 'stays');
    const [gone, stays] = workers as [IndexedWorker, IndexedWorker];
    const block = store(gone, 1);
    store(stays, 1, block);
    const walk = holdings.retire(gone);
    expect([gone.blocks, stays.blocks, holdings.memberships]).toEqual([0, 1, 1]);
    holdings.detach(block);
    expect([gone.blocks, stays.blocks, holdings.memberships, holdings.detachedCount]).toEqual([0, 0, 0, 1]);
    walk.next();
    expect(holdings.detachedCount).toBe(1);
    holdings.loseName(stays, block);
    expect(holdings.detachedCount).toBe(0);
  });
});

describe('the walk after a retired worker', () => {
  it('LB-5: frees 64 blocks a piece', () => {
    const { holdings, workers, store } = started('w1');
    for (const name of range(1, 131)) store(workers[0], name);
    expect(sizesAlong(holdings.retire(workers[0]), holdings)).toEqual([66, 2, 0]);
  });

  it('LB-5: frees blocks that have lost their name, 64 a piece', () => {
    const { holdings, workers, store } = started('w1');
    const [worker] = workers;
    // One name moves from block to block.
    for (const lane of range(1, 131)) store(worker, 1, holdings.blocks.add(lane, 1, 0));
    expect([worker.names.size, worker.surplus.size, holdings.blocks.size]).toEqual([1, 129, 130]);
    expect(sizesAlong(holdings.retire(worker), holdings)).toEqual([66, 2, 0]);
  });

  it('CA-95: frees a block of several names once', () => {
    const { holdings, workers, store } = started('w1');
    const block = store(workers[0], 1);
    store(workers[0], 2, block);
    store(workers[0], 3, block);
    expect(sizesAlong(holdings.retire(workers[0]), holdings)).toEqual([0]);
    expect(range(10, 13).map((lane) => holdings.blocks.add(lane, 0, 0))).toEqual([0, 1, 2]);
  });
});
