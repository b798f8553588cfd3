/** Reported faults of the KV-event index: each is ruled out here by one test, under its id. */
import { cacheAware, KvEventFeed, type KvEventIndex, type MaintenanceBudget } from 'kvroute';
import { fakeCandidate } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { names, range, times } from './support.js';

const noLimit: MaintenanceBudget = { spent: () => false };

describe('blocks of the KV-event index', () => {
  it('B10: storing a block again changes no count, nor does removing it again', () => {
    const { index, store, remove } = oneStream();
    store('w1', ['1', '2', '3'], range(1, 12));
    store('w1', ['1', '2', '3'], range(1, 12));
    expect(index().blocksOf('w1')).toBe(3);
    for (const name of ['1', '2', '3']) remove('w1', [name]);
    expect(index().blocksOf('w1')).toBe(0);
    for (const name of ['1', '2', '3']) remove('w1', [name]);
    expect([index().blocksOf('w1'), index().memberships]).toEqual([0, 0]);
  });

  it('B13: a block is what precedes it too: the middle of one prompt is not the start of another', () => {
    const { index, store } = oneStream();
    store('w1', ['1', '2', '3'], range(1, 12));
    expect(index().overlaps(range(5, 16), 0).count).toBe(0);
    const match = index().overlaps([...range(1, 8), 99, 99, 99, 99], 0);
    expect([match.count, match.worker(0), match.overlap(0) * match.blockSize]).toEqual([1, 'w1', 8]);
  });

  it('B21: only an unbroken run from the start counts as a prefix', () => {
    const { index, store, remove } = oneStream();
    const tokens = range(1, 16);
    store('w1', ['1', '2', '3', '4'], tokens);
    remove('w1', ['2']);
    store('w2', ['1', '2', '3', '4'], tokens);
    remove('w2', ['1']);
    expect([index().blocksOf('w1'), index().blocksOf('w2')]).toEqual([3, 3]);
    const match = index().overlaps(tokens, 0);
    expect([match.count, match.worker(0), match.overlap(0)]).toEqual([1, 'w1', 1]);
  });

  it('B23: there is no silent limit on workers, and places of removed ones are given again', () => {
    const ids = names(5000);
    const { feed, index, store } = oneStream(ids);
    for (const id of ids) store(id, ['1'], range(1, 4));
    const match = index().overlaps(range(1, 4), 0);
    expect(match.count).toBe(5000);
    expect(new Set(times(5000, (i) => match.worker(i))).size).toBe(5000);
    expect([index().memberships, index().workerCount]).toEqual([5000, 5000]);

    const churn = (count: number): number => {
      for (let i = 0; i < count; i++) {
        feed.addWorker(`c${i}`, ['m']);
        store(`c${i}`, ['1', String(i + 2)], [...range(1, 4), ...range(i, i + 3)]);
        feed.removeWorker(`c${i}`);
        feed.maintain(0, noLimit);
      }
      return index().byteLength;
    };
    const settled = churn(1000);
    expect(churn(10_000)).toBeLessThanOrEqual(settled * 1.5);
    expect([index().memberships, index().workerCount, index().blockCount]).toEqual([5000, 5000, 1]);

    const policy = cacheAware({ seed: 1, clock: () => 0 });
    for (const id of ids) policy.selectWorker({ text: `only ${id} was given this` }, [fakeCandidate({ id })]);
    const everybody = ids.map((id) => fakeCandidate({ id }));
    for (const id of ['w1', 'w2048', 'w2049', 'w5000']) {
      expect(policy.selectWorker({ text: `only ${id} was given this` }, everybody)).toMatchObject({ worker: { id } });
    }
  });
});

/** A feed of model `m` with blocks of 4 tokens, and its streams of events. */
function oneStream(ids: readonly string[] = names(2)) {
  const feed = new KvEventFeed();
  const next = new Map<string, number>();
  for (const id of ids) feed.addWorker(id, ['m']);
  const apply = (id: string, event: object): void => {
    const sequence = next.get(id) ?? 0;
    next.set(id, sequence + 1);
    const { result } = feed.applyBatch(id, { sequence, events: [event as never] }, 0);
    if (result !== 'applied') throw new Error(`${id}: ${result}`);
  };
  return {
    feed,
    index: (): KvEventIndex => feed.indexFor('m') as KvEventIndex,
    store: (id: string, hashes: readonly string[], tokens: readonly number[]): void =>
      apply(id, { type: 'stored', hashes, tokens, blockSize: 4 }),
    remove: (id: string, hashes: readonly string[]): void => apply(id, { type: 'removed', hashes }),
  };
}
