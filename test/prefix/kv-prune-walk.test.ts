import { describe, expect, it } from 'vitest';
import { KvHoldings, type Walk } from '../../src/prefix/kv-holdings.js';
import { checkedLimits, expirySecond, type KvPruneLimits, pruneBlocks } from '../../src/prefix/kv-prune.js';
import { IndexedWorker } from '../../src/prefix/kv-worker.js';
import { range } from './kv-helpers.js';

/** One index, at a time of 1 000 000 s, whose blocks are stored by their age in seconds. */
class Aged {
  readonly holdings = new KvHoldings();
  readonly workers: IndexedWorker[] = [];
  readonly now = 1_000_000_000;

  worker(id = 'w1'): IndexedWorker {
    const worker = new IndexedWorker(id);
    this.holdings.admit(worker);
    this.workers.push(worker);
    return worker;
  }

  store(worker: IndexedWorker, name: number, age: number): number {
    return this.name(worker, name, this.holdings.blocks.add(this.holdings.blocks.idEnd, 7, this.now / 1000 - age));
  }

  name(worker: IndexedWorker, name: number, block: number): number {
    worker.name(name, 0, block, this.holdings.hold(worker, block));
    return block;
  }

  pruning(limits: KvPruneLimits): Walk {
    return pruneBlocks(this.holdings, () => this.workers, limits, this.now);
  }

  /** How often the walk pauses. `atPause` sees the index each time. */
  prune(limits: KvPruneLimits, atPause: (pause: number) => void = () => {}): number {
    let pauses = 0;
    for (const _ of this.pruning(limits)) atPause(++pauses);
    return pauses;
  }

  get counts(): readonly [findable: number, detached: number] {
    return [this.holdings.blocks.size, this.holdings.detachedCount];
  }
}

describe('limits', () => {
  it('CF-33, CF-34: are copied, absent is 0, and what is no number is refused under its name', () => {
    const given = { ttlMs: 5 };
    expect(checkedLimits(given)).toEqual({ ttlMs: 5, maxEntries: 0 });
    expect(checkedLimits({ maxEntries: 7 })).toEqual({ ttlMs: 0, maxEntries: 7 });
    const bad = (limits: unknown) => () => checkedLimits(limits as KvPruneLimits);
    expect(bad(null)).toThrow(new TypeError('limits: expected an object, got null'));
    expect(bad({ ttlMs: '5' })).toThrow(new TypeError('limits.ttlMs: expected a number, got "5"'));
    expect(bad({ maxEntries: '7' })).toThrow(new TypeError('limits.maxEntries: expected a number, got "7"'));
  });

  it('CA-96: what expired is told in whole seconds, and without a time to live nothing does', () => {
    const ttl = { ttlMs: 10_000 };
    expect([9_999, 10_999, 11_000, 12_500].map((now) => expirySecond(ttl, now))).toEqual([0, 0, 1, 2]);
    expect([expirySecond({}, 12_500), expirySecond({ ttlMs: 0 }, 12_500)]).toEqual([0, 0]);
  });
});

describe('one pruning', () => {
  it('CA-96: ends at once when both limits are off or kept', () => {
    const aged = new Aged();
    const worker = aged.worker();
    for (const name of range(0, 200)) aged.store(worker, name, 50_000);
    const walk = pruneBlocks(
      aged.holdings,
      () => {
        throw new Error('no names are to be dropped');
      },
      { ttlMs: 0, maxEntries: 200 },
      aged.now,
    );
    expect(walk.next()).toEqual({ done: true, value: undefined });
    expect(aged.counts).toEqual([200, 0]);
  });

  it('CA-96, LB-5: detaches 64 blocks a piece, then drops names, and the last one frees the record', () => {
    const aged = new Aged();
    const [first, second] = [aged.worker('w1'), aged.worker('w2')];
    for (const name of range(0, 140)) aged.name(second, name, aged.store(first, name, 20));
    const fresh = aged.store(second, 999, 5);
    const seen: (readonly [number, number])[] = [];
    aged.prune({ ttlMs: 10_000 }, () => seen.push(aged.counts));
    // Two pauses among the blocks; the names of each worker are in 256 slots, swept in two pieces.
    expect(seen.map(([findable]) => findable)).toEqual([78, 14, 1, 1, 1, 1]);
    expect(seen.slice(0, 4).map(([, detached]) => detached)).toEqual([63, 127, 140, 140]);
    expect(aged.counts).toEqual([1, 0]);
    expect([first.names.size, second.names.size, second.names.get(999, 0)]).toEqual([0, 1, fresh]);
    expect([first.blocks, second.blocks, aged.holdings.memberships]).toEqual([0, 1, 1]);
  });

  it('CA-96: passes over what was detached before', () => {
    const aged = new Aged();
    const worker = aged.worker();
    const blocks = range(0, 3).map((name) => aged.store(worker, name, 20));
    aged.store(worker, 9, 5);
    aged.holdings.detach(blocks[1] as number);
    aged.prune({ ttlMs: 10_000 });
    expect([...aged.counts, worker.blocks, aged.holdings.memberships, worker.names.size]).toEqual([1, 0, 1, 1, 1]);
  });

  it('CA-96: drops names of detached blocks even when nothing more expires', () => {
    const aged = new Aged();
    const worker = aged.worker();
    const block = aged.store(worker, 1, 5);
    aged.store(worker, 2, 5);
    aged.holdings.detach(block);
    aged.prune({});
    expect([...aged.counts, worker.names.size, worker.names.get(1, 0)]).toEqual([1, 0, 1, -1]);
  });
});

describe('the ceiling', () => {
  it('CA-96: ages that differ by more than 65 536 s are told apart to the second', () => {
    const aged = new Aged();
    const worker = aged.worker();
    const names = [65_536 + 100, 2 * 65_536 + 5, ...range(1000, 1009)];
    for (const age of names) aged.store(worker, age, age);
    aged.prune({ maxEntries: 10 });
    expect(aged.counts).toEqual([9, 0]);
    expect(names.filter((name) => worker.names.get(name, 0) >= 0)).toEqual(range(1000, 1009));
  });

  it('CA-96: the last two seconds are spared also when all older blocks together are just enough', () => {
    const aged = new Aged();
    const worker = aged.worker();
    for (const name of range(0, 5)) aged.store(worker, name, 20);
    for (const name of range(5, 14)) aged.store(worker, name, 1 + (name % 2));
    aged.prune({ maxEntries: 10 });
    expect(aged.counts).toEqual([9, 0]);
    expect(range(0, 14).filter((name) => worker.names.get(name, 0) >= 0)).toEqual(range(5, 14));
  });

  it('LB-5: blocks are counted 64 a piece, twice, and then detached', () => {
    const aged = new Aged();
    const worker = aged.worker();
    for (const name of range(0, 140)) aged.store(worker, name, 20 + name);
    const seen: number[] = [];
    aged.prune({ maxEntries: 100 }, () => seen.push(aged.counts[0]));
    // The oldest 50 go, which are the last: 37 of them before the pause at the 128th block.
    expect(seen).toEqual([140, 140, 140, 140, 140, 103, 90, 90]);
  });
});

describe('blocks without a name', () => {
  /** A worker of `count` nameless blocks of an age: each gave its name to the next, the last to a fresh one. */
  function withNameless(aged: Aged, count: number, age: number): IndexedWorker {
    const worker = aged.worker();
    for (let i = 0; i < count; i++) aged.store(worker, 1, age);
    aged.store(worker, 1, 0);
    return worker;
  }

  it('CA-96, LB-5: are forgotten 64 a piece', () => {
    const aged = new Aged();
    const worker = withNameless(aged, 130, 20);
    expect(worker.surplus.size).toBe(130);
    const seen: (readonly [number, number])[] = [];
    aged.prune({ ttlMs: 10_000 }, () => seen.push(aged.counts));
    // Two pauses among the blocks, one after the only piece of the names, two among the nameless.
    expect(seen).toEqual([
      [68, 63],
      [4, 127],
      [1, 130],
      [1, 67],
      [1, 3],
    ]);
    expect([...aged.counts, worker.surplus.size, worker.names.size]).toEqual([1, 0, 0, 1]);
  });

  it('CA-96: stay as long as they are young', () => {
    const aged = new Aged();
    const worker = withNameless(aged, 3, 5);
    aged.name(worker, 2, aged.store(worker, 3, 20));
    aged.prune({ ttlMs: 10_000 });
    expect([...aged.counts, worker.surplus.size, worker.names.size]).toEqual([4, 0, 3, 1]);
  });

  it('CA-96: a block detached when its names were passed already keeps them until the next pruning', () => {
    const aged = new Aged();
    const worker = withNameless(aged, 1, 20);
    const block = aged.name(worker, 2, aged.store(worker, 3, 5));
    // The only pause comes after the names.
    expect(aged.prune({ ttlMs: 10_000 }, () => aged.holdings.detach(block))).toBe(1);
    expect([...aged.counts, worker.names.size, [...worker.surplus]]).toEqual([1, 1, 3, [[block, 1]]]);
    expect(aged.prune({ ttlMs: 10_000 })).toBe(1);
    expect([...aged.counts, worker.names.size, worker.surplus.size]).toEqual([1, 0, 1, 0]);
  });
});
