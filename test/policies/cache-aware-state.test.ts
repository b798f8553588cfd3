/** What `cache_aware` learns and how it is kept, told, shared and forgotten: alone, in a pool and on a router. */
import { describe, expect, it } from 'vitest';
import { cacheAwareTable } from '../../src/options/table.js';
import { resolveOptions } from '../../src/options/validate.js';
import { cacheAware, createCacheAware } from '../../src/policies/cache-aware.js';
import type { LearnedPlacement } from '../../src/policies/policy.js';
import { RequestView } from '../../src/request.js';
import { createRouter } from '../../src/router.js';
import { seededRandom } from '../../src/runtime/random.js';
import { CandidateSet } from '../../src/workers/candidate-set.js';
import { idle, selected } from './holders.js';

describe('life of the policy', () => {
  it('CA-44, B04: a forgotten worker is no holder any more', () => {
    const policy = cacheAware({ seed: 1 });
    selected(policy, 'hello world', idle('a'));
    policy.forget('a');
    const { record, ok } = policy.selectWorker({ text: 'hello world' }, idle('a', 'b'));
    expect(ok).toBe(true);
    expect(record.matchedRatio).toBe(0);
  });

  it('CA-42, LB-32: the budget holds at insert, and what is older goes first', () => {
    const policy = cacheAware({ maxTreeSize: 20, seed: 1 });
    selected(policy, 'a'.repeat(15), idle('w'));
    selected(policy, 'b'.repeat(15), idle('w'));
    expect(policy.explain({ text: 'b'.repeat(15) }, idle('w')).policy.match?.ratio).toBe(1);
    expect(policy.explain({ text: 'a'.repeat(15) }, idle('w')).policy.match?.ratio).toBeLessThan(1);
  });

  it('LB-34: placements arrive in any order, any number of times, with one result', () => {
    const deltas = ['a', 'b', 'c'].map(
      (worker, i): LearnedPlacement => ({ kind: 'text', units: 'shared', worker, use: 5 - i, namespace: undefined }),
    );
    const holders = (order: readonly number[]): unknown => {
      const policy = cacheAware({ seed: 1 });
      for (const i of order) policy.applyPlacement(deltas[i] as LearnedPlacement);
      return policy.explain({ text: 'shared' }, idle('a', 'b', 'c')).policy.match?.holders;
    };
    expect(holders([0, 1, 2])).toEqual(['a', 'b', 'c']);
    expect(holders([2, 1, 0, 1, 2, 0])).toEqual(['a', 'b', 'c']);
  });

  it('LB-42: a malformed placement is refused by name, before anything changed', () => {
    const policy = cacheAware({ seed: 1 });
    const sound = { kind: 'text', units: 'x', worker: 'a', use: 1, namespace: undefined };
    for (const [field, value] of [
      ['kind', 'video'],
      ['units', 7],
      ['worker', ''],
      ['use', 0],
      ['use', 1.5],
      ['namespace', 3],
    ] as const) {
      expect(() => policy.applyPlacement({ ...sound, [field]: value } as never)).toThrow(
        expect.objectContaining({ name: 'TypeError', message: expect.stringContaining(field) as string }),
      );
    }
    expect(policy.explain({ text: 'x' }, idle('a')).policy.match?.holders).toEqual([]);
    expect(policy.applyPlacement({ ...sound, kind: 'hash', units: [1] } as never)).toBe(false);
  });

  it('CF-1: invalid options name their field', () => {
    expect(() => cacheAware({ cacheThreshold: 1.5 })).toThrow(/cacheThreshold/);
    expect(() => cacheAware({ cacheIndex: 'hash' })).toThrow(/cacheBoundaries/);
    expect(() => cacheAware({ cacheTreshold: 1 } as never)).toThrow(/cacheThreshold/);
  });
});

describe('a pool', () => {
  const settings = (given: object) => resolveOptions(cacheAwareTable, given);
  const ctxOf = (set: CandidateSet, now = 0) => ({
    now,
    random: seededRandom(1),
    model: 'm',
    leg: 'single' as const,
    ring: undefined,
    available: set,
  });
  const set = new CandidateSet(
    ['a', 'b'].map((id) => ({
      id,
      inFlight: id === 'a' ? 3 : 0,
      activeKeys: 0,
      load: undefined,
      creditTokens: 0,
      creditRequests: 0,
      keyInFlight: () => 0,
    })),
  );
  const never = { spent: () => false };

  it('LB-35: other options keep what was learned; another page size starts the token tree anew', () => {
    const policy = createCacheAware(settings({ blockSize: 4 }));
    const tokens = Array.from({ length: 16 }, (_, i) => i);
    for (const request of [{ text: 'learned' }, { tokens }]) {
      const view = new RequestView(request);
      policy.record?.(view, policy.decide(view, set, ctxOf(set)), ctxOf(set));
    }
    const ratioOf = (request: object): number | undefined =>
      policy.decide(new RequestView(request), set, ctxOf(set)).matchedRatio;
    policy.configure?.(settings({ blockSize: 4, cacheThreshold: 0.9 }));
    expect(ratioOf({ text: 'learned' })).toBe(1);
    expect(ratioOf({ tokens })).toBe(1);
    policy.configure?.(settings({ blockSize: 8 }));
    expect(ratioOf({ text: 'learned' })).toBe(1);
    expect(ratioOf({ tokens })).toBe(0);
  });

  it('LB-34, LB-50: learned placements are told with their use; nothing is built while nobody listens', () => {
    const told: LearnedPlacement[] = [];
    let listening = false;
    const policy = createCacheAware(settings({ blockSize: 4 }), {
      events: {
        get placement() {
          return listening ? (placement: LearnedPlacement) => told.push(placement) : undefined;
        },
      },
    });
    const record = (request: object): void => {
      const view = new RequestView(request);
      policy.record?.(view, policy.decide(view, set, ctxOf(set)), ctxOf(set));
    };
    record({ text: 'unheard' });
    listening = true;
    record({ text: 'heard', namespace: { cacheSalt: 's' } });
    record({ tokens: new Uint32Array([1, 2, 3, 4, 5]) });
    record({ text: '' });
    record({ tokens: [1, 2, 3] });
    expect(told).toEqual([
      { kind: 'text', namespace: expect.stringMatching(/^[0-9a-f]{16}$/), units: 'heard', worker: 'b', use: 2 },
      { kind: 'tokens', namespace: undefined, units: [1, 2, 3, 4, 5], worker: 'b', use: 1 },
    ]);
    expect(structuredClone(told)).toEqual(told);
  });

  it('CA-42, OB-22: sizes are told after each pass of the interval; an interval of 0 has none', () => {
    const told: unknown[] = [];
    const events = { treeEvicted: (evicted: unknown) => told.push(evicted) };
    const policy = createCacheAware(settings({ evictionIntervalMs: 100 }), { events });
    policy.workerAdded?.('a', 0);
    policy.workerAdded?.('b', 0);
    const view = new RequestView({ text: 'abcde' });
    policy.record?.(view, policy.decide(view, set, ctxOf(set)), ctxOf(set));
    for (const now of [0, 50, 100, 150, 199, 200]) expect(policy.maintain?.(now, never)).toBe(false);
    const size = { tree: 'string', evictedUnits: 0, size: 5, tenants: 2 };
    expect(told).toEqual([size, size]);
    policy.configure?.(settings({ evictionIntervalMs: 0 }));
    policy.maintain?.(10_000, never);
    expect(told).toHaveLength(2);
  });

  it('LB-33: pieces rebuild another instance; unknown workers are skipped and counted', () => {
    const policy = createCacheAware(settings({ blockSize: 2 }));
    const fill = (request: object): void => {
      const view = new RequestView(request);
      policy.record?.(view, policy.decide(view, set, ctxOf(set)), ctxOf(set));
    };
    fill({ text: 'remembered' });
    fill({ tokens: [1, 2, 3, 4] });
    policy.applyPlacement?.({ kind: 'text', units: 'other', worker: 'stranger', use: 9, namespace: 'n' }, 0);
    const pieces = structuredClone([...policy.snapshotPieces(0)]);
    expect(pieces.map(({ kind }) => kind)).toEqual(['text', 'tokens']);
    const copy = createCacheAware(settings({ blockSize: 2 }));
    const done = pieces.map((piece) => copy.restorePiece(piece, (id) => id !== 'stranger', 0));
    expect(done).toEqual([
      { restored: 1, skipped: 1 },
      { restored: 1, skipped: 0 },
    ]);
    const decided = copy.decide(new RequestView({ text: 'remembered' }), set, ctxOf(set));
    expect(decided).toMatchObject({ branch: 'tree_match', matchedRatio: 1 });
    expect(copy.restorePiece({ kind: 'hash', data: {} }, () => true, 0)).toEqual({ restored: 0, skipped: 1 });
  });
});

describe('on a router', () => {
  it('LB-34: two routers that exchange placements agree, and nothing echoes', async () => {
    const [one, two] = [await createRouter({ seed: 1 }), await createRouter({ seed: 2 })];
    const echoes: unknown[] = [];
    for (const router of [one, two]) for (const id of ['a', 'b', 'c', 'd']) router.addWorker({ id });
    two.on('placement', (placement) => echoes.push(placement));
    one.on('placement', (placement) => expect(two.applyPlacement(structuredClone(placement))).toBe(true));
    const first = one.selectWorker({ text: 'a shared conversation' });
    const second = two.selectWorker({ text: 'a shared conversation and more' });
    expect(first.ok && second.ok && second.worker.id === first.worker.id).toBe(true);
    expect(second.record).toMatchObject({ branch: 'tree_match', matchedRatio: 21 / 30 });
    expect(echoes).toHaveLength(1);
  });

  it('LB-42: a bad token is refused before anything is recorded, pinned or credited, under KV pressure too', async () => {
    for (const kvCacheUsage of [0.1, 0.99]) {
      const policy = { name: 'cache_aware', overloadTokenUsageThreshold: 0.9, blockSize: 4 } as const;
      const router = await createRouter({ policy, routingKeyOverride: true, seed: 1 });
      router.addWorker({ id: 'a' });
      router.reportLoad('a', { kvCacheUsage });
      const request = { tokens: [1, 2, 3, 4, 5, 6, 7, 8.5], rid: 'conversation' };
      expect(() => router.selectWorker(request)).toThrow(TypeError);
      expect(router.worker('a')).toMatchObject({ creditTokens: 0, creditRequests: 0, selections: 0 });
      expect(router.pinCount).toBe(0);
      expect(router.snapshot().pieces).toEqual([]);
    }
  });

  it('CA-5, EW-17: one selection and one credit a request, also on a hit', async () => {
    const router = await createRouter({ seed: 1 });
    router.addWorker({ id: 'a' });
    const tokens = Array.from({ length: 40 }, (_, i) => i);
    router.selectWorker({ tokens });
    router.selectWorker({ tokens });
    expect(router.worker('a')).toMatchObject({ creditTokens: 80, creditRequests: 2, selections: 2 });
  });
});
