import { describe, expect, it } from 'vitest';
import { cacheAware, type StandaloneCacheAware } from '../../src/policies/cache-aware.js';
import type { Candidate } from '../../src/workers/candidate.js';
import { idle, seed, selected, winners } from './holders.js';

describe('affinity', () => {
  it('CA-36, CA-62: the holder wins over idle workers; the record tells branch, ratio and threshold', () => {
    const policy = cacheAware({ seed: 1 });
    seed(policy, 'hello world', 'a');
    const selection = policy.selectWorker({ text: 'hello' }, [{ id: 'a', inFlight: 9 }, ...idle('b', 'c')]);
    expect(selection.ok && selection.worker.id).toBe('a');
    expect(selection.record).toMatchObject({
      policy: 'cache_aware',
      branch: 'tree_match',
      matchedRatio: 1,
      threshold: 0.3,
      inFlight: 9,
      model: 'unknown',
      leg: 'single',
    });
  });

  it('CA-41, EW-20: equal holders share traffic, others get none', () => {
    const found = winners((n) => {
      const policy = cacheAware({ seed: n });
      seed(policy, 'shared prompt', 'a', 'b');
      return selected(policy, 'shared prompt', idle('a', 'b', 'c'));
    });
    expect(found).toEqual(['a', 'b']);
  });

  it('CA-34: the ratio must exceed the threshold', () => {
    for (const [threshold, branch] of [
      [5 / 11, 'expected_wait_fallback'],
      [0.45, 'tree_match'],
    ] as const) {
      const policy = cacheAware({ cacheThreshold: threshold, seed: 1 });
      seed(policy, 'hello', 'a');
      const { record } = policy.selectWorker({ text: 'hello world' }, idle('a', 'b'));
      expect(record).toMatchObject({ branch, matchedRatio: 5 / 11 });
    }
  });

  it('CA-38, B15: every placement is remembered, whatever branch chose it', () => {
    const policy = cacheAware({ cacheThreshold: 0.5, seed: 7 });
    const prompt = 'x'.repeat(200);
    const first = selected(policy, prompt, idle('a', 'b'));
    expect(selected(policy, prompt, idle('a', 'b'))).toBe(first);
    expect(selected(policy, `${'x'.repeat(160)}${'y'.repeat(40)}`, idle('a', 'b'))).toBe(first);
  });

  it('CA-1, LB-14a: without candidates nothing is selected, recorded or matched', () => {
    const policy = cacheAware({ seed: 1 });
    expect(policy.selectWorker({ text: 'abc' }, [])).toMatchObject({ ok: false, reason: 'no_available_workers' });
    const excluded = policy.selectWorker({ text: 'abc', exclude: ['a'] }, idle('a'));
    expect(excluded).toMatchObject({ ok: false, excluded: 1 });
    const { record } = policy.selectWorker({ text: 'abc' }, idle('a'));
    expect(record).toMatchObject({ branch: 'expected_wait_fallback', matchedRatio: 0 });
  });

  it('B02: an empty text has ratio 0, not NaN', () => {
    const policy = cacheAware({ cacheThreshold: 0, seed: 1 });
    for (const request of [{ text: '' }, {}, { tokens: [] }]) {
      expect(policy.selectWorker(request, idle('a')).record).toMatchObject({
        branch: 'expected_wait_fallback',
        matchedRatio: 0,
      });
    }
  });

  it('B17: a miss is decided by load, never by what a worker holds', () => {
    const policy = cacheAware({ seed: 1 });
    seed(policy, 'y'.repeat(10_000), 'b');
    expect(selected(policy, 'unseen', [{ id: 'a', inFlight: 50 }, ...idle('b')])).toBe('b');
  });

  it('B14, CA-2: models and legs have trees of their own', () => {
    const policy = cacheAware({ seed: 1 });
    const busy = [{ id: 'a', inFlight: 5 }, ...idle('b')];
    policy.applyPlacement({ kind: 'text', units: 'one', worker: 'a', use: 1, namespace: undefined, model: 'm1' });
    expect(policy.selectWorker({ text: 'one', model: 'm2' }, busy).record.matchedRatio).toBe(0);
    expect(policy.selectWorker({ text: 'one', model: 'm1', leg: 'decode' }, busy).record.matchedRatio).toBe(0);
    expect(policy.selectWorker({ text: 'one', model: 'm1' }, busy).record.matchedRatio).toBe(1);
  });

  it('CA-32: nine holders, and the eight newest are candidates', () => {
    const ids = Array.from({ length: 9 }, (_, i) => `w${i}`);
    const found = winners((n) => {
      const policy = cacheAware({ seed: n });
      seed(policy, 'popular', ...ids);
      return selected(policy, 'popular', idle(...ids));
    });
    expect(found).toEqual(ids.slice(1));
  });
});

describe('spill gate', () => {
  it('CA-11: a hot holder is avoided as long as another one is not hot', () => {
    const policy = cacheAware({ seed: 1 });
    seed(policy, 'shared', 'a', 'b');
    const fleet = [{ id: 'a', inFlight: 200 }, { id: 'b', inFlight: 60 }, ...idle('c', 'd')];
    const { ok, record } = policy.selectWorker({ text: 'shared' }, fleet);
    expect(ok).toBe(true);
    expect(record).toMatchObject({ branch: 'tree_match', inFlight: 60 });
  });

  it('CA-11, CA-12: all holders hot: the rest of the fleet, without other hot workers', () => {
    const found = winners((n) => {
      const policy = cacheAware({ seed: n, balanceAbsThreshold: 10 });
      seed(policy, 'shared', 'a');
      return selected(policy, 'shared', [{ id: 'a', inFlight: 99 }, { id: 'b', inFlight: 99 }, ...idle('c', 'd')]);
    });
    expect(found).toEqual(['c', 'd']);
  });

  it('CA-1: the mean covers the whole fleet, not only the holders', () => {
    const policy = cacheAware({ seed: 1, balanceAbsThreshold: 5 });
    seed(policy, 'shared', 'a');
    const alone = policy.selectWorker({ text: 'shared' }, [{ id: 'a', inFlight: 30 }]);
    expect(alone.record.branch).toBe('tree_match');
    const crowd = Array.from({ length: 9 }, (_, i) => ({ id: `w${i}`, inFlight: 29 }));
    expect(policy.selectWorker({ text: 'shared' }, [{ id: 'a', inFlight: 30 }, ...crowd]).record.branch).toBe(
      'tree_match',
    );
    const calm = Array.from({ length: 9 }, (_, i) => ({ id: `w${i}`, inFlight: 2 }));
    expect(policy.selectWorker({ text: 'shared' }, [{ id: 'a', inFlight: 30 }, ...calm]).record.branch).toBe('spill');
  });

  it('CA-37: the only holder is no candidate: expected wait over all, reported as a spill', () => {
    const policy = cacheAware({ seed: 1 });
    seed(policy, 'shared', 'gone');
    const { record } = policy.selectWorker({ text: 'shared' }, [{ id: 'a', inFlight: 4 }, ...idle('b')]);
    expect(record).toMatchObject({ branch: 'spill', matchedRatio: 1, inFlight: 0 });
  });

  it('CF-21, B56: a margin of 0 makes the gate purely relative', () => {
    const policy = cacheAware({ seed: 1, balanceAbsThreshold: 0 });
    seed(policy, 'shared', 'a');
    expect(selected(policy, 'shared', [{ id: 'a', inFlight: 2 }, ...idle('b')])).toBe('b');
  });
});

describe('KV pressure', () => {
  const pressed = [
    { id: 'a', inFlight: 0, report: { kvCacheUsage: 0.95 } },
    { id: 'b', inFlight: 0, report: { kvCacheUsage: 0.2 } },
  ];

  it('CA-21: affinity is ignored, the placement remembered, and no ratio told', () => {
    const policy = cacheAware({ seed: 1, overloadTokenUsageThreshold: 0.9 });
    seed(policy, 'shared', 'a');
    const { record } = policy.selectWorker({ text: 'shared' }, pressed);
    expect(record).toMatchObject({ branch: 'kv_pressure_expected_wait', matchedRatio: undefined });
    const { policy: explained } = policy.explain({ text: 'shared' }, idle('a', 'b'));
    expect(explained.match?.holders).toEqual(['b', 'a']);
  });

  it('CA-20: both thresholds at 1 switch the check off', () => {
    const policy = cacheAware({ seed: 1 });
    seed(policy, 'shared', 'a');
    expect(policy.selectWorker({ text: 'shared' }, pressed).record.branch).toBe('tree_match');
  });
});

describe('decay and temperature', () => {
  const queued = (id: string, waitingTokens: number): Candidate => ({
    id,
    inFlight: 0,
    report: { waitingTokens, tokensPerSecond: 100 },
  });
  const tokens = Array.from({ length: 160 }, (_, i) => i);
  const placed = (policy: StandaloneCacheAware): void => {
    for (const [i, worker] of ['a', 'b'].entries()) {
      policy.applyPlacement({ kind: 'tokens', units: tokens, worker, use: i + 1, namespace: undefined });
    }
  };

  it('CA-51: with decay the holder with the shorter queue is the group', () => {
    const policy = cacheAware({ overlapDecay: 1, seed: 1 });
    placed(policy);
    const { policy: explained } = policy.explain({ tokens }, [queued('a', 160), queued('b', 0)]);
    expect(explained.scores?.map(({ worker }) => worker)).toEqual(['b']);
  });

  it('CA-53: a temperature alone changes nothing in a tree', () => {
    const policy = cacheAware({ selectionTemperature: 5, seed: 1 });
    placed(policy);
    const { policy: explained } = policy.explain({ tokens }, [queued('a', 160), queued('b', 0)]);
    expect(explained.scores?.map(({ worker }) => worker)).toEqual(['b', 'a']);
    expect(explained.tieSet).toEqual(['b']);
  });

  it('CA-45, LB-13: with both, every score group can win, and explain says so', () => {
    const found = winners((n) => {
      const policy = cacheAware({ overlapDecay: 1, selectionTemperature: 1, seed: n });
      placed(policy);
      const selection = policy.selectWorker({ tokens }, [queued('a', 160), queued('b', 0), queued('c', 0)]);
      return selection.ok ? selection.worker.id : undefined;
    });
    expect(found).toEqual(['a', 'b']);
    const policy = cacheAware({ overlapDecay: 1, selectionTemperature: 1, seed: 1 });
    placed(policy);
    const { policy: explained, selection } = policy.explain({ tokens }, [queued('a', 160), queued('b', 0)]);
    expect([...(explained.tieSet ?? [])].sort()).toEqual(['a', 'b']);
    expect(explained.scores?.map(({ worker }) => worker)).toEqual([selection.ok && selection.worker]);
  });
});

describe('explain', () => {
  it('LB-13: match, holders, gate with both margins, scores and ties', () => {
    const policy = cacheAware({ seed: 1 });
    seed(policy, 'hello', 'a', 'b');
    const { selection, policy: explained } = policy.explain({ text: 'hello world' }, [
      { id: 'a', inFlight: 10 },
      { id: 'b', inFlight: 2 },
      { id: 'c', inFlight: 0 },
    ]);
    expect(selection).toMatchObject({ ok: true, worker: 'b' });
    expect(explained.match).toEqual({
      index: 'string_tree',
      matchedUnits: 5,
      requestUnits: 11,
      ratio: 5 / 11,
      holders: ['b', 'a'],
    });
    expect(explained.gate?.[0]).toEqual({
      worker: 'a',
      inFlight: 10,
      mean: 4,
      relativeMargin: 4,
      absoluteMargin: -58,
      hot: false,
    });
    expect(explained.gate).toHaveLength(3);
    expect(explained.scores?.map(({ worker, score }) => [worker, score])).toEqual([
      ['b', 2],
      ['a', 10],
    ]);
    expect(explained).toMatchObject({ tieSet: ['b'], runnerUp: 'a', margin: 8 });
  });

  it('LB-12, B03: asking changes nothing, a thousand times', () => {
    const policy = cacheAware({ seed: 3 });
    const twin = cacheAware({ seed: 3 });
    const fleet = idle('a', 'b', 'c');
    for (let i = 0; i < 1000; i++) policy.explain({ text: `prompt ${i % 7}` }, fleet);
    for (let i = 0; i < 50; i++) {
      const request = { text: `prompt ${i % 7}` };
      const asked = policy.selectWorker(request, fleet);
      const plain = twin.selectWorker(request, fleet);
      expect(asked.ok && asked.worker.id).toBe(plain.ok && plain.worker.id);
      expect(asked.record).toEqual(plain.record);
    }
  });
});
