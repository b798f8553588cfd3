import { describe, expect, it } from 'vitest';
import { cacheAwareTable } from '../../src/options/table.js';
import { resolveOptions } from '../../src/options/validate.js';
import { cacheAware, createCacheAware, type StandaloneCacheAware } from '../../src/policies/cache-aware.js';
import type { LearnedPlacement } from '../../src/policies/policy.js';
import { createRouter } from '../../src/router.js';
import type { Candidate } from '../../src/workers/candidate.js';

const span = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
const idle = (...ids: string[]): Candidate[] => ids.map((id) => ({ id, inFlight: 0 }));
const busy = (id: string, inFlight = 9): Candidate => ({ id, inFlight });

class ManualClock {
  now = 0;
  readonly read = (): number => this.now;
}

function hashed(options: object = {}, clock: ManualClock = new ManualClock()): StandaloneCacheAware {
  return cacheAware({ cacheIndex: 'hash', cacheBoundaries: [16, 32], seed: 1, clock: clock.read, ...options });
}

/** The request is recorded for the worker by offering nobody else. */
const give = (policy: StandaloneCacheAware, tokens: readonly number[], id: string): void => {
  policy.selectWorker({ tokens }, [busy(id, 0)]);
};

describe('hash index', () => {
  it('CA-76: the example, step by step', () => {
    const policy = hashed();
    const fleet = [busy('w'), ...idle('x')];
    give(policy, span(0, 40), 'w');
    expect(policy.selectWorker({ tokens: span(0, 20) }, fleet).record).toMatchObject({
      branch: 'hash_hit',
      level: 16,
      inFlight: 9,
      matchedRatio: undefined,
      threshold: undefined,
    });
    const other = [...span(0, 16), ...span(500, 524)];
    expect(policy.selectWorker({ tokens: other }, fleet).record).toMatchObject({ branch: 'hash_hit', level: 16 });
    expect(policy.selectWorker({ tokens: other }, fleet).record).toMatchObject({ branch: 'hash_hit', level: 32 });
    expect(policy.selectWorker({ tokens: span(0, 40) }, fleet).record).toMatchObject({ branch: 'hash_hit', level: 32 });
  });

  it('CA-71: without tokens and below the first boundary nothing is looked up or recorded', () => {
    const policy = hashed();
    for (const request of [{ text: 'words' }, { tokens: [] }, {}]) {
      expect(policy.selectWorker(request, idle('a')).record).toMatchObject({
        branch: 'expected_wait_fallback',
        level: 0,
      });
    }
    expect(policy.selectWorker({ tokens: span(0, 15) }, idle('a')).record).toMatchObject({
      branch: 'short_request',
      level: 0,
    });
    expect(policy.selectWorker({ tokens: span(0, 16) }, [busy('a'), ...idle('b')]).record).toMatchObject({
      branch: 'expected_wait_fallback',
      inFlight: 0,
    });
  });

  it('CF-32: a head lives for a second at least', () => {
    const field = 'cacheTtlMs';
    expect(() => cacheAware({ cacheTtlMs: 999 })).toThrow(expect.objectContaining({ field }));
    expect(cacheAware({ cacheTtlMs: 1000 }).name).toBe('cache_aware');
  });

  it('CA-72: live to the last millisecond; probing does not prolong, recording does', () => {
    const clock = new ManualClock();
    const policy = hashed({ cacheTtlMs: 1000 }, clock);
    give(policy, span(0, 16), 'a');
    const branchAt = (now: number): string | undefined => {
      clock.now = now;
      const { selection } = policy.explain({ tokens: span(0, 16) }, [busy('a'), ...idle('b')]);
      return selection.record.branch;
    };
    expect(branchAt(900)).toBe('hash_hit');
    expect(branchAt(1000)).toBe('hash_hit');
    expect(branchAt(1001)).toBe('expected_wait_fallback');
    give(policy, span(0, 16), 'a');
    expect(branchAt(2001)).toBe('hash_hit');
    expect(branchAt(2002)).toBe('expected_wait_fallback');
  });

  it('CA-73: a fourth holder takes the place of the stalest', () => {
    const policy = hashed();
    for (const id of ['a', 'b', 'c', 'd']) give(policy, span(0, 16), id);
    const { policy: explained } = policy.explain({ tokens: span(0, 16) }, idle('a', 'b', 'c', 'd'));
    expect(explained.match?.holders).toEqual(['d', 'c', 'b']);
    expect([...(explained.tieSet ?? [])].sort()).toEqual(['b', 'c', 'd']);
  });

  it('CA-74, CA-75: a head whose holders are away or gone passes to the next shallower one', () => {
    const policy = hashed();
    give(policy, [...span(0, 16), ...span(900, 916)], 'shallow');
    give(policy, span(0, 40), 'deep');
    const fleet = [busy('shallow'), ...idle('x')];
    const { record } = policy.explain({ tokens: span(0, 40) }, fleet).selection;
    expect(record).toMatchObject({ branch: 'hash_hit', level: 16, inFlight: 9 });
    policy.forget('shallow');
    policy.forget('deep');
    expect(policy.explain({ tokens: span(0, 40) }, idle('deep', 'shallow')).selection.record.level).toBe(0);
  });

  it('CA-71: a hot holder spills, and who took over is a holder at every boundary', () => {
    const policy = hashed({ balanceAbsThreshold: 5 });
    give(policy, span(0, 40), 'a');
    const { record } = policy.selectWorker({ tokens: span(0, 40) }, [busy('a', 30), busy('b', 0)]);
    expect(record).toMatchObject({ branch: 'hash_spill', level: 32, inFlight: 0 });
    expect(policy.explain({ tokens: span(0, 16) }, idle('a', 'b')).policy.match?.holders).toEqual(['b', 'a']);
  });

  it('CA-71: KV pressure ignores holders and records all the same', () => {
    const policy = hashed({ overloadTokenUsageThreshold: 0.9 });
    give(policy, span(0, 40), 'a');
    const pressed = [
      { id: 'a', inFlight: 0, report: { kvCacheUsage: 0.95 } },
      { id: 'b', inFlight: 0, report: { kvCacheUsage: 0 } },
    ];
    expect(policy.selectWorker({ tokens: span(0, 40) }, pressed).record).toMatchObject({
      branch: 'kv_pressure_expected_wait',
      level: 0,
    });
    expect(policy.explain({ tokens: span(0, 40) }, idle('a', 'b')).policy.match?.holders).toEqual(['b', 'a']);
    expect(policy.selectWorker({ tokens: span(0, 15) }, pressed).record.branch).toBe('short_request');
  });

  it('CA-101: partitions never match each other', () => {
    const policy = hashed();
    policy.selectWorker({ tokens: span(0, 16), namespace: { cacheSalt: 's' } }, idle('a'));
    const levelFor = (namespace: object | undefined): number | undefined =>
      policy.explain({ tokens: span(0, 16), namespace }, idle('a')).selection.record.level;
    expect([levelFor({ cacheSalt: 's' }), levelFor({ cacheSalt: 't' }), levelFor(undefined)]).toEqual([16, 0, 0]);
  });

  it('LB-42: a token that is none is refused by name and leaves nothing behind', () => {
    const policy = hashed();
    const bad = [...span(0, 20), -1, ...span(0, 20)];
    expect(() => policy.selectWorker({ tokens: bad }, idle('a'))).toThrow(/tokens/);
    expect(policy.explain({ tokens: span(0, 16) }, idle('a')).selection.record.level).toBe(0);
  });
});

describe('hash index in a pool', () => {
  const settings = (given: object) =>
    resolveOptions(cacheAwareTable, { cacheIndex: 'hash', cacheBoundaries: [4, 8], ...given });

  it('LB-34: a placement holds the tokens up to the deepest boundary, and another router learns from it', async () => {
    const options = { policy: { name: 'cache_aware', cacheIndex: 'hash', cacheBoundaries: [4, 8] } } as const;
    const [one, two] = [await createRouter({ ...options, seed: 1 }), await createRouter({ ...options, seed: 2 })];
    for (const router of [one, two]) for (const id of ['a', 'b', 'c']) router.addWorker({ id });
    const told: LearnedPlacement[] = [];
    one.on('placement', (placement) => {
      told.push(placement);
      expect(two.applyPlacement(placement)).toBe(true);
      expect(two.applyPlacement(placement)).toBe(false);
    });
    const first = one.selectWorker({ tokens: span(0, 11) });
    expect(told).toMatchObject([{ kind: 'hash', units: span(0, 8), use: 1, model: 'unknown', leg: 'single' }]);
    const second = two.selectWorker({ tokens: span(0, 9) });
    expect(second.record).toMatchObject({ branch: 'hash_hit', level: 8 });
    expect(first.ok && second.ok && first.worker.id === second.worker.id).toBe(true);
  });

  it('CA-72, OB-24: the sweep of the interval frees expired heads and tells how many are left', () => {
    const told: unknown[] = [];
    const policy = createCacheAware(settings({ cacheTtlMs: 1000, evictionIntervalMs: 2000 }), {
      events: { treeEvicted: (evicted) => told.push(evicted) },
    });
    const placed = { kind: 'hash', worker: 'a', use: 1, namespace: undefined } as const;
    policy.applyPlacement?.({ ...placed, units: span(0, 8) }, 0);
    policy.applyPlacement?.({ ...placed, units: span(50, 54) }, 1600);
    for (const now of [0, 2000]) expect(policy.maintain?.(now, { spent: () => false })).toBe(false);
    expect(told).toEqual([{ tree: 'hash', evictedUnits: 2, size: 1, tenants: 0 }]);
  });

  it('LB-33: pieces carry ages, not times', () => {
    const policy = createCacheAware(settings({ cacheTtlMs: 1000 }));
    policy.applyPlacement?.({ kind: 'hash', units: span(0, 4), worker: 'a', use: 3, namespace: undefined }, 500);
    const pieces = structuredClone([...policy.snapshotPieces(700)]);
    expect(pieces).toMatchObject([{ kind: 'hash' }]);
    const copy = createCacheAware(settings({ cacheTtlMs: 1000 }));
    expect(copy.restorePiece(pieces[0] as never, () => true, 10_000)).toEqual({ restored: 1, skipped: 0 });
    expect([...copy.snapshotPieces(10_800)]).toHaveLength(1);
    expect([...copy.snapshotPieces(10_801)]).toHaveLength(0);
  });

  it('LB-35: an index that is switched to and back keeps what each has learned', () => {
    const policy = createCacheAware(settings({}));
    policy.applyPlacement?.({ kind: 'hash', units: span(0, 4), worker: 'a', use: 1, namespace: undefined }, 0);
    policy.configure?.(settings({ cacheIndex: 'tree' }));
    policy.applyPlacement?.({ kind: 'text', units: 'text', worker: 'a', use: 1, namespace: undefined }, 0);
    policy.configure?.(settings({}));
    expect([...policy.snapshotPieces(0)].map(({ kind }) => kind)).toEqual(['text', 'hash']);
  });
});
