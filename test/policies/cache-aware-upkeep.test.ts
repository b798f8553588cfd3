/** Budgets, sweeps and what `cache_aware` tells of them; what is recorded where, and what marks KV blocks as used. */
import { describe, expect, it } from 'vitest';
import { cacheAwareTable } from '../../src/options/table.js';
import { resolveOptions } from '../../src/options/validate.js';
import { cacheAware, createCacheAware } from '../../src/policies/cache-aware.js';
import type { MaintenanceBudget } from '../../src/runtime/maintenance-budget.js';
import { decideOn, signalsOf } from './core-context.js';
import { idle } from './holders.js';

const span = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
const unlimited: MaintenanceBudget = { spent: () => false };
const used: MaintenanceBudget = { spent: () => true };
const settings = (given: object = {}) => resolveOptions(cacheAwareTable, { evictionIntervalMs: 100, ...given });

/** A policy of a pool with two workers, and what it tells of evictions. */
function pooled(given: object = {}) {
  const told: unknown[] = [];
  const policy = createCacheAware(settings({ blockSize: 4, ...given }), {
    events: { treeEvicted: (evicted) => told.push(evicted) },
  });
  for (const id of ['a', 'b']) policy.workerAdded?.(id, 0);
  return { policy, told, given: { blockSize: 4, ...given } };
}

describe('budgets', () => {
  it('CA-42, OB-22, LB-35: a lower budget is reached by upkeep, and both trees tell what they lost', () => {
    const { policy, told, given } = pooled({ maxTreeSize: 1000 });
    for (let i = 0; i < 8; i++) {
      decideOn(policy, { text: `${i} says something of its own` }, signalsOf('a'));
      decideOn(policy, { tokens: span(100 * i, 100 * i + 24) }, signalsOf('b'));
    }
    policy.configure?.(settings({ ...given, maxTreeSize: 60 }));
    expect(policy.maintain?.(0, unlimited)).toBe(false);
    expect(told).toEqual([]);
    expect(policy.maintain?.(100, unlimited)).toBe(false);
    const [text, tokens] = told as { tree: string; evictedUnits: number; size: number; tenants: number }[];
    expect(text).toMatchObject({ tree: 'string', tenants: 2 });
    expect(tokens).toMatchObject({ tree: 'token', tenants: 1 });
    for (const [tree, recorded] of [
      [text, 8 * 27],
      [tokens, 8 * 24],
    ] as const) {
      expect(tree?.size).toBeGreaterThan(0);
      expect(tree?.size).toBeLessThanOrEqual(60);
      expect((tree?.evictedUnits ?? 0) + (tree?.size ?? 0)).toBe(recorded);
    }
    // What was told once is not told again.
    policy.maintain?.(200, unlimited);
    expect(told.slice(2)).toMatchObject([{ evictedUnits: 0 }, { evictedUnits: 0 }]);
  });

  it.each([
    ['text', { text: true }],
    ['tokens', { tokens: true }],
  ])('LB-5: upkeep says that work is left while a tree of %s is over its budget', (_, kinds: object) => {
    const { policy, given } = pooled({ maxTreeSize: 1_000_000 });
    for (let i = 0; i < 2000; i++) {
      const request = 'text' in kinds ? { text: `${i} says something` } : { tokens: span(100 * i, 100 * i + 8) };
      decideOn(policy, request, signalsOf('a'));
    }
    policy.configure?.(settings({ ...given, maxTreeSize: 60 }));
    expect(policy.maintain?.(0, used)).toBe(true);
    let calls = 1;
    while (policy.maintain?.(0, used) === true) calls += 1;
    expect(calls).toBeGreaterThan(1);
    expect(policy.maintain?.(0, unlimited)).toBe(false);
  });

  it('OB-22, LB-35: a token tree that another page size makes useless is told as evicted', () => {
    const { policy, told, given } = pooled();
    decideOn(policy, { tokens: span(0, 24) }, signalsOf('a'));
    policy.configure?.(settings({ ...given, blockSize: 8 }));
    expect(told).toEqual([{ tree: 'token', evictedUnits: 24, size: 0, tenants: 0 }]);
    policy.configure?.(settings({ ...given, blockSize: 16 }));
    expect(told).toHaveLength(1);
  });

  it('CA-72, LB-5, LB-35: heads expire by the time to live that was set last, in steps', () => {
    const { policy, told, given } = pooled({ cacheIndex: 'hash', cacheBoundaries: [4], cacheTtlMs: 60_000 });
    for (let i = 0; i < 2000; i++) decideOn(policy, { tokens: span(10 * i, 10 * i + 4) }, signalsOf('a'));
    policy.configure?.(settings({ ...given, cacheTtlMs: 1000 }));
    expect(policy.maintain?.(0, unlimited)).toBe(false);
    expect(policy.maintain?.(2000, used)).toBe(true);
    expect(told).toEqual([]);
    expect(policy.maintain?.(2000, unlimited)).toBe(false);
    expect(told).toEqual([{ tree: 'hash', evictedUnits: 2000, size: 0, tenants: 0 }]);
  });

  it('LB-50: a pass that nobody listens to is a pass', () => {
    for (const given of [{}, { cacheIndex: 'hash', cacheBoundaries: [4] }]) {
      const policy = createCacheAware(settings(given));
      for (const request of [{ text: 'words' }, { tokens: span(0, 1024) }]) decideOn(policy, request, signalsOf('a'));
      expect(policy.maintain?.(0, unlimited)).toBe(false);
      expect(policy.maintain?.(100, unlimited)).toBe(false);
    }
  });
});

describe('recording', () => {
  const ratioOf = (policy: ReturnType<typeof cacheAware>, request: object): number | undefined =>
    policy.explain(request, idle('a')).policy.match?.ratio;

  it('LR-26: the policy reads text and reports', () => {
    expect(createCacheAware(settings()).needs).toEqual({ text: true, reports: true });
  });

  it('CA-38, LB-33: a request without a prompt leaves nothing behind', () => {
    const { policy } = pooled();
    decideOn(policy, {}, signalsOf('a'));
    expect([...policy.snapshotPieces(0)]).toEqual([]);
  });

  it('CA-85: text is recorded also while KV events serve the token requests', () => {
    const policy = cacheAware({ seed: 1 });
    const stored = { type: 'stored', hashes: [1], tokens: span(0, 4), blockSize: 4 } as const;
    policy.kvEvents.applyBatch('a', { sequence: 1, events: [stored] });
    policy.selectWorker({ text: 'some words' }, idle('a'));
    expect(ratioOf(policy, { text: 'some words' })).toBe(1);
  });

  it('CA-96: a block that decisions read lives on, one that only explain read does not', () => {
    let now = 0;
    const policy = cacheAware({ seed: 1, clock: () => now, kvIndexerTtlMs: 20_000 });
    const stored = (hash: number, from: number) =>
      ({ type: 'stored', hashes: [hash], tokens: span(from, from + 4), blockSize: 4 }) as const;
    policy.kvEvents.applyBatch('a', { sequence: 1, events: [stored(1, 0), stored(2, 50)] });
    now = 15_000;
    policy.selectWorker({ tokens: span(0, 4) }, idle('a'));
    expect(ratioOf(policy, { tokens: span(50, 54) })).toBe(1);
    now = 31_000;
    policy.selectWorker({ text: 'time goes on' }, idle('a'));
    expect([ratioOf(policy, { tokens: span(0, 4) }), ratioOf(policy, { tokens: span(50, 54) })]).toEqual([1, 0]);
  });

  it('CA-2, CA-101: legs and salts of a policy used alone are partitions of their own', () => {
    const policy = cacheAware({ seed: 1 });
    policy.selectWorker({ text: 'one' }, idle('a'));
    policy.selectWorker({ text: 'two', model: 'm', namespace: { cacheSalt: 's' } }, idle('a'));
    expect(ratioOf(policy, { text: 'one' })).toBe(1);
    expect(ratioOf(policy, { text: 'one', leg: 'decode' })).toBe(0);
    expect(ratioOf(policy, { text: 'two', model: 'm', namespace: { cacheSalt: 's' } })).toBe(1);
    expect(ratioOf(policy, { text: 'two', model: 'm', namespace: { cacheSalt: 't' } })).toBe(0);
    expect(ratioOf(policy, { text: 'two', model: 'm' })).toBe(0);
  });
});

describe('what other instances tell', () => {
  const sound = { kind: 'text', units: 'x', worker: 'a', use: 1, namespace: undefined } as const;

  it.each([
    ['kind', 'video', 'text, tokens or hash'],
    ['units', 7, 'a string'],
    ['worker', '', 'a worker id'],
    ['worker', 7, 'a worker id'],
    ['namespace', 3, 'a string'],
  ])('LB-42: a %s of %j is refused by name, with what is expected', (field, value, expected) => {
    const { policy } = pooled();
    const placement = { ...sound, [field]: value } as never;
    expect(() => policy.applyPlacement?.(placement, 0)).toThrow(`${field}: expected ${expected}`);
  });

  it('LB-42: token ids are expected in an array', () => {
    const { policy } = pooled();
    const placement = { ...sound, kind: 'tokens' } as never;
    expect(() => policy.applyPlacement?.(placement, 0)).toThrow('units: expected an array of token ids');
  });

  it('B09: a placement or a piece for an index that is not in use is passed over', () => {
    const tokens = span(0, 64);
    const { policy: trees } = pooled();
    expect(trees.applyPlacement?.({ ...sound, kind: 'hash', units: tokens }, 0)).toBe(false);
    expect(trees.restorePiece({ kind: 'pins', data: [] }, () => true, 0)).toEqual({ restored: 0, skipped: 1 });
    decideOn(trees, { text: 'known' }, signalsOf('a'));
    const { policy: hash } = pooled({ cacheIndex: 'hash', cacheBoundaries: [4] });
    expect(hash.applyPlacement?.(sound, 0)).toBe(false);
    expect(hash.applyPlacement?.({ ...sound, kind: 'tokens', units: tokens }, 0)).toBe(false);
    for (const piece of trees.snapshotPieces(0)) {
      expect(hash.restorePiece(piece, () => true, 0)).toEqual({ restored: 0, skipped: 1 });
    }
    expect([...hash.snapshotPieces(0)]).toEqual([]);
  });
});
