import { beforeAll, describe, expect, it } from 'vitest';
import { RoutingConfigError } from '../../src/errors.js';
import type { PrefixHashOptions } from '../../src/options/policy-options.js';
import { prefixHash, prefixHeads } from '../../src/policies/prefix-hash.js';
import type { RouteRequest } from '../../src/request.js';
import { type Hash64, loadHash } from '../../src/runtime/hash.js';

let hash: Hash64;
beforeAll(async () => {
  hash = await loadHash();
});

function heads(request: RouteRequest, options: PrefixHashOptions = {}) {
  return prefixHeads(request, options, hash);
}

const levels = (...args: Parameters<typeof heads>) => heads(...args).map(({ level }) => level);
const hashes = (...args: Parameters<typeof heads>) => heads(...args).map((head) => head.hash);
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
const littleEndian = (ids: number[]) => new Uint8Array(Uint32Array.from(ids).buffer);

const loads = (...inFlight: number[]) => inFlight.map((count, i) => ({ id: `w${i + 1}`, inFlight: count }));

/** One decision with a ring that says which worker owns the head of each level. */
function decide(
  options: PrefixHashOptions,
  owners: Record<number, string>,
  request: RouteRequest,
  candidates = loads(0, 0, 0),
) {
  const ring = {
    lookup(position: bigint, isEligible: (id: string) => boolean) {
      const head = heads(request, options).find((known) => known.hash === position);
      const owner = head && owners[head.level];
      return owner !== undefined && isEligible(owner) ? owner : undefined;
    },
  };
  const selection = prefixHash({ ...options, hash, ring }).selectWorker(request, candidates);
  const { branch, level } = selection.record;
  return { worker: selection.ok ? selection.worker.id : undefined, branch, level };
}

describe('prefixHeads', () => {
  it('PH-1: routing key, else tokens, else text, else nothing', () => {
    const all = { routingKey: 'key', tokens: [1], text: 'text' };
    expect(heads(all)).toEqual([{ level: 0, hash: hash('key') }]);
    const header = { headers: { 'X-SMG-Routing-Key': ' conv_t1 ' }, tokens: [1] };
    expect(heads(header)).toEqual([{ level: 0, hash: hash('conv_t1') }]);
    expect(heads({ tokens: [1], text: 'text' })).toEqual([{ level: 0, hash: hash(littleEndian([1])) }]);
    expect(heads({ tokens: [], text: 'text' })).toEqual([{ level: 0, hash: hash('text') }]);
    expect(heads({ tokens: [], text: '' })).toEqual([]);
    expect(heads({ rid: 'conv', headers: { 'x-smg-routing-key': 'x'.repeat(129) } })).toEqual([]);
  });

  it('PH-1: the configured headers replace the standard one', () => {
    const request = { headers: { 'x-smg-routing-key': 'a', 'x-session': 'b' } };
    expect(hashes(request, { routingKeyHeaders: ['x-session'] })).toEqual([hash('b')]);
  });

  it('PH-12: hint tokens are hashed when the body was not read', () => {
    expect(hashes({ headers: { 'x-smg-routing-tokens': '5,6' } })).toEqual([hash(littleEndian([5, 6]))]);
  });

  it('PH-2: the first prefixTokenCount tokens, or four times as many characters', () => {
    const options = { prefixTokenCount: 3 };
    expect(hashes({ tokens: [1, 2, 3, 4] }, options)).toEqual([hash(littleEndian([1, 2, 3]))]);
    expect(hashes({ tokens: [1, 2, 3] }, options)).toEqual(hashes({ tokens: [1, 2, 3, 4] }, options));
    expect(hashes({ text: 'abcdefghijkl and more' }, options)).toEqual([hash('abcdefghijkl')]);
    expect(hashes({ text: 'abcdefghijkl' }, options)).toEqual([hash('abcdefghijkl')]);
    expect(hashes({ text: 'abcdefghijk' }, options)).toEqual([hash('abcdefghijk')]);
  });

  it('PH-2: characters are code points; a lone surrogate is one', () => {
    const options = { prefixTokenCount: 1 };
    expect(hashes({ text: '🌊🌊🌊🌊🌊' }, options)).toEqual([hash('🌊🌊🌊🌊')]);
    expect(hashes({ text: 'a🌊b🌊c' }, options)).toEqual([hash('a🌊b🌊')]);
    expect(hashes({ text: 'abc🌊d' }, options)).toEqual([hash('abc🌊')]);
    expect(hashes({ text: '🌊🌊🌊' }, options)).toEqual([hash('🌊🌊🌊')]);
    expect(hashes({ text: '\ud83cab🌊c' }, options)).toEqual([hash('\ud83cab🌊')]);
    expect(hashes({ text: 'abc\ud83c' }, options)).toEqual([hash('abc\ud83c')]);
  });

  it('PH-3: a head at every boundary reached, deepest first', () => {
    const options = { cacheBoundaries: [2, 4, 8] };
    const tokens = range(0, 7);
    expect(heads({ tokens }, options)).toEqual([
      { level: 4, hash: hash(littleEndian([0, 1, 2, 3])) },
      { level: 2, hash: hash(littleEndian([0, 1])) },
    ]);
    const text = 'abcdefghijklmnopqrstuvwxyzabcdefg';
    expect(heads({ text }, options)).toEqual([
      { level: 8, hash: hash(text.slice(0, 32)) },
      { level: 4, hash: hash(text.slice(0, 16)) },
      { level: 2, hash: hash(text.slice(0, 8)) },
    ]);
    expect(heads({ tokens: range(0, 9) }, options)).toEqual(
      [8, 4, 2].map((level) => ({ level, hash: hash(littleEndian(range(0, level))) })),
    );
    expect(levels({ tokens: range(0, 8) }, options)).toEqual([8, 4, 2]);
    expect(levels({ text: 'x'.repeat(31) }, options)).toEqual([4, 2]);
    expect(levels({ text: '🌊'.repeat(8) }, options)).toEqual([2]);
    expect(levels({ text: '🌊'.repeat(7) }, options)).toEqual([0]);
  });

  it('PH-4: a request shorter than the first boundary keeps the fixed-depth head', () => {
    const options = { prefixTokenCount: 3, cacheBoundaries: [8, 16] };
    expect(heads({ tokens: range(0, 7) }, options)).toEqual([{ level: 0, hash: hash(littleEndian([0, 1, 2])) }]);
    expect(heads({ text: 'abcdefghijklmnop' }, options)).toEqual([{ level: 0, hash: hash('abcdefghijkl') }]);
  });

  it('PH-11: a Uint32Array, a view into one and an array of numbers are hashed alike, whatever was hashed before', () => {
    const ids = [0, 1, 0xffffffff, 0x80000000, 7];
    const expected = [hash(littleEndian(ids))];
    expect(hashes({ tokens: ids })).toEqual(expected);
    expect(hashes({ tokens: Uint32Array.from(ids) })).toEqual(expected);
    expect(hashes({ tokens: Uint32Array.from([9, ...ids, 9]).subarray(1, 6) })).toEqual(expected);
    const asked: bigint[] = [];
    const ring = { lookup: (position: bigint) => void asked.push(position) };
    const policy = prefixHash({ hash, ring });
    for (const count of [1, 2, 5, 3]) policy.selectWorker({ tokens: ids.slice(0, count) }, loads(0));
    expect(asked).toEqual([1, 2, 5, 3].map((count) => hash(littleEndian(ids.slice(0, count)))));
  });

  it('LB-4, LB-40: a hash that is no function is a configuration error', () => {
    expect(() => prefixHeads({ text: 'x' }, {}, 'xxh64' as never)).toThrow(RoutingConfigError);
    expect(() => prefixHeads({ text: 'x' }, {}, 'xxh64' as never)).toThrow(
      expect.objectContaining({ field: 'hash', value: 'xxh64', reason: 'must be a function' }),
    );
  });

  it('B12: short prompts that differ have different heads, and spread', () => {
    expect(hashes({ text: 'hi A' })).not.toEqual(hashes({ text: 'hi B' }));
    const policy = prefixHash({ hash });
    const counts = new Map<string, number>();
    for (let i = 0; i < 1000; i++) {
      const selection = policy.selectWorker({ text: `p${10_000 + i}` }, loads(0, 0, 0, 0));
      if (selection.ok) counts.set(selection.worker.id, (counts.get(selection.worker.id) ?? 0) + 1);
    }
    expect(Math.max(...counts.values())).toBeLessThanOrEqual(320);
    expect([...counts.values()].reduce((a, b) => a + b)).toBe(1000);
  });

  it.each([-1, 0.5, Number.NaN, 2 ** 32, '7', null])(
    'LB-42: the token %j is refused as far as tokens are read',
    (bad) => {
      const options = { prefixTokenCount: 2 };
      expect(() => heads({ tokens: [1, bad as number] }, options)).toThrow(
        /^tokens: expected integers from 0 to 4294967295, got /,
      );
      expect(() => heads({ tokens: [1, 2, bad as number] }, options)).not.toThrow();
      const policy = prefixHash({ hash, ...options });
      expect(() => policy.selectWorker({ tokens: [bad as number] }, loads(0))).toThrow(TypeError);
    },
  );
});

describe('prefix_hash', () => {
  it('PH-5: the owner of the deepest head that passes the load check', () => {
    const options = { cacheBoundaries: [16, 64] };
    const owners = { 16: 'w2', 64: 'w1' };
    const tokens = range(0, 70);
    const hit = { branch: 'ring_hit' };
    expect(decide(options, owners, { tokens })).toEqual({ ...hit, worker: 'w1', level: 64 });
    expect(decide(options, owners, { tokens: range(0, 63) })).toEqual({ ...hit, worker: 'w2', level: 16 });
    expect(decide(options, owners, { tokens }, loads(50, 0, 0))).toEqual({ ...hit, worker: 'w2', level: 16 });
  });

  it.each([
    { factor: 1.25, abs: 0, counts: [30, 23, 23, 24], hot: false },
    { factor: 1.25, abs: 0, counts: [35, 21, 22, 22], hot: true },
    { factor: 1.25, abs: 10, counts: [13, 9, 9, 9], hot: false },
    { factor: 1.25, abs: 10, counts: [20, 7, 7, 6], hot: false },
    { factor: 1.25, abs: 10, counts: [21, 7, 6, 6], hot: true },
    { factor: 1.25, abs: 10, counts: [240, 187, 187, 186], hot: false },
    { factor: 1.25, abs: 10, counts: [260, 180, 180, 180], hot: true },
    { factor: 1, abs: 0, counts: [0, 0, 0, 0], hot: false },
    { factor: 1, abs: 0, counts: [1, 0, 0, 0], hot: true },
  ])('PH-8, PH-9, B63: $counts with factor $factor and abs $abs', ({ factor, abs, counts, hot }) => {
    const options = { loadFactor: factor, balanceAbsThreshold: abs };
    const { worker, branch } = decide(options, { 0: 'w1' }, { tokens: [1] }, loads(...counts));
    expect(branch).toBe(hot ? 'load_balance_walk' : 'ring_hit');
    expect(worker === 'w1').toBe(!hot);
  });

  it('PH-6, PH-10: all owners overloaded: the least loaded, the first of equals, at level 0', () => {
    const options = { loadFactor: 1, balanceAbsThreshold: 0, cacheBoundaries: [16, 32] };
    const request = { tokens: range(0, 32) };
    const found = decide(options, { 16: 'w2', 32: 'w1' }, request, loads(4, 4, 1, 0, 0));
    expect(found).toEqual({ worker: 'w4', branch: 'load_balance_walk', level: 0 });
  });

  it('PH-6: one overloaded owner tells that the ring knows the request, whatever the shallower heads find', () => {
    const options = { cacheBoundaries: [16, 32] };
    const request = { tokens: range(0, 32) };
    const walk = { worker: 'w2', branch: 'load_balance_walk', level: 0 };
    expect(decide(options, { 32: 'w1' }, request, loads(50, 0, 0))).toEqual(walk);
    expect(decide(options, { 16: 'w1' }, request, loads(50, 0, 0))).toEqual(walk);
  });

  it('PH-1, B64: nothing to hash: the least loaded, never nobody', () => {
    const found = { worker: 'w2', branch: 'no_routing_key', level: 0 };
    expect(decide({}, {}, {}, loads(2, 1, 1))).toEqual(found);
  });

  it('PH-7: no owner on the ring: the least loaded', () => {
    const found = { worker: 'w2', branch: 'fallback_least_load', level: 0 };
    expect(decide({}, {}, { tokens: [1] }, loads(4, 2, 2))).toEqual(found);
  });

  it('PH-7: nobody to choose from', () => {
    expect(decide({}, { 0: 'w1' }, { tokens: [1] }, [])).toEqual({
      worker: undefined,
      branch: 'no_healthy_workers',
      level: 0,
    });
  });

  it('LB-14a: means and eligibility see only what is not excluded', () => {
    const options = { loadFactor: 1.25, balanceAbsThreshold: 0 };
    const request = { tokens: [1] };
    expect(decide(options, { 0: 'w1' }, request, loads(10, 0, 90)).branch).toBe('ring_hit');
    const excluding = decide(options, { 0: 'w1' }, { ...request, exclude: ['w3'] }, loads(10, 0, 90));
    expect(excluding).toEqual({ worker: 'w2', branch: 'load_balance_walk', level: 0 });
  });

  it('PH-5, B64: the same head finds the same worker, on its own ring, with or without other workers', () => {
    const policy = prefixHash({ hash });
    const text = 'summarize the quarterly earnings report';
    const pick = (candidates = loads(0, 0, 0, 0)) => {
      const selection = policy.selectWorker({ text }, candidates);
      return selection.ok ? selection.worker.id : undefined;
    };
    const owner = pick();
    for (let i = 0; i < 10; i++) expect(pick()).toBe(owner);
    const rest = loads(0, 0, 0, 0).filter(({ id }) => id !== owner);
    expect(pick(rest)).not.toBe(owner);
    expect(pick()).toBe(owner);
  });

  it('LB-13: explain shows the owner of each head and the terms of its load check', () => {
    const policy = prefixHash({ hash, cacheBoundaries: [2, 4], balanceAbsThreshold: 1, loadFactor: 1.5 });
    const { policy: details } = policy.explain({ tokens: range(0, 5) }, loads(3, 0));
    expect(details.ring?.map(({ level }) => level)).toEqual([4, 2]);
    const owners = new Set(details.ring?.map(({ owner }) => owner));
    expect(new Set(details.gate?.map(({ worker }) => worker))).toEqual(owners);
    const w1 = prefixHash({ hash, ring: { lookup: () => 'w1' }, balanceAbsThreshold: 1, loadFactor: 1.5 });
    expect(w1.explain({ text: 'x' }, loads(3, 0)).policy).toEqual({
      ring: [{ level: 0, owner: 'w1' }],
      gate: [{ worker: 'w1', inFlight: 3, mean: 2, relativeMargin: 0, absoluteMargin: 0, hot: false }],
    });
    expect(w1.explain({}, []).policy).toEqual({});
    const nobody = prefixHash({ hash, ring: { lookup: () => undefined } });
    expect(nobody.explain({ text: 'x' }, loads(3, 0)).policy).toEqual({
      ring: [{ level: 0, owner: undefined }],
      gate: [],
    });
  });

  it('LB-42: a 5 MB prompt costs no more than its head', () => {
    const head = 'a'.repeat(1024);
    expect(hashes({ text: head + 'b'.repeat(5_000_000) })).toEqual([hash(head)]);
  });
});
