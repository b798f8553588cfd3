import { deepStrictEqual as check } from 'node:assert/strict';
import { it } from 'vitest';
import type { KvEvent } from '../../src/prefix/kv-event.js';
import { KvEventFeed } from '../../src/prefix/kv-event-feed.js';
import { StepBudget } from '../../src/runtime/maintenance-budget.js';
import { fc } from '../support/property.js';
import { modelTimeoutMs, runsFor } from './kv-model-ops.js';

/**
 * A naive index: each worker has its names, each leading to a chain (the list of the contents up to the block), and for
 * each chain it holds the number of names that lead there. Expired chains are purged whenever time passes.
 */
class NaiveIndex {
  readonly ttlSeconds: number;
  readonly workers = new Map<string, { names: Map<string, string>; held: Map<string, number> }>();
  readonly touched = new Map<string, number>();
  now = 0;

  constructor(ttlSeconds: number) {
    this.ttlSeconds = ttlSeconds;
  }

  stored(id: string, parent: string | undefined, blocks: readonly (readonly [string, number])[]): number {
    const worker = this.#worker(id);
    let chain = '';
    if (parent !== undefined) {
      const known = worker.names.get(parent);
      if (known === undefined) return blocks.length;
      chain = known;
    }
    for (const [name, content] of blocks) {
      chain += `/${content}`;
      this.touched.set(chain, this.now);
      const former = worker.names.get(name);
      if (former === chain) continue;
      worker.names.set(name, chain);
      worker.held.set(chain, (worker.held.get(chain) ?? 0) + 1);
      // A name that moves on leaves the former block held, by one name less, perhaps by none.
      if (former !== undefined) worker.held.set(former, (worker.held.get(former) as number) - 1);
    }
    return 0;
  }

  removed(id: string, name: string): void {
    const worker = this.#worker(id);
    const chain = worker.names.get(name);
    if (chain === undefined) return;
    worker.names.delete(name);
    const names = (worker.held.get(chain) as number) - 1;
    if (names === 0) worker.held.delete(chain);
    else worker.held.set(chain, names);
  }

  dropped(id: string): void {
    this.workers.delete(id);
  }

  advance(seconds: number): void {
    this.now += seconds;
    if (this.ttlSeconds === 0) return;
    for (const [chain, second] of this.touched) {
      if (second >= this.now - this.ttlSeconds) continue;
      this.touched.delete(chain);
      for (const { names, held } of this.workers.values()) {
        held.delete(chain);
        for (const [name, named] of names) if (named === chain) names.delete(name);
      }
    }
  }

  overlaps(contents: readonly number[]): Record<string, number> {
    const found: Record<string, number> = {};
    let chain = '';
    contents.forEach((content, i) => {
      chain += `/${content}`;
      for (const [id, { held }] of this.workers) {
        if (held.has(chain) && (found[id] ?? 0) === i) found[id] = i + 1;
      }
    });
    return found;
  }

  /** Touches what a query reads: it ends where nobody is left that holds everything so far. */
  touch(contents: readonly number[]): void {
    const following = new Set(this.workers.keys());
    let chain = '';
    for (const content of contents) {
      chain += `/${content}`;
      if (following.size === 0 || ![...this.workers.values()].some(({ held }) => held.has(chain))) return;
      this.touched.set(chain, this.now);
      for (const id of following) if (this.workers.get(id)?.held.has(chain) !== true) following.delete(id);
    }
  }

  get memberships(): number {
    let sum = 0;
    for (const { held } of this.workers.values()) sum += held.size;
    return sum;
  }

  #worker(id: string): { names: Map<string, string>; held: Map<string, number> } {
    let worker = this.workers.get(id);
    if (worker === undefined) {
      worker = { names: new Map(), held: new Map() };
      this.workers.set(id, worker);
    }
    return worker;
  }
}

const worker = fc.integer({ min: 0, max: 3 }).map((i) => `w${i}`);
const name = fc.integer({ min: 1, max: 9 });
const content = fc.integer({ min: 0, max: 2 });
const contents = fc.array(content, { maxLength: 6 });
const operation = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('stored' as const),
      worker,
      parent: fc.option(name, { nil: undefined }),
      blocks: fc.array(fc.tuple(name, content), { maxLength: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant('removed' as const), worker, names: fc.array(name, { maxLength: 4 }) }),
  },
  { weight: 6, arbitrary: fc.record({ op: fc.constant('query' as const), contents, touches: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('cleared' as const), worker }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('reset' as const), worker }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('readded' as const), worker }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('advance' as const), seconds: fc.constantFrom(1, 3, 6, 30) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('maintain' as const), looks: fc.constantFrom(0, 1, 3, 1000) }) },
);

const size = 2;
const tokensOf = (list: readonly number[]): number[] => list.flatMap((one) => [one, one + 100]);

it.each([
  ['without pruning', 0],
  ['with a time to live', 5],
])(
  'CA-80..CA-96, B10, B13, B21, B81, B83: the index answers like a naive one, %s',
  { timeout: modelTimeoutMs },
  (_, ttlSeconds) => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 150 }), (operations) => {
        const feed = new KvEventFeed();
        feed.configure('m', { ttlMs: ttlSeconds * 1000 });
        // Slots beyond one word, and an index that outlives every worker of the test.
        for (let i = 0; i < 40; i++) feed.addWorker(`other${i}`, ['m']);
        for (let i = 0; i < 4; i++) feed.addWorker(`w${i}`, ['m']);
        const model = new NaiveIndex(ttlSeconds);
        let sequence = 0;
        const apply = (id: string, event: KvEvent): void => {
          sequence++;
          const result = feed.applyBatch(id, { sequence: feedSequence(id), events: [event] }, model.now * 1000);
          check(result, { result: 'applied' });
        };
        const feedSequence = (id: string): number => {
          const last = feed.lastSequence(id);
          return last === undefined ? sequence : Number(last) + 1;
        };
        for (let i = 0; i < 40; i++) {
          const event: KvEvent = { type: 'stored', hashes: [1], tokens: tokensOf([0]), blockSize: size };
          apply(`other${i}`, event);
          model.stored(`other${i}`, undefined, [['1', 0]]);
        }
        let orphans = 0;
        for (const operation of operations) {
          const now = model.now * 1000;
          if (operation.op === 'stored') {
            const { parent, blocks } = operation;
            const tokens = tokensOf(blocks.map(([, one]) => one));
            const hashes = blocks.map(([one]) => one);
            apply(operation.worker, { type: 'stored', parent, hashes, tokens, blockSize: size });
            if (blocks.length > 0) {
              orphans += model.stored(
                operation.worker,
                parent?.toString(),
                blocks.map(([one, two]) => [String(one), two]),
              );
            }
            check(feed.counts.orphanedBlocks, orphans);
          } else if (operation.op === 'removed') {
            apply(operation.worker, { type: 'removed', hashes: operation.names.map(String) });
            for (const one of operation.names) model.removed(operation.worker, String(one));
          } else if (operation.op === 'cleared') {
            apply(operation.worker, { type: 'cleared' });
            model.dropped(operation.worker);
          } else if (operation.op === 'reset') {
            feed.reset(operation.worker);
            model.dropped(operation.worker);
          } else if (operation.op === 'readded') {
            feed.removeWorker(operation.worker);
            model.dropped(operation.worker);
            feed.addWorker(operation.worker, ['m']);
          } else if (operation.op === 'advance') {
            model.advance(operation.seconds);
          } else if (operation.op === 'maintain') {
            feed.maintain(now, new StepBudget(operation.looks));
          } else {
            const index = feed.indexFor('m');
            const match = index?.overlaps(tokensOf(operation.contents), now);
            const found: Record<string, number> = {};
            let before = 0;
            for (let i = 0; i < (match?.count ?? 0); i++) {
              const overlap = match?.overlap(i) as number;
              check(overlap >= before, true);
              before = overlap;
              found[match?.worker(i) as string] = overlap;
            }
            check(found, model.overlaps(operation.contents));
            if (operation.touches && match !== undefined) {
              index?.touch(match, now);
              model.touch(operation.contents);
            }
          }
          if (ttlSeconds === 0) check(feed.indexFor('m')?.memberships ?? 0, model.memberships);
        }
        // After a due pruning nothing that expired is counted, and without workers nothing is left.
        const later = model.now * 1000 + 30_000;
        while (feed.maintain(later, new StepBudget(100)));
        model.advance(30);
        while (feed.maintain(later + 30_000, new StepBudget(100)));
        if (ttlSeconds > 0) model.advance(30);
        const index = feed.indexFor('m');
        check(index?.memberships, model.memberships);
        const chains = new Set([...model.workers.values()].flatMap(({ held }) => [...held.keys()]));
        check(index?.blockCount, chains.size);
        for (let i = 0; i < 4; i++) feed.removeWorker(`w${i}`);
        for (let i = 1; i < 40; i++) feed.removeWorker(`other${i}`);
        while (feed.maintain(later + 30_000, new StepBudget(100)));
        check([index?.memberships, index?.blockCount], ttlSeconds === 0 ? [1, 1] : [0, 0]);
      }),
      { numRuns: runsFor(75) },
    );
  },
);
