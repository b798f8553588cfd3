import { deepStrictEqual as check } from 'node:assert/strict';
import { it } from 'vitest';
import { HashIndex, type HashPiece } from '../../src/prefix/hash-index.js';
import { StepBudget } from '../../src/runtime/maintenance-budget.js';
import { fc } from '../support/property.js';
import { modelTimeoutMs, runsFor } from './kv-model-ops.js';

interface Holder {
  readonly worker: string;
  readonly touch: number;
  readonly use: number;
}

/** Lists of holders under the spelled-out head; everything is filtered on reading. */
class NaiveIndex {
  readonly heads = new Map<string, Holder[]>();
  readonly ttlMs: number;
  lastUse = 0;

  constructor(ttlMs: number) {
    this.ttlMs = ttlMs;
  }

  live(head: string, now: number): Holder[] {
    const holders = (this.heads.get(head) ?? []).filter(({ touch }) => now - touch <= this.ttlMs);
    return holders.sort((a, b) => b.use - a.use || (a.worker < b.worker ? 1 : -1));
  }

  place(head: string, worker: string, use: number, now: number): boolean {
    const holders = this.live(head, now);
    const own = holders.find((holder) => holder.worker === worker);
    if (own !== undefined && own.use >= use) return false;
    const others = holders.filter((holder) => holder !== own);
    this.heads.set(head, [...others, { worker, touch: now, use }]);
    const kept = this.live(head, now).slice(0, 3);
    this.heads.set(head, kept);
    return kept.some((holder) => holder.worker === worker);
  }

  remove(worker: string): void {
    for (const [head, holders] of this.heads) {
      this.heads.set(
        head,
        holders.filter((holder) => holder.worker !== worker),
      );
    }
  }
}

const boundaries = [1, 2, 5];
const headsOf = (tokens: readonly number[], namespace: string | undefined): string[] =>
  boundaries.filter((one) => one <= tokens.length).map((one) => `${namespace}|${tokens.slice(0, one).join()}`);

const worker = fc.constantFrom('a', 'b', 'c', 'd', 'e', '__proto__');
const request = fc.record({
  tokens: fc.array(fc.integer({ min: 0, max: 1 }), { maxLength: 6 }),
  namespace: fc.constantFrom(undefined, undefined, 'x'),
});
const operation = fc.oneof(
  { weight: 6, arbitrary: fc.record({ op: fc.constant('record' as const), request, worker }) },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constant('merge' as const), request, worker, use: fc.integer({ min: 1, max: 60 }) }),
  },
  { weight: 6, arbitrary: fc.record({ op: fc.constant('holders' as const), request }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('remove' as const), worker }) },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant('advance' as const), ms: fc.constantFrom(0, 1, 20, 99, 100, 101) }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('sweep' as const), looks: fc.nat({ max: 2 }) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('restored' as const) }) },
);

it('CA-70..CA-76, LB-33, LB-34: the hash index answers like a naive one', { timeout: modelTimeoutMs }, () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 150 }), (operations) => {
      let index = new HashIndex({ boundaries, ttlMs: 100 });
      const model = new NaiveIndex(100);
      let now = 0;
      for (const operation of operations) {
        if (operation.op === 'advance') {
          now += operation.ms;
        } else if (operation.op === 'remove') {
          index.removeWorker(operation.worker);
          model.remove(operation.worker);
        } else if (operation.op === 'sweep') {
          index.sweep(now, new StepBudget(operation.looks));
        } else if (operation.op === 'restored') {
          const copy = new HashIndex({ boundaries, ttlMs: 100 });
          for (const piece of index.pieces(now, 2)) {
            copy.restore(JSON.parse(JSON.stringify(piece)) as HashPiece, () => true, now);
          }
          model.lastUse = copy.lastUse;
          index = copy;
        } else {
          const { tokens, namespace } = operation.request;
          const probe = index.probe(Uint32Array.from(tokens), namespace);
          const heads = headsOf(tokens, namespace);
          check(probe.count, heads.length);
          if (operation.op === 'record') {
            const use = index.record(probe, operation.worker, now);
            if (heads.length > 0) model.lastUse++;
            check(use, heads.length > 0 ? model.lastUse : 0);
            for (const head of heads) model.place(head, operation.worker, model.lastUse, now);
          } else if (operation.op === 'merge') {
            const { use } = operation;
            const changed = heads.map((head) => model.place(head, operation.worker, use, now)).includes(true);
            model.lastUse = Math.max(model.lastUse, use);
            check(index.merge(probe, operation.worker, use, now), changed);
          } else {
            heads.forEach((head, i) => {
              const expected = model.live(head, now).map((holder) => holder.worker);
              check(index.holders(probe, i, now), expected);
            });
          }
        }
      }
      // Everything expires, and a sweep then leaves nothing.
      while (index.sweep(now + 101, new StepBudget(1)));
      check(index.headCount, 0);
    }),
    { numRuns: runsFor(75) },
  );
});
