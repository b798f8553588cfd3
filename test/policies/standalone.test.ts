import { describe, expect, it } from 'vitest';
import { leastLoad } from '../../src/policies/least-load.js';
import { Decision, type RingLookup } from '../../src/policies/policy.js';
import { random } from '../../src/policies/random.js';
import type { MemberRing } from '../../src/policies/standalone.js';
import { seededRandom } from '../../src/runtime/random.js';
import { composePinKey } from '../../src/sticky/pin-key.js';
import type { Candidate } from '../../src/workers/candidate.js';
import type { CandidateSet } from '../../src/workers/candidate-set.js';
import { alone, two } from './custom-alone.js';

describe('LB-10a: a policy used alone', () => {
  it('returns the literal that the caller passed', () => {
    const mine = { id: 'a', inFlight: 0, url: 'http://a' };
    const selection = leastLoad().selectWorker({}, [mine]);
    expect(selection.ok && selection.worker).toBe(mine);
    expect(selection.ok && selection.worker.url).toBe('http://a');
  });

  it('LB-11: gives the record of the decision', () => {
    expect(leastLoad().selectWorker({}, two).record).toEqual({
      policy: 'least_load',
      branch: undefined,
      policyBranch: undefined,
      source: undefined,
      keyHash: undefined,
      level: undefined,
      matchedRatio: undefined,
      threshold: undefined,
      expectedWaitSeconds: undefined,
      inFlight: 1,
      model: 'unknown',
      leg: 'single',
    });
  });

  it('LB-11: a combinator shows the delegated branch beside its own', () => {
    const inner = new Decision(undefined, 'tree_match');
    inner.level = 16;
    inner.matchedRatio = 0.5;
    inner.threshold = 0.3;
    const policy = alone({
      decide(_request, { workers }) {
        const decision = new Decision(workers[1], 'vacant');
        decision.inner = inner;
        return decision;
      },
    });
    expect(policy.selectWorker({}, two).record).toMatchObject({
      branch: 'vacant',
      policyBranch: 'tree_match',
      level: 16,
      matchedRatio: 0.5,
      threshold: 0.3,
    });
  });

  it('PO-6: the candidate set is the same one while the same ids come in the same order, with counts as they are', () => {
    const seen: CandidateSet[] = [];
    const sums: number[] = [];
    const policy = alone({
      decide(_request, candidates) {
        seen.push(candidates);
        sums.push(candidates.inFlight);
        return new Decision(candidates.at(0));
      },
    });
    const [a, b] = two as readonly [Candidate, Candidate];
    for (const list of [two, [{ ...a, inFlight: 5 }, b], [b, a], [b]]) policy.selectWorker({}, list);
    expect(seen.map((set) => seen.indexOf(set))).toEqual([0, 0, 2, 3]);
    expect(sums).toEqual([3, 7, 3, 2]);
  });

  it('takes model and leg from the request', () => {
    const seen: unknown[] = [];
    const policy = alone(
      {
        decide(_request, { workers }, { model, leg, now }) {
          seen.push(model, leg, now);
          return new Decision(workers[0]);
        },
      },
      { clock: () => 0 },
    );
    policy.selectWorker({ model: 'm', leg: 'decode' }, two);
    policy.selectWorker({ model: '' }, two);
    expect(seen).toEqual(['m', 'decode', 0, 'unknown', 'single', 0]);
  });

  it('registers ids when first seen, in order, keeps them while others come and go, and forgets on request', () => {
    const log: string[] = [];
    const policy = alone(
      {
        workerAdded: (id, now) => log.push(`+${id}@${now}`),
        workerRemoved: (id) => log.push(`-${id}`),
      },
      { clock: () => 7 },
    );
    policy.selectWorker({}, two);
    policy.selectWorker({}, [{ id: 'c', inFlight: 0 }]);
    policy.selectWorker({}, two);
    policy.forget('a');
    policy.forget('a');
    policy.forget('never');
    policy.selectWorker({}, two);
    expect(log).toEqual(['+a@0', '+b@0', '+c@0', '-a', '+a@0']);
  });

  it('LB-5: maintain passes time and a budget on, and says whether work is left', () => {
    const seen: number[] = [];
    let now = 0;
    const policy = alone(
      {
        maintain(at, budget) {
          seen.push(at);
          const before = budget.spent();
          now += 1;
          return !before && budget.spent();
        },
      },
      { clock: () => now },
    );
    now = 40;
    expect(policy.maintain()).toBe(true);
    expect(seen).toEqual([40]);
    expect(random().maintain()).toBe(false);
  });

  it('PO-7: a member ring follows the ids given; explain looks with the newcomers and leaves the ring as it was', () => {
    const members = new Set<string>();
    const ring: MemberRing = {
      add: (id) => members.add(id),
      remove: (id) => members.delete(id),
      lookup: (_hash, isEligible) => [...members].filter(isEligible).at(-1),
    };
    const policy = alone(
      {
        decide: (_request, candidates, ctx) => new Decision(candidates.get(ctx.ring?.lookup(0n, candidates.has) ?? '')),
      },
      {},
      ring,
    );
    expect(policy.explain({}, two).selection).toMatchObject({ ok: true, worker: 'b' });
    expect(members.size).toBe(0);
    expect(policy.selectWorker({}, two)).toMatchObject({ worker: { id: 'b' } });
    policy.explain({}, [...two, { id: 'c', inFlight: 0 }]);
    expect([...members]).toEqual(['a', 'b']);
    policy.forget('b');
    expect([...members]).toEqual(['a']);
  });

  it('PO-7: a ring that only looks up is left alone', () => {
    const ring: RingLookup = { lookup: () => 'b' };
    const policy = alone(
      {
        decide: (_request, candidates, ctx) => new Decision(candidates.get(ctx.ring?.lookup(0n, candidates.has) ?? '')),
      },
      {},
      ring,
    );
    expect(policy.selectWorker({}, two)).toMatchObject({ worker: { id: 'b' } });
    policy.forget('b');
  });

  it('a worker that is no candidate counts as none: custom policies cannot select outside the list', () => {
    const policy = alone({ decide: () => new Decision({ id: 'x' } as never) });
    expect(policy.selectWorker({}, two)).toMatchObject({ ok: false, reason: 'no_available_workers' });
  });
});

function fail(): never {
  throw new Error('unreadable');
}

describe('WK-41, WK-42: keys of literals', () => {
  const seen = (candidate: Partial<Candidate>, pinKey = composePinKey('m', 'decode', 'k')) => {
    const read: number[] = [];
    alone({
      decide(_request, { workers }) {
        const worker = workers[0];
        if (worker) read.push(worker.keyInFlight(pinKey), worker.activeKeys);
        return new Decision(worker);
      },
    }).selectWorker({}, [{ id: 'a', inFlight: 0, ...candidate }]);
    return read;
  };

  it('count for whatever model and leg; a Map or an object; a count of 0 is no key', () => {
    expect(seen({ keysInFlight: { k: 2, other: 1, done: 0 } })).toEqual([2, 2]);
    expect(seen({ keysInFlight: new Map([['k', 3]]) })).toEqual([3, 1]);
    expect(seen({})).toEqual([0, 0]);
  });

  it('B91: names of object built-ins are ordinary keys', () => {
    expect(seen({ keysInFlight: {} }, composePinKey('m', 'single', 'constructor'))).toEqual([0, 0]);
    expect(seen({ keysInFlight: new Map([['__proto__', 1]]) }, composePinKey('m', 'single', '__proto__'))).toEqual([
      1, 1,
    ]);
  });

  it.each([
    ['a text', { k: '3' }],
    ['a bigint', { k: 3n }],
    ['a getter that fails', Object.defineProperty({}, 'k', { get: fail, enumerable: true })],
  ])('LB-42: a count that is %s is none', (_what, keysInFlight) => {
    expect(seen({ keysInFlight: keysInFlight as never })).toEqual([0, 0]);
  });

  it('activeKeys wins over what the keys would count', () => {
    expect(seen({ keysInFlight: { k: 2 }, activeKeys: 9 })).toEqual([2, 9]);
  });
});

describe('LB-14a: exclude', () => {
  it('applies before the policy, which still sees who was available', () => {
    const seen: unknown[] = [];
    const policy = alone({
      decide(_request, candidates, ctx) {
        seen.push(
          candidates.workers.map(({ id }) => id),
          candidates.inFlight,
          ctx.available.size,
        );
        return new Decision(candidates.workers[0]);
      },
    });
    expect(policy.selectWorker({ exclude: ['a', 'zz'] }, two)).toMatchObject({ worker: { id: 'b' } });
    expect(seen).toEqual([['b'], 2, 2]);
  });

  it('that leaves nobody gives no_available_workers with the number excluded', () => {
    expect(random().selectWorker({ exclude: ['a', 'b', 'c'] }, two)).toMatchObject({
      ok: false,
      reason: 'no_available_workers',
      excluded: 2,
      leg: 'single',
    });
  });

  it('LB-13: explain tells who was excluded', () => {
    expect(random().explain({ exclude: ['b'] }, two).workers).toEqual([
      { worker: 'a', candidate: true, exclusions: [] },
      { worker: 'b', candidate: false, exclusions: [{ by: 'exclude' }] },
    ]);
    expect(random().explain({ exclude: ['a', 'b'] }, two).selection).toMatchObject({ ok: false, excluded: 2 });
    const full = ['a', 'b', 'c'].map((id) => ({ id, inFlight: 0, report: { waitingRequests: 9 } }));
    expect(leastLoad({ maxWaitingRequests: 9 }).explain({ exclude: ['b'] }, full).selection).toMatchObject({
      ok: false,
      reason: 'waiting_cap',
      excluded: 1,
    });
  });
});

describe('LB-12: explain', () => {
  it('does not move the random sequence on, with and without fork', () => {
    for (const fork of [true, false]) {
      const picks = (explain: boolean) => {
        const source = seededRandom(12);
        const policy = random({ random: fork ? source : () => source() });
        return Array.from({ length: 50 }, () => {
          if (explain) policy.explain({}, two);
          const selection = policy.selectWorker({}, two);
          return selection.ok && selection.worker.id;
        });
      };
      expect(picks(true)).toEqual(picks(false));
    }
  });

  it('reads reports without taking them over, and credits nobody', () => {
    const policy = leastLoad({ seed: 1 });
    const known = { waitingTokens: 0, tokensPerSecond: 100, kvCacheUsage: 0 };
    policy.selectWorker({}, [{ id: 'a', inFlight: 0, report: known }]);
    const credit = (report: object) =>
      policy.explain({}, [{ id: 'a', inFlight: 0, report }]).policy.scores?.[0]?.creditTokens;
    expect(credit({ ...known })).toBe(0);
    expect(credit(known)).toBe(1024);
  });
});
