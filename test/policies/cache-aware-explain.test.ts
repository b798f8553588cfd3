/** What `cache_aware` says about a decision, index by index, and the choices that only show there (LB-13). */
import { createRouter } from 'kvroute';
import { scriptedRandom } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { cacheAware, type StandaloneCacheAware } from '../../src/policies/cache-aware.js';
import type { Candidate } from '../../src/workers/candidate.js';
import { idle, seed } from './holders.js';

const span = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

/** The workers' engines say that they hold these tokens in blocks of four. */
function stores(policy: Pick<StandaloneCacheAware, 'kvEvents'>, tokens: readonly number[], ...workers: string[]): void {
  const hashes = Array.from({ length: tokens.length / 4 }, (_, i) => i + 1);
  for (const worker of workers) {
    policy.kvEvents.applyBatch(worker, { sequence: 1, events: [{ type: 'stored', hashes, tokens, blockSize: 4 }] });
  }
}

describe('explaining the trees', () => {
  it('CA-34: at the threshold itself nobody counts as a holder', () => {
    const policy = cacheAware({ cacheThreshold: 5 / 11, seed: 1 });
    seed(policy, 'hello', 'a');
    const fleet = [{ id: 'a', inFlight: 9 }, ...idle('b')];
    const { selection, policy: told } = policy.explain({ text: 'hello world' }, fleet);
    expect(selection).toMatchObject({ worker: 'b' });
    expect(told.tieSet).toEqual(['b']);
    expect(told.match).toEqual({
      index: 'string_tree',
      matchedUnits: 5,
      requestUnits: 11,
      ratio: 5 / 11,
      holders: ['a'],
    });
  });

  it('CA-1, LB-13: the terms of the gate are told on a miss too', () => {
    const policy = cacheAware({ seed: 1 });
    const told = policy.explain({ text: 'new' }, [{ id: 'a', inFlight: 4 }, ...idle('b')]).policy;
    expect(told.gate).toHaveLength(2);
    expect(told.scores).toHaveLength(2);
  });

  it('CA-1: with no candidates there is nothing to tell', () => {
    const { selection, policy } = cacheAware({ seed: 1 }).explain({ text: 'new' }, []);
    expect([selection.ok, selection.record.branch, policy]).toEqual([false, undefined, {}]);
  });

  it('CA-21: under KV pressure no index was asked, so no match is told', () => {
    const policy = cacheAware({ seed: 1, overloadTokenUsageThreshold: 0.9 });
    seed(policy, 'hello', 'a');
    const pressed = ['a', 'b'].map((id) => ({ id, inFlight: 0, report: { kvCacheUsage: id === 'a' ? 0.95 : 0.2 } }));
    const { selection, policy: told } = policy.explain({ text: 'hello' }, pressed);
    expect(selection.record.branch).toBe('kv_pressure_expected_wait');
    expect(told.match).toBeUndefined();
    expect(told.scores).toHaveLength(2);
  });

  it('CA-50, CA-51, CA-52: the backlog discounts a holder in blocks of the request', () => {
    // Twelve tokens are three blocks of four: 16 and 32 queued tokens leave 3/7 and 3/11 of an overlap of 1. With
    // temperature 1 the chances are 0.548, 0.250 and 0.202.
    const chosen = (draw: number): unknown => {
      const random = scriptedRandom([draw, 0]);
      const policy = cacheAware({ blockSize: 4, overlapDecay: 1, selectionTemperature: 1, random });
      for (const [i, worker] of ['a', 'b', 'c'].entries()) {
        policy.applyPlacement({ kind: 'tokens', units: span(0, 12), worker, use: i + 1, namespace: undefined });
      }
      const queued = (id: string, waitingTokens: number): Candidate => ({ id, inFlight: 0, report: { waitingTokens } });
      const selection = policy.selectWorker({ tokens: span(0, 12) }, [
        queued('a', 0),
        queued('b', 16),
        queued('c', 32),
      ]);
      return selection.ok && selection.worker.id;
    };
    // The draw goes through the holders from the newest to the oldest.
    expect([0, 0.195, 0.201].map(chosen)).toEqual(['c', 'c', 'c']);
    expect([0.202, 0.205, 0.445, 0.451].map(chosen)).toEqual(['b', 'b', 'b', 'b']);
    expect([0.453, 0.47, 0.99].map(chosen)).toEqual(['a', 'a', 'a']);
  });
});

describe('explaining the hash index', () => {
  const hashed = (options: object = {}): StandaloneCacheAware => {
    const policy = cacheAware({ cacheIndex: 'hash', cacheBoundaries: [16, 32], seed: 1, ...options });
    for (const worker of ['a', 'b']) policy.selectWorker({ tokens: span(0, 40) }, idle(worker));
    return policy;
  };

  it('CA-71, LB-13: tells the boundary that matched as a share of the request', () => {
    const { selection, policy } = hashed().explain({ tokens: span(0, 40) }, [
      { id: 'a', inFlight: 9 },
      { id: 'b', inFlight: 9 },
      ...idle('c'),
    ]);
    // Two holders are equal: whichever is chosen is a hit.
    expect(selection.record).toMatchObject({ branch: 'hash_hit', level: 32 });
    expect(policy.match).toEqual({
      index: 'hash',
      matchedUnits: 32,
      requestUnits: 40,
      ratio: 0.8,
      holders: ['b', 'a'],
    });
    expect([...(policy.tieSet ?? [])].sort()).toEqual(['a', 'b']);
  });

  it('CA-71: where the index was not asked, no match is told', () => {
    const policy = hashed({ overloadTokenUsageThreshold: 0.9 });
    const pressed = ['a', 'b'].map((id) => ({ id, inFlight: 0, report: { kvCacheUsage: id === 'a' ? 0.95 : 0.2 } }));
    for (const [request, fleet, branch] of [
      [{ tokens: span(0, 40) }, pressed, 'kv_pressure_expected_wait'],
      [{ text: 'words' }, idle('a', 'b'), 'expected_wait_fallback'],
    ] as const) {
      const { selection, policy: told } = policy.explain(request, fleet);
      expect(selection.record.branch).toBe(branch);
      expect(told.match).toBeUndefined();
      expect(told.scores).toHaveLength(2);
    }
  });
});

describe('explaining KV events', () => {
  it('CA-82, LB-13: holders of equal overlap are told by id, after those of a longer one', () => {
    const policy = cacheAware({ seed: 1 });
    stores(policy, span(0, 4), 'd', 'a', 'c');
    stores(policy, span(0, 8), 'b');
    const { match } = policy.explain({ tokens: span(0, 8) }, idle('a')).policy;
    expect(match?.holders).toEqual(['b', 'a', 'c', 'd']);
  });

  it('CA-81, LB-13: a request without a full block, and one that nobody holds, match 0', () => {
    const policy = cacheAware({ seed: 1 });
    stores(policy, span(0, 4), 'a');
    const matchOf = (tokens: number[]) => policy.explain({ tokens }, idle('a')).policy.match;
    const nothing = { index: 'kv_events', matchedUnits: 0, ratio: 0, holders: [] };
    expect(matchOf([1, 2])).toEqual({ ...nothing, requestUnits: 0 });
    expect(matchOf(span(50, 58))).toEqual({ ...nothing, requestUnits: 2 });
  });

  it('CA-45, LB-13: above temperature 0 the scores told are those of the group that decided, the ties those of all', () => {
    const toldAt = (draw: number) => {
      const policy = cacheAware({ random: scriptedRandom([draw, 0]), selectionTemperature: 1 });
      stores(policy, span(0, 4), 'c');
      stores(policy, span(0, 8), 'a', 'b');
      const { selection, policy: told } = policy.explain({ tokens: span(0, 8) }, idle('a', 'b', 'c', 'd'));
      return {
        worker: selection.ok && selection.worker,
        scored: told.scores?.map(({ worker }) => worker),
        ties: told.tieSet,
      };
    };
    // Weights 1, 1 and 1/e, in one order or the other: an early and a late draw fall on both sides.
    const both = [0, 0.999].map(toldAt).sort(({ worker }) => (worker === 'c' ? 1 : -1));
    expect(both).toEqual([
      { worker: expect.stringMatching(/^[ab]$/), scored: ['b', 'a'], ties: ['b', 'a', 'c'] },
      { worker: 'c', scored: ['c'], ties: ['b', 'a', 'c'] },
    ]);
  });

  it('LB-35: overlaps are discounted by the options that were set last', async () => {
    const router = await createRouter({ seed: 1, policy: 'cache_aware' });
    for (const id of ['a', 'b']) router.addWorker({ id });
    stores(router, span(0, 12), 'a');
    stores(router, span(0, 8), 'b');
    router.reportLoad('a', { waitingTokens: 400 });
    router.reportLoad('b', { waitingTokens: 0 });
    const holder = () => router.explain({ tokens: span(0, 12) }).policy.tieSet;
    expect(holder()).toEqual(['a']);
    router.reconfigure({ policy: { name: 'cache_aware', overlapDecay: 1 } });
    expect(holder()).toEqual(['b']);
  });

  it('CA-83: with several equal holders the chosen one is a hit', () => {
    const policy = cacheAware({ seed: 1 });
    stores(policy, span(0, 4), 'a', 'b');
    const fleet = [{ id: 'a', inFlight: 9 }, { id: 'b', inFlight: 9 }, ...idle('c')];
    expect(policy.selectWorker({ tokens: span(0, 4) }, fleet).record.branch).toBe('event_hit');
  });

  it.each([
    ['a', 'b', 'c'],
    ['c', 'b', 'a'],
    ['b', 'c', 'a'],
  ])('LB-3: a draw among equal holders takes the same one, in whatever order they told of it: %s %s %s', (...order) => {
    const chosen = [0, 0.4, 0.8].map((draw) => {
      const policy = cacheAware({ random: scriptedRandom([draw, draw]) });
      stores(policy, span(0, 4), ...order);
      const selection = policy.selectWorker({ tokens: span(0, 4) }, idle('c', 'a', 'b', 'x'));
      return selection.ok && selection.worker.id;
    });
    expect(new Set(chosen)).toEqual(new Set(['a', 'b', 'c']));
    const policy = cacheAware({ random: scriptedRandom([0]) });
    stores(policy, span(0, 4), ...order);
    expect(policy.selectWorker({ tokens: span(0, 4) }, idle('c', 'a', 'b', 'x'))).toMatchObject({
      worker: { id: 'b' },
    });
  });
});
