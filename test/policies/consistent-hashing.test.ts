import { beforeAll, describe, expect, it } from 'vitest';
import { consistentHashing } from '../../src/policies/consistent-hashing.js';
import type { StandalonePolicy } from '../../src/policies/standalone.js';
import type { RouteRequest } from '../../src/request.js';
import { type Hash64, loadHash } from '../../src/runtime/hash.js';
import { keyHash } from '../../src/sticky/routing-key.js';

let hash: Hash64;
beforeAll(async () => {
  hash = await loadHash();
});

const fleet = (...ids: string[]) => ids.map((id) => ({ id, inFlight: 0 }));
const four = fleet('w1', 'w2', 'w3', 'w4');

function select(policy: StandalonePolicy, request: RouteRequest, candidates = four) {
  const selection = policy.selectWorker(request, candidates);
  return { worker: selection.ok ? selection.worker.id : undefined, branch: selection.record.branch };
}

/** Winners over many seeds. */
function winners(request: RouteRequest, candidates = four): Set<string | undefined> {
  const seen = new Set<string | undefined>();
  for (let seed = 0; seed < 200; seed++)
    seen.add(select(consistentHashing({ hash, seed }), request, candidates).worker);
  return seen;
}

describe('consistent_hashing: target worker', () => {
  const target = (value: string | string[]) => ({ headers: { 'X-SMG-Target-Worker': value } });

  it.each([
    ['0', 'w1'],
    ['3', 'w4'],
    ['+2', 'w3'],
    ['0001', 'w2'],
  ])('CH-3: %j selects by position', (value, worker) => {
    expect(select(consistentHashing({ hash }), target(value))).toEqual({ worker, branch: 'target_worker_hit' });
  });

  it.each([
    '4',
    '-1',
    '-0',
    ' 1',
    '1 ',
    '1.0',
    '0x1',
    '1e0',
    'abc',
    '+',
    '++1',
    '18446744073709551616',
    '9'.repeat(400),
  ])('CH-3: %j selects nothing and falls back to no key', (value) => {
    const headers = { 'x-smg-target-worker': value, 'x-smg-routing-key': 'k' };
    const selection = consistentHashing({ hash }).selectWorker({ headers }, four);
    expect(selection).toMatchObject({
      ok: false,
      reason: 'target_worker_invalid',
      code: 'no_available_workers',
      record: { branch: 'target_worker_miss' },
    });
  });

  it.each(['', '１', '1\u0000', '\u007f'])('CH-3: %j counts as absent', (value) => {
    expect(select(consistentHashing({ hash }), target(value)).branch).toBe('random_fallback');
  });

  it('CH-3, LB-43: of several values the first that is not empty counts', () => {
    expect(select(consistentHashing({ hash }), target(['', '1', '2'])).worker).toBe('w2');
    expect(select(consistentHashing({ hash }), target(['x', '1'])).branch).toBe('target_worker_miss');
    expect(select(consistentHashing({ hash }), target(['', ''])).branch).toBe('random_fallback');
  });

  it('LB-14a: positions count before exclusion, and an excluded target selects nothing', () => {
    const policy = consistentHashing({ hash });
    const request = { ...target('1'), exclude: ['w1'] };
    expect(select(policy, request)).toEqual({ worker: 'w2', branch: 'target_worker_hit' });
    expect(policy.selectWorker({ ...target('0'), exclude: ['w1'] }, four)).toMatchObject({
      ok: false,
      reason: 'target_worker_invalid',
      excluded: 1,
    });
  });
});

describe('consistent_hashing: keys', () => {
  const key = (value: string) => ({ headers: { 'x-smg-routing-key': value } });

  it('CH-4: a key always finds the same worker, whatever the seed', () => {
    const owner = [...winners(key('user-1'))];
    expect(owner).toHaveLength(1);
    expect(select(consistentHashing({ hash, seed: 1 }), key('user-1'))).toEqual({
      worker: owner[0],
      branch: 'routing_key_hit',
    });
  });

  it('CH-8, B51: the key goes to the next worker while its owner is away, and returns', () => {
    const policy = consistentHashing({ hash });
    const owner = select(policy, key('k')).worker;
    const rest = four.filter(({ id }) => id !== owner);
    const next = select(policy, key('k'), rest).worker;
    expect(next).not.toBe(owner);
    expect(select(policy, key('k'), rest).worker).toBe(next);
    expect(select(policy, key('k')).worker).toBe(owner);
    expect(select(policy, { ...key('k'), exclude: [owner as string] }).worker).toBe(next);
  });

  it('CH-2: target header, then rid, then the configured headers, then x-smg-routing-key, then implicit keys', () => {
    const policy = consistentHashing({ hash, routingKeyOverride: true, routingKeyHeaders: ['X-Session'] });
    const ownerOf = (value: string) => select(policy, { routingKey: value }).worker;
    // Keys with four different owners, so that each step shows.
    const found = new Map<string, string>();
    for (let i = 0; found.size < 4; i++) {
      const worker = ownerOf(`key-${i}`) as string;
      if (!found.has(worker)) found.set(worker, `key-${i}`);
    }
    const [rid, session, standard, authorization] = [...found.values()] as [string, string, string, string];
    const all = { authorization, 'x-session': session, 'x-smg-routing-key': standard, 'x-smg-target-worker': '' };
    const chosen = (request: RouteRequest) => found.get(select(policy, request).worker as string);
    expect(chosen({ rid: `${rid}_t4`, headers: all })).toBe(rid);
    expect(chosen({ headers: all })).toBe(session);
    expect(chosen({ headers: { ...all, 'x-session': 'x'.repeat(129) } })).toBe(standard);
    expect(chosen({ headers: { authorization } })).toBe(authorization);
  });

  it('CH-5: a rid is stripped and read with the override only; header values are never stripped', () => {
    const off = consistentHashing({ hash, seed: 5 });
    expect(select(off, { rid: 'conv_t1' }).branch).toBe('random_fallback');
    const on = consistentHashing({ hash, routingKeyOverride: true });
    const record = on.selectWorker({ rid: 'conv_t1' }, four).record;
    expect(record).toMatchObject({ source: 'rid', keyHash: keyHash('conv'), branch: 'routing_key_hit' });
    expect(on.selectWorker(key('conv_t1'), four).record.keyHash).toBe(keyHash('conv_t1'));
  });

  it('CH-6: the first implicit header with a usable value, of any length; its hash is not shown', () => {
    const policy = consistentHashing({ hash });
    const of = (headers: Record<string, string | string[]>) => policy.selectWorker({ headers }, four);
    for (let i = 0; i < 8; i++) {
      const owner = select(policy, { routingKey: `s=${i}` });
      expect(select(policy, { headers: { authorization: ' \t', cookie: `s=${i}` } })).toEqual(owner);
      expect(select(policy, { headers: { cookie: ['', `s=${i}`] } })).toEqual(owner);
    }
    expect(of({ 'x-forwarded-for': '10.1.1.1', cookie: 's=1' })).toEqual(of({ 'x-forwarded-for': '10.1.1.1' }));
    const long = of({ authorization: 'Bearer '.repeat(1000) });
    expect(long.record).toMatchObject({ branch: 'routing_key_hit', source: undefined, keyHash: undefined });
  });

  it('CH-7, B67: without a usable key every worker is equally likely', () => {
    const blank = { headers: { 'x-smg-routing-key': ' ' } };
    const long = { headers: { 'x-smg-routing-key': 'x'.repeat(129) } };
    for (const request of [{}, blank, long, { headers: { 'x-smg-routing-key': '\ud800' } }]) {
      expect(winners(request)).toEqual(new Set(['w1', 'w2', 'w3', 'w4']));
      const policy = consistentHashing({ hash, seed: 3 });
      const counts = new Map<string | undefined, number>();
      for (let i = 0; i < 1000; i++) {
        const { worker, branch } = select(policy, request);
        expect(branch).toBe('random_fallback');
        counts.set(worker, (counts.get(worker) ?? 0) + 1);
      }
      for (const { id } of four) expect(Math.abs((counts.get(id) ?? 0) - 250)).toBeLessThan(60);
    }
  });

  it('CH-1, CH-4: nobody to choose from', () => {
    const policy = consistentHashing({ hash });
    const none = { worker: undefined, branch: 'no_healthy_workers' };
    expect(select(policy, key('k'), [])).toEqual(none);
    expect(select(policy, { headers: { 'x-smg-target-worker': '0' } }, [])).toEqual(none);
    const empty = consistentHashing({ hash, ring: { lookup: () => undefined } });
    expect(select(empty, key('k'))).toEqual(none);
  });

  it('CH-10: load plays no part', () => {
    const policy = consistentHashing({ hash });
    const owner = select(policy, key('k')).worker as string;
    const busy = four.map(({ id }) => ({ id, inFlight: id === owner ? 10_000 : 0 }));
    expect(select(policy, key('k'), busy).worker).toBe(owner);
  });

  it('LB-13: explain names the owner, or everybody when chance decides', () => {
    const policy = consistentHashing({ hash });
    const owner = select(policy, key('k')).worker;
    expect(policy.explain(key('k'), four).policy).toEqual({ ring: [{ level: 0, owner }] });
    expect(policy.explain({}, four).policy).toEqual({ tieSet: ['w1', 'w2', 'w3', 'w4'] });
    const implicit = { headers: { authorization: 'Bearer x' } };
    expect(policy.explain(implicit, four).policy).toEqual({
      ring: [{ level: 0, owner: select(policy, implicit).worker }],
    });
    const target = { 'x-smg-target-worker': '1' };
    expect(policy.explain({ headers: target }, four).policy).toEqual({});
    // The key is not what decided.
    expect(policy.explain({ headers: { ...target, 'x-smg-routing-key': 'k' } }, four).policy).toEqual({});
  });

  it('LB-4: a missing hash is a configuration error', () => {
    expect(() => consistentHashing({} as never)).toThrow(
      expect.objectContaining({ field: 'hash', reason: expect.stringContaining('await loadHash()') }),
    );
  });
});
