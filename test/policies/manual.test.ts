import { describe, expect, it } from 'vitest';
import { type ManualAloneOptions, manual, manualRoutingKey } from '../../src/policies/manual.js';
import type { StandalonePolicy } from '../../src/policies/standalone.js';
import { RequestView, type RouteRequest } from '../../src/request.js';
import { hashText } from '../../src/runtime/hash-text.js';
import { keyHash } from '../../src/sticky/routing-key.js';
import type { Candidate } from '../../src/workers/candidate.js';

const key = (value: string | string[], rest: RouteRequest = {}): RouteRequest => ({
  ...rest,
  headers: { 'X-SMG-Routing-Key': value },
});
const w = (n: number, inFlight = 0): Candidate => ({ id: `w${n}`, inFlight });
const three = [w(1), w(2), w(3)];

function select(policy: StandalonePolicy, request: RouteRequest, candidates: readonly Candidate[] = three) {
  const selection = policy.selectWorker(request, candidates);
  return [selection.ok ? selection.worker.id : undefined, selection.record.branch];
}

/** Winners of a first decision over many seeds. */
function winners(options: ManualAloneOptions, request: RouteRequest, candidates: readonly Candidate[]) {
  const seen = new Set<unknown>();
  for (let seed = 0; seed < 200; seed++) seen.add(select(manual({ ...options, seed }), request, candidates)[0]);
  return seen;
}

describe('manual: keys', () => {
  it('MA-1: visible ASCII of any length; a long key is a key of its own', () => {
    const policy = manual({ seed: 1 });
    const long = 'x'.repeat(5000);
    const [worker] = select(policy, key(long));
    expect(select(policy, key(long))).toEqual([worker, 'occupied_hit']);
    expect(select(policy, key(`${long}y`))[1]).toBe('vacant');
    expect(select(policy, key('~ !\ta'))[1]).toBe('vacant');
  });

  it('MA-1: a key of more than 128 bytes is kept as its hash, marked as no header value can be', () => {
    const keyOf = (value: string) => manualRoutingKey(new RequestView(key(value)), false);
    const [short, long] = ['x'.repeat(128), 'x'.repeat(129)];
    expect(keyOf(short)).toEqual({ key: short, source: 'header' });
    expect(keyOf(long)).toEqual({ key: `\u0001${hashText(long)}`, source: 'header' });
  });

  it.each(['', ' \t', 'naïve', 'a\u0007b', '漢'])('MA-1, MA-4: %j is no key', (value) => {
    expect(select(manual({ seed: 1 }), key(value))[1]).toBe('no_routing_id');
  });

  it('B79, ST-22a: names in any case, the first usable array element, blanks around it do not count', () => {
    const policy = manual({ seed: 1 });
    const [worker] = select(policy, { headers: { 'x-smg-routing-key': 'k' } });
    for (const same of [key(['', 'é', ' k ']), { headers: new Headers({ 'x-SMG-routing-key': 'k' }) }]) {
      expect(select(policy, same)).toEqual([worker, 'occupied_hit']);
    }
  });

  it('MA-1: header values are not stripped and other header names play no part', () => {
    const policy = manual({ seed: 1 });
    select(policy, key('conv_t1'));
    expect(select(policy, key('conv_t2'))[1]).toBe('vacant');
    expect(select(policy, { headers: { 'x-session': 'k' } })[1]).toBe('no_routing_id');
    expect(() => manual({ routingKeyHeaders: ['x-session'] } as never)).toThrow(/routingKeyHeaders/);
  });

  it('MA-1: the rid counts with the override only, and wins there', () => {
    expect(select(manual({ seed: 1 }), { rid: 'conv_t2' })[1]).toBe('no_routing_id');
    const policy = manual({ seed: 1, routingKeyOverride: true });
    const [worker] = select(policy, { rid: 'conv_t1', headers: { 'x-smg-routing-key': 'a' } });
    const again = policy.selectWorker({ rid: 'conv_t2', headers: { 'x-smg-routing-key': 'b' } }, three);
    expect(again).toMatchObject({
      worker: { id: worker },
      record: { branch: 'occupied_hit', source: 'rid', keyHash: keyHash('conv') },
    });
  });

  it('B91: keys and ids that are names of object members are ordinary', () => {
    const policy = manual({ seed: 1 });
    const fleet = ['__proto__', 'constructor', 'toString'].map((id) => ({ id, inFlight: 0 }));
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const [worker, branch] = select(policy, key(name), fleet);
      expect(branch).toBe('vacant');
      expect(select(policy, key(name), fleet)).toEqual([worker, 'occupied_hit']);
    }
  });
});

describe('manual: pins', () => {
  const minLoad = () => manual({ assignmentMode: 'min_load', seed: 1 });

  it('MA-5, MA-6, MA-9: two workers a key, the oldest dropped, the first available one serves', () => {
    const policy = minLoad();
    expect(select(policy, key('k'), [w(1), w(2, 1), w(3, 2)])).toEqual(['w1', 'vacant']);
    expect(select(policy, key('k'), [w(2, 1), w(3, 2)])).toEqual(['w2', 'occupied_miss']);
    expect(select(policy, key('k'), [w(2, 9), w(3, 2)])).toEqual(['w2', 'occupied_hit']);
    expect(select(policy, key('k'), [w(3, 2)])).toEqual(['w3', 'occupied_miss']);
    expect(select(policy, key('k'), [w(1), w(3, 2)])).toEqual(['w3', 'occupied_hit']);
    expect(select(policy, key('k'), [w(1), w(2), w(3)])).toEqual(['w2', 'occupied_hit']);
  });

  it('MA-8: a recovered first worker wins again, an added one moves nothing, and load plays no part', () => {
    const policy = minLoad();
    select(policy, key('k'), [w(1), w(2, 1)]);
    select(policy, key('k'), [w(2, 1)]);
    expect(select(policy, key('k'), [w(1, 500), w(2), w(3)])).toEqual(['w1', 'occupied_hit']);
  });

  it('MA-2, ST-61: pins are kept for each model and leg', () => {
    const policy = minLoad();
    const busy = [w(1, 9), w(2)];
    select(policy, key('k', { model: 'a', leg: 'prefill' }), [w(1), w(2, 1)]);
    for (const other of [{ model: 'b', leg: 'prefill' }, { model: 'a', leg: 'decode' }, { leg: 'prefill' }] as const) {
      expect(select(policy, key('k', other), busy)).toEqual(['w2', 'vacant']);
    }
    expect(select(policy, key('k', { model: 'a', leg: 'prefill' }), busy)).toEqual(['w1', 'occupied_hit']);
  });

  it('MA-3: nobody to choose from; the pin is not touched', () => {
    let now = 0;
    const policy = manual({ seed: 1, clock: () => now, maxIdleMs: 100 });
    const [worker] = select(policy, key('k'));
    now = 60;
    expect(select(policy, key('k'), [])).toEqual([undefined, 'no_healthy_workers']);
    now = 99;
    expect(select(policy, key('k'))).toEqual([worker, 'occupied_hit']);
    now = 199;
    expect(select(policy, key('k'))[1]).toBe('vacant');
  });

  it('MA-10, B77: an idle key is a new key; one touched within maxIdleMs stays', () => {
    let now = 0;
    const policy = manual({ assignmentMode: 'min_load', clock: () => now, maxIdleMs: 10_000 });
    select(policy, key('k'), [w(1), w(2, 1)]);
    for (let i = 0; i < 5; i++) {
      now += 9000;
      expect(select(policy, key('k'), [w(1, 5), w(2)])).toEqual(['w1', 'occupied_hit']);
    }
    now += 10_000;
    expect(select(policy, key('k'), [w(1, 5), w(2)])).toEqual(['w2', 'vacant']);
  });

  it('MA-10: maxPins bounds the map, least recently used first', () => {
    const policy = manual({ assignmentMode: 'min_load', maxPins: 2 });
    for (const name of ['a', 'b', 'c']) select(policy, key(name), [w(1), w(2, 1)]);
    expect(select(policy, key('c'))[1]).toBe('occupied_hit');
    expect(select(policy, key('b'))[1]).toBe('occupied_hit');
    expect(select(policy, key('a'))[1]).toBe('vacant');
  });

  it('LB-14a: an excluded pinned worker is bypassed and its pin not moved', () => {
    const policy = minLoad();
    select(policy, key('k'), [w(1), w(2, 1)]);
    expect(select(policy, { ...key('k'), exclude: ['w1'] }, [w(1), w(2, 1)])).toEqual(['w2', 'occupied_miss']);
    // Nothing was stored behind w1: with w1 down the mode picks anew.
    expect(select(policy, key('k'), [w(2, 1), w(3)])).toEqual(['w3', 'occupied_miss']);
  });

  it('ST-62, LB-30: a worker that left the pool is dropped from a pin when it is next touched', () => {
    const policy = minLoad();
    select(policy, key('k'), [w(1), w(2, 1)]);
    select(policy, key('k'), [w(2, 1)]);
    policy.forget('w1');
    // Not touched in between: the pin still names w1.
    expect(policy.explain(key('k'), [w(1), w(2, 1)]).policy.pinned).toEqual(['w1', 'w2']);
    expect(select(policy, key('k'), [w(2, 1)])).toEqual(['w2', 'occupied_hit']);
    expect(select(policy, key('k'), [w(1), w(2, 1)])).toEqual(['w2', 'occupied_hit']);
  });

  it('LB-30: a key whose workers all left is placed anew', () => {
    const policy = minLoad();
    select(policy, key('k'), [w(1), w(2, 1)]);
    policy.forget('w1');
    expect(select(policy, key('k'), [w(2, 1), w(3, 2)])).toEqual(['w2', 'occupied_miss']);
    expect(policy.explain(key('k'), [w(2)]).policy.pinned).toEqual(['w2']);
  });

  it('LB-12: explain changes nothing', () => {
    let now = 0;
    const policy = manual({ assignmentMode: 'min_load', clock: () => now, maxIdleMs: 100 });
    expect(policy.explain(key('k'), [w(1), w(2)]).policy).toEqual({ pinned: [], tieSet: ['w1', 'w2'] });
    expect(select(policy, key('k'), [w(1), w(2, 1)])).toEqual(['w1', 'vacant']);
    now = 50;
    expect(policy.explain(key('k'), three).policy).toEqual({ pinned: ['w1'], tieSet: undefined });
    now = 100;
    expect(select(policy, key('k'))[1]).toBe('vacant');
  });
});

describe('manual: assignment modes', () => {
  it('MA-7: random by default, every worker with equal chance', () => {
    expect(winners({}, key('k'), [w(1, 9), w(2), w(3, 5)])).toEqual(new Set(['w1', 'w2', 'w3']));
    expect(winners({}, {}, three)).toEqual(new Set(['w1', 'w2', 'w3']));
    const policy = manual({ seed: 7 });
    const counts = new Map<unknown, number>();
    for (let i = 0; i < 3000; i++) {
      const [worker] = select(policy, key(`k${i}`));
      counts.set(worker, (counts.get(worker) ?? 0) + 1);
    }
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(130);
  });

  it.each(['min_load', 'delegate'] as const)(
    'MA-7: %s picks the fewest in flight, ties at random',
    (assignmentMode) => {
      expect(winners({ assignmentMode }, key('k'), [w(1, 2), w(2, 1), w(3, 3)])).toEqual(new Set(['w2']));
      expect(winners({ assignmentMode }, key('k'), [w(1, 1), w(2, 2), w(3, 1)])).toEqual(new Set(['w1', 'w3']));
    },
  );

  it('MA-7: min_group picks the fewest distinct active keys, ties at random', () => {
    const fleet = [
      { id: 'w1', inFlight: 0, activeKeys: 2 },
      { id: 'w2', inFlight: 9, keysInFlight: { a: 5 } },
      { id: 'w3', inFlight: 3, activeKeys: 1 },
    ];
    expect(winners({ assignmentMode: 'min_group' }, key('k'), fleet)).toEqual(new Set(['w2', 'w3']));
  });

  it('LB-3: the same seed gives the same assignments', () => {
    const run = () => {
      const policy = manual({ seed: 'same' });
      return Array.from({ length: 50 }, (_, i) => select(policy, key(`k${i}`))[0]);
    };
    expect(run()).toEqual(run());
  });
});
