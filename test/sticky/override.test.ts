import { beforeAll, describe, expect, it } from 'vitest';
import { consistentHashing } from '../../src/policies/consistent-hashing.js';
import { leastLoad } from '../../src/policies/least-load.js';
import { manual } from '../../src/policies/manual.js';
import { prefixHash } from '../../src/policies/prefix-hash.js';
import { roundRobin } from '../../src/policies/round-robin.js';
import type { StandalonePolicy } from '../../src/policies/standalone.js';
import { stickySessions } from '../../src/policies/sticky-sessions.js';
import type { RouteRequest } from '../../src/request.js';
import { type Hash64, loadHash } from '../../src/runtime/hash.js';
import { keyHash } from '../../src/sticky/routing-key.js';
import type { Candidate } from '../../src/workers/candidate.js';

let hash: Hash64;
beforeAll(async () => {
  hash = await loadHash();
});

const header = (value: string): RouteRequest => ({ headers: { 'x-smg-routing-key': value } });

interface HeldWorker {
  readonly id: string;
  /** Requests in flight by key, and those without one. */
  readonly keys: Map<string, number>;
  others: number;
  down: boolean;
}

/** A fleet whose hosts count what is in flight, with the key of each request. */
class Fleet {
  readonly policy: StandalonePolicy;
  readonly #workers: readonly HeldWorker[];

  constructor(policy: StandalonePolicy, ids: readonly string[] = ['w1', 'w2']) {
    this.policy = policy;
    this.#workers = ids.map((id) => ({ id, keys: new Map(), others: 0, down: false }));
  }

  get candidates(): Candidate[] {
    return this.#workers
      .filter(({ down }) => !down)
      .map(({ id, keys, others }) => {
        const keyed = [...keys.values()].reduce((sum, count) => sum + count, 0);
        return { id, inFlight: keyed + others, keysInFlight: new Map(keys), activeKeys: keys.size };
      });
  }

  select(request: RouteRequest): [worker: string | undefined, branch: string | undefined] {
    const selection = this.policy.selectWorker(request, this.candidates);
    return [selection.ok ? selection.worker.id : undefined, selection.record.branch];
  }

  pinned(request: RouteRequest): readonly string[] | undefined {
    return this.policy.explain(request, this.candidates).policy.pinned;
  }

  /** Counts `count` more requests in flight; of a key, or of nobody's. */
  hold(id: string, count: number, key?: string): void {
    const worker = this.#of(id);
    if (key === undefined) worker.others += count;
    else worker.keys.set(key, (worker.keys.get(key) ?? 0) + count);
  }

  drain(): void {
    for (const worker of this.#workers) {
      worker.keys.clear();
      worker.others = 0;
    }
  }

  down(id: string, down = true): void {
    this.#of(id).down = down;
  }

  #of(id: string): HeldWorker {
    return this.#workers.find((worker) => worker.id === id) as HeldWorker;
  }
}

const sticky = (options?: Parameters<typeof stickySessions>[1]) => new Fleet(stickySessions(roundRobin(), options));

describe('routing-key override: keys', () => {
  it('ST-31: unkeyed requests are the inner policy’s, state effects included', () => {
    const fleet = sticky();
    expect(fleet.select({})).toEqual(['w1', undefined]);
    expect(fleet.select({})).toEqual(['w2', undefined]);
    expect(fleet.select({ headers: { 'x-other': 'k' } })).toEqual(['w1', undefined]);
  });

  it('ST-21, ST-24: the turns of a conversation share a pin, by rid or by header; the record says which', () => {
    const fleet = sticky();
    expect(fleet.select({ rid: 'conv_t1', ...header('req-a') })).toEqual(['w1', 'vacant']);
    const again = fleet.policy.selectWorker({ rid: 'conv_t2_r1', ...header('req-b') }, fleet.candidates);
    expect(again.record).toMatchObject({ branch: 'occupied_hit', source: 'rid', keyHash: keyHash('conv') });
    expect(fleet.select(header('conv_t7'))).toEqual(['w1', 'occupied_hit']);
    expect(fleet.policy.selectWorker(header('x'), fleet.candidates).record.source).toBe('header');
  });

  it('ST-20: routingKeyHeaders replaces the default', () => {
    const fleet = sticky({ routingKeyHeaders: ['X-Session'] });
    expect(fleet.select({ headers: { 'x-session': 'k' } })).toEqual(['w1', 'vacant']);
    expect(fleet.select(header('k'))).toEqual(['w2', undefined]);
  });

  it('ST-32: pins are kept for each model and leg', () => {
    const fleet = sticky();
    fleet.select({ rid: 'k', model: 'a', leg: 'prefill' });
    for (const other of [{ model: 'b' }, { model: 'a', leg: 'decode' }, {}] as const) {
      expect(fleet.select({ rid: 'k', ...other })[1]).toBe('vacant');
    }
    expect(fleet.select({ rid: 'k', model: 'a', leg: 'prefill' })).toEqual(['w1', 'occupied_hit']);
  });

  it('MA-13, ST-1: manual and consistent_hashing are never wrapped', () => {
    for (const policy of [manual(), consistentHashing({ hash })]) {
      expect(() => stickySessions(policy)).toThrow(expect.objectContaining({ field: 'policy' }));
      expect(() => stickySessions(policy)).toThrow(/routingKeyOverride/);
    }
    for (const wrong of [{}, null, undefined]) {
      expect(() => stickySessions(wrong as never)).toThrow(
        expect.objectContaining({ field: 'policy', value: wrong, reason: 'must be a policy used alone' }),
      );
    }
  });

  it('ST-30: prefix_hash, delegated to, sees the header key and hashes it', () => {
    const policy = stickySessions(prefixHash({ hash }));
    const fleet = new Fleet(policy, ['w1', 'w2', 'w3']);
    const ownKey = prefixHash({ hash }).selectWorker(header('session-9'), fleet.candidates);
    const placed = policy.selectWorker({ ...header('session-9'), text: 'anything' }, fleet.candidates);
    expect(placed).toMatchObject({ worker: { id: ownKey.ok && ownKey.worker.id } });
    expect(placed.record).toMatchObject({
      policy: 'prefix_hash',
      branch: 'vacant',
      policyBranch: 'ring_hit',
      level: 0,
    });
  });
});

describe('routing-key override: delegate', () => {
  it('ST-90: hit, cap, move and hit again', () => {
    const fleet = sticky();
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'vacant']);
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'occupied_hit']);
    fleet.hold('w1', 2, 'K');
    expect(fleet.select({ rid: 'K' })).toEqual(['w2', 'cap_respill']);
    expect(fleet.pinned({ rid: 'K' })).toEqual(['w2', 'w1']);
    fleet.drain();
    expect(fleet.select({ rid: 'K' })).toEqual(['w2', 'occupied_hit']);
  });

  it('ST-43: one in flight is a hit, two are not', () => {
    const fleet = sticky();
    fleet.select({ rid: 'K' });
    fleet.hold('w1', 1, 'K');
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'occupied_hit']);
    fleet.hold('w1', 1, 'K');
    expect(fleet.select({ rid: 'K' })[1]).toBe('cap_respill');
  });

  it('ST-91: with the key full everywhere requests are placed and the pin stays', () => {
    const fleet = sticky();
    fleet.select({ rid: 'K' });
    fleet.hold('w1', 2, 'K');
    fleet.hold('w2', 2, 'K');
    expect(fleet.select({ rid: 'K' })).toEqual(['w2', 'cap_respill']);
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'cap_respill']);
    expect(fleet.pinned({ rid: 'K' })).toEqual(['w1']);
    fleet.drain();
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'occupied_hit']);
  });

  it('ST-92: a single worker', () => {
    const fleet = new Fleet(stickySessions(roundRobin()), ['w1']);
    fleet.select({ rid: 'K' });
    fleet.hold('w1', 2, 'K');
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'cap_respill']);
    fleet.drain();
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'occupied_hit']);
  });

  it('ST-42, ST-93, B75: other traffic on the pinned worker never counts', () => {
    const fleet = sticky();
    fleet.select({ rid: 'K' });
    fleet.hold('w1', 50);
    fleet.hold('w1', 2, 'Z');
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'occupied_hit']);
  });

  it('ST-35, ST-36, ST-94: the replacement becomes first and keeps the key when the old worker returns', () => {
    const fleet = new Fleet(stickySessions(roundRobin()), ['w1', 'w2', 'w3']);
    fleet.select({ rid: 'K' });
    fleet.down('w1');
    expect(fleet.select({ rid: 'K' })).toEqual(['w3', 'occupied_miss']);
    expect(fleet.pinned({ rid: 'K' })).toEqual(['w3', 'w1']);
    fleet.down('w1', false);
    expect(fleet.select({ rid: 'K' })).toEqual(['w3', 'occupied_hit']);
    fleet.down('w3');
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'occupied_hit']);
    expect(fleet.pinned({ rid: 'K' })).toEqual(['w3', 'w1']);
  });

  it('ST-34: nobody to choose from touches no pin', () => {
    let now = 0;
    const fleet = new Fleet(stickySessions(roundRobin({ clock: () => now }), { maxIdleMs: 100 }));
    fleet.select({ rid: 'K' });
    now = 60;
    const nothing = fleet.policy.selectWorker({ rid: 'K' }, []);
    expect(nothing).toMatchObject({ ok: false, record: { branch: 'no_healthy_workers', source: 'rid' } });
    now = 100;
    expect(fleet.select({ rid: 'K' })[1]).toBe('vacant');
  });

  it('ST-35, ST-35a: an inner policy that selects nothing leaves the pin where it was, but used', () => {
    let now = 0;
    const inner = leastLoad({ clock: () => now, maxWaitingRequests: 5, loadReportMaxAgeMs: Infinity });
    const policy = stickySessions(inner, { maxIdleMs: 100 });
    const full = { report: { waitingRequests: 9 } };
    policy.selectWorker({ rid: 'K' }, [{ id: 'w1', inFlight: 0 }]);
    now = 99;
    expect(policy.selectWorker({ rid: 'K' }, [{ id: 'w2', inFlight: 0, ...full }])).toMatchObject({
      ok: false,
      reason: 'waiting_cap',
      record: { branch: 'occupied_miss' },
    });
    now = 198;
    const back = policy.selectWorker({ rid: 'K' }, [{ id: 'w1', inFlight: 0, ...full }]);
    expect(back).toMatchObject({ ok: true, worker: { id: 'w1' }, record: { branch: 'occupied_hit' } });
    const other = policy.selectWorker({ rid: 'L' }, [{ id: 'w1', inFlight: 0, ...full }]);
    expect(other).toMatchObject({ ok: false, reason: 'waiting_cap', record: { branch: 'vacant' } });
    const capped = { id: 'w1', inFlight: 2, keysInFlight: { K: 2 }, ...full };
    expect(policy.selectWorker({ rid: 'K' }, [capped])).toMatchObject({ ok: false, record: { branch: 'cap_respill' } });
  });

  it('EW-17: a pinned selection credits its worker too', () => {
    const report = (waitingTokens: number) => ({ waitingTokens, tokensPerSecond: 100 });
    const fleet = [
      { id: 'w1', inFlight: 0, report: report(0) },
      { id: 'w2', inFlight: 0, report: report(1500) },
    ];
    const policy = stickySessions(leastLoad());
    const chosen = [{ rid: 'x' }, { rid: 'x' }, {}].map((request) => policy.selectWorker(request, fleet));
    expect(chosen.map((selection) => selection.ok && selection.worker.id)).toEqual(['w1', 'w1', 'w2']);
  });

  it('ST-37: adding workers moves no key', () => {
    const policy = stickySessions(roundRobin());
    const keys = Array.from({ length: 40 }, (_, i) => ({ rid: `k${i}` }));
    const two = new Fleet(policy, ['w1', 'w2']);
    const before = keys.map((key) => two.select(key)[0]);
    const five = new Fleet(policy, ['w5', 'w1', 'w4', 'w2', 'w3']);
    expect(keys.map((key) => five.select(key)[0])).toEqual(before);
  });

  it('LB-14a: an excluded pinned worker is bypassed and its pin not moved', () => {
    const fleet = sticky();
    fleet.select({ rid: 'K' });
    expect(fleet.select({ rid: 'K', exclude: ['w1'] })).toEqual(['w2', 'occupied_miss']);
    expect(fleet.pinned({ rid: 'K' })).toEqual(['w1']);
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'occupied_hit']);
    // A worker that is excluded and down as well has lost its pin like any other that is down.
    fleet.down('w1');
    expect(fleet.select({ rid: 'K', exclude: ['w1'] })).toEqual(['w2', 'occupied_miss']);
    expect(fleet.pinned({ rid: 'K' })).toEqual(['w2', 'w1']);
  });

  it('LB-30: workers that left are dropped from a pin when it is touched', () => {
    const fleet = sticky();
    fleet.select({ rid: 'K' });
    fleet.policy.forget('w1');
    fleet.down('w1');
    expect(fleet.select({ rid: 'K' })).toEqual(['w2', 'occupied_miss']);
    expect(fleet.pinned({ rid: 'K' })).toEqual(['w2']);
  });

  it('LB-12, LB-13: explain changes nothing and tells pins, the key’s requests and the delegated reasons', () => {
    const fleet = new Fleet(stickySessions(leastLoad({ seed: 1 })));
    expect(fleet.policy.explain({ rid: 'K' }, fleet.candidates).policy).toMatchObject({
      pinned: [],
      keyInFlight: undefined,
      delegated: { tieSet: ['w1', 'w2'] },
    });
    const [worker] = fleet.select({ rid: 'K' });
    fleet.hold(worker as string, 1, 'K');
    const hit = fleet.policy.explain({ rid: 'K' }, fleet.candidates);
    expect(hit.policy).toEqual({ pinned: [worker], keyInFlight: 1, tieSet: undefined, delegated: undefined });
    expect(hit.selection.record.branch).toBe('occupied_hit');
    expect(fleet.policy.explain({}, fleet.candidates).policy.scores).toHaveLength(2);
    expect(JSON.stringify(hit)).not.toContain('"K"');
  });
});

describe('routing-key override: own assignment modes', () => {
  it('ST-36: the replacement goes behind, and the first worker gets the key back', () => {
    const fleet = sticky({ assignmentMode: 'min_load' });
    fleet.hold('w2', 1);
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'vacant']);
    fleet.down('w1');
    expect(fleet.select({ rid: 'K' })).toEqual(['w2', 'occupied_miss']);
    expect(fleet.pinned({ rid: 'K' })).toEqual(['w1', 'w2']);
    fleet.down('w1', false);
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'occupied_hit']);
  });

  it('ST-36: with two stored the first one is dropped', () => {
    const fleet = new Fleet(stickySessions(roundRobin(), { assignmentMode: 'min_load' }), ['w1', 'w2', 'w3']);
    fleet.hold('w2', 1);
    fleet.hold('w3', 2);
    fleet.select({ rid: 'K' });
    fleet.down('w1');
    fleet.select({ rid: 'K' });
    fleet.down('w2');
    expect(fleet.select({ rid: 'K' })).toEqual(['w3', 'occupied_miss']);
    expect(fleet.pinned({ rid: 'K' })).toEqual(['w2', 'w3']);
  });

  it('ST-40, ST-41: a capped key is placed by the mode, on its own worker if that is the pick, and moves to another', () => {
    const fleet = sticky({ assignmentMode: 'min_load' });
    fleet.hold('w2', 3);
    fleet.select({ rid: 'K' });
    fleet.hold('w1', 2, 'K');
    expect(fleet.select({ rid: 'K' })).toEqual(['w1', 'cap_respill']);
    expect(fleet.pinned({ rid: 'K' })).toEqual(['w1']);
    fleet.hold('w1', 5);
    expect(fleet.select({ rid: 'K' })).toEqual(['w2', 'cap_respill']);
    expect(fleet.pinned({ rid: 'K' })).toEqual(['w2', 'w1']);
  });

  it('ST-50: random reaches everybody, and explain says so', () => {
    const seen = new Set<string | undefined>();
    for (let seed = 0; seed < 200; seed++) {
      const policy = stickySessions(roundRobin({ seed }), { assignmentMode: 'random' });
      seen.add(new Fleet(policy, ['w1', 'w2', 'w3']).select({ rid: 'K' })[0]);
    }
    expect(seen).toEqual(new Set(['w1', 'w2', 'w3']));
    const fleet = sticky({ assignmentMode: 'min_group' });
    fleet.hold('w2', 1, 'Z');
    expect(fleet.policy.explain({ rid: 'K' }, fleet.candidates).policy.tieSet).toEqual(['w1']);
    // A pin that serves leaves no choice.
    fleet.select({ rid: 'K' });
    expect(fleet.policy.explain({ rid: 'K' }, fleet.candidates).policy.tieSet).toBeUndefined();
  });

  it('ST-50: an unknown mode is a configuration error', () => {
    expect(() => sticky({ assignmentMode: 'sticky' as never })).toThrow(/assignmentMode/);
  });
});
