/** The bucket policy against a naive model that keeps every request and checks at every due instant. */

import { describe, expect, it } from 'vitest';
import { bucket, createBucket } from '../../src/policies/bucket.js';
import { bucketRecompute } from '../../src/policies/bucket-boundaries.js';
import { Decision, type DecisionContext } from '../../src/policies/policy.js';
import { RequestView } from '../../src/request.js';
import { seededRandom } from '../../src/runtime/random.js';
import { CandidateSet } from '../../src/workers/candidate-set.js';
import { signals } from '../load/signals.js';
import { fc } from '../support/property.js';

const settings = { balanceAbsThreshold: 300, balanceRelThreshold: 1.5 };

interface Routed {
  readonly size: number;
  readonly time: number;
  owner: string | undefined;
}

/** BU-4 to BU-14 without any cleverness. */
class Model {
  members: { id: string; low: number }[] = [];
  entries: Routed[] = [];
  share = 0;
  startedAt: number | undefined;
  nextCheck = 0;

  settle(now: number): void {
    while (this.startedAt !== undefined && this.nextCheck <= now) {
      const window = this.entries.filter(({ time }) => time < this.nextCheck && this.nextCheck - time <= 5000);
      const sizes = window.map(({ size }) => size);
      const adjusted = bucketRecompute(this.members.length, sizes, this.share);
      if (adjusted !== undefined) {
        this.share = adjusted.share;
        this.members.forEach((member, i) => {
          member.low = adjusted.ranges[i]?.low as number;
        });
      }
      this.nextCheck += 5000;
    }
  }

  change(ids: readonly string[], now: number): void {
    this.settle(now);
    if (this.startedAt === undefined) {
      this.startedAt = now;
      this.nextCheck = now + 5000;
    }
    const gap = Math.floor(4096 / ids.length);
    this.members = ids.map((id, i) => ({ id, low: i * gap }));
    for (const entry of this.entries) entry.owner = undefined;
  }

  routed(id: string, now: number): number {
    const mine = this.entries.filter(({ owner, time }) => owner === id && now - time <= 5000);
    return mine.reduce((total, { size }) => total + size, 0);
  }

  /** Everybody who may be chosen. */
  choose(size: number, available: readonly string[], now: number): string[] {
    this.settle(now);
    const owner = this.members.filter(({ low }) => low <= size).at(-1)?.id;
    const loads = this.members.map(({ id }) => this.routed(id, now));
    const [most, fewest] = [Math.max(0, ...loads), Math.min(...loads)];
    const imbalanced = most - fewest > settings.balanceAbsThreshold && most > settings.balanceRelThreshold * fewest;
    if (!imbalanced && owner !== undefined && available.includes(owner)) return [owner];
    const least = Math.min(...available.map((id) => this.routed(id, now)));
    return available.filter((id) => this.routed(id, now) === least);
  }
}

const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      op: fc.constant('select' as const),
      size: fc.constantFrom(0, 7, 90, 400, 1400, 5000),
      out: fc.nat(7),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('advance' as const),
      ms: fc.constantFrom(1, 900, 2500, 5000, 5001, 17_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('maintain' as const) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('add' as const) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('remove' as const), at: fc.nat(7) }) },
);

describe('BU-4 to BU-14: bucket against a naive model', () => {
  it('chooses within the set the model allows, explains exactly that set, and ignores when maintenance runs', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const policy = createBucket(settings);
        const model = new Model();
        const random = seededRandom(1);
        let now = 0;
        let created = 3;
        let ids = ['w0', 'w1', 'w2'];
        for (const id of ids) policy.workerAdded?.(id, now);
        model.change(ids, now);
        for (const action of steps) {
          if (action.op === 'advance') now += action.ms;
          else if (action.op === 'maintain') policy.maintain?.(now, { spent: () => true });
          else if (action.op === 'add') {
            ids = [...ids, `w${created}`];
            policy.workerAdded?.(`w${created++}`, now);
            model.change(ids, now);
          } else if (action.op === 'remove') {
            const gone = ids[action.at];
            if (gone === undefined || ids.length === 1) continue;
            ids = ids.filter((id) => id !== gone);
            policy.workerRemoved?.(gone, now);
            model.change(ids, now);
          } else {
            const available = ids.filter((_, i) => ids.length === 1 || i !== action.out);
            const candidates = new CandidateSet(available.map((id) => signals(id)));
            const ctx: DecisionContext = {
              now,
              random,
              model: 'unknown',
              leg: 'prefill',
              ring: undefined,
              available: candidates,
            };
            const request = new RequestView({ tokens: new Uint32Array(action.size) });
            const allowed = model.choose(action.size, available, now);
            const decision = policy.decide(request, candidates, ctx);
            expect(decision).toBeInstanceOf(Decision);
            expect(allowed).toContain(decision.worker?.id);
            expect(policy.describe?.(request, candidates, ctx, decision).tieSet).toEqual(allowed);
            policy.record?.(request, decision, ctx);
            model.entries.push({ size: action.size, time: now, owner: decision.worker?.id });
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it('BU-7: the window holds 16 384 requests at most, the newest', () => {
    const policy = bucket({ clock: () => 0, balanceAbsThreshold: 1e9 });
    const candidates = [{ id: 'a', inFlight: 0 }];
    for (let i = 0; i < 20_000; i++) policy.selectWorker({ text: 'x' }, candidates);
    expect(policy.explain({}, candidates).policy.bucket?.routed).toEqual([{ worker: 'a', units: 16_384 }]);
  });
});
