import { describe, expect, it } from 'vitest';
import { cacheAware, type StandaloneCacheAware } from '../../src/policies/cache-aware.js';
import { stickySessions } from '../../src/policies/sticky-sessions.js';
import { createRouter } from '../../src/router.js';
import type { Candidate } from '../../src/workers/candidate.js';

const span = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
const idle = (...ids: string[]): Candidate[] => ids.map((id) => ({ id, inFlight: 0 }));

/** The worker's engine says that it holds these tokens in blocks of four. */
function stores(policy: Pick<StandaloneCacheAware, 'kvEvents'>, worker: string, tokens: readonly number[]): void {
  const hashes = Array.from({ length: tokens.length / 4 }, (_, i) => i + 1);
  const stored = { type: 'stored', hashes, tokens, blockSize: 4 } as const;
  expect(policy.kvEvents.applyBatch(worker, { sequence: 1, events: [stored] })).toEqual({ result: 'applied' });
}

function fed(options: object = {}): StandaloneCacheAware {
  const policy = cacheAware({ seed: 1, cacheThreshold: 1, ...options });
  stores(policy, 'long', span(0, 12));
  stores(policy, 'short', span(0, 4));
  return policy;
}

const outcome = (policy: StandaloneCacheAware, request: object, candidates: Candidate[]) => {
  const selection = policy.selectWorker(request, candidates);
  return [selection.ok && selection.worker.id, selection.record.branch];
};

describe('KV events', () => {
  it('CA-83, CA-84: the longest overlap wins, whatever the threshold; no ratio is told', () => {
    const policy = fed();
    const candidates = [{ id: 'long', inFlight: 9 }, ...idle('short', 'none')];
    const { ok, record } = policy.selectWorker({ tokens: span(0, 100) }, candidates);
    expect(ok).toBe(true);
    expect(record).toMatchObject({ branch: 'event_hit', inFlight: 9, matchedRatio: undefined, level: undefined });
  });

  it('CA-83: only candidates count: without the best holder the next one has it', () => {
    expect(outcome(fed(), { tokens: span(0, 12) }, [{ id: 'short', inFlight: 9 }, ...idle('none')])).toEqual([
      'short',
      'event_hit',
    ]);
  });

  it('CA-84: a hot holder spills to who is not hot', () => {
    const candidates = [{ id: 'long', inFlight: 500 }, ...idle('none')];
    expect(outcome(fed(), { tokens: span(0, 12) }, candidates)).toEqual(['none', 'event_spill']);
  });

  it('CA-6, CA-81, CA-85: a miss is a miss, and nothing is recorded anywhere', () => {
    const policy = fed();
    const candidates = [{ id: 'long', inFlight: 9 }, ...idle('none')];
    for (const tokens of [span(500, 512), [0, 1, 2], span(4, 12)]) {
      expect(outcome(policy, { tokens }, candidates)).toEqual(['none', 'event_miss']);
      expect(outcome(policy, { tokens }, candidates)).toEqual(['none', 'event_miss']);
    }
  });

  it('LB-30: also through a combinator, forget purges who is known from events and placements alone', () => {
    const policy = fed();
    policy.applyPlacement({ kind: 'text', namespace: undefined, units: 'a long prompt', worker: 'told', use: 1 });
    const sticky = stickySessions(stickySessions(policy));
    const holders = (request: object) => sticky.explain(request, idle('long', 'told')).policy.match?.holders;
    expect([holders({ tokens: span(0, 12) }), holders({ text: 'a long prompt' })]).toEqual([
      ['long', 'short'],
      ['told'],
    ]);
    for (const id of ['long', 'short', 'told']) sticky.forget(id);
    expect([holders({ tokens: span(0, 12) }), holders({ text: 'a long prompt' })]).toEqual([[], []]);
  });

  it('CA-3, CA-80: text has nothing to do with it; without any block the token tree serves', () => {
    const policy = fed();
    expect(policy.selectWorker({ text: 'words' }, idle('none')).record.branch).toBe('expected_wait_fallback');
    policy.kvEvents.reset('long');
    policy.forget('short');
    expect(policy.selectWorker({ tokens: span(0, 16) }, idle('none')).record.branch).toBe('expected_wait_fallback');
    expect(policy.explain({ tokens: span(0, 16) }, idle('none')).policy.match).toMatchObject({
      index: 'token_tree',
      matchedUnits: 16,
    });
  });

  it('CA-21, CA-85: under KV pressure the engines still tell who holds what, so no tree is filled', () => {
    const policy = fed({ overloadTokenUsageThreshold: 0.5 });
    const pressed = [{ id: 'long', inFlight: 0, report: { kvCacheUsage: 0.9 } }];
    expect(outcome(policy, { tokens: span(0, 16) }, pressed)).toEqual(['long', 'kv_pressure_expected_wait']);
    for (const id of ['long', 'short']) policy.kvEvents.reset(id);
    expect(policy.explain({ tokens: span(0, 16) }, idle('long')).policy.match).toMatchObject({
      index: 'token_tree',
      matchedUnits: 0,
    });
  });

  it('CA-50, CA-91: decay uses the block size that the engines told', () => {
    const policy = fed({ overlapDecay: 1, blockSize: 1024 });
    const queued = (id: string, waitingTokens: number): Candidate => ({ id, inFlight: 0, report: { waitingTokens } });
    // Overlaps 3 and 1 of 3 blocks: 3 / (1 + 16/4/3) = 1.29 beats 1, 3 / (1 + 32/4/3) = 0.82 does not.
    const winner = (backlog: number) =>
      policy.explain({ tokens: span(0, 12) }, [queued('long', backlog), queued('short', 0)]).policy.tieSet;
    expect([winner(16), winner(32)]).toEqual([['long'], ['short']]);
  });

  it('CA-45, CA-52: a temperature lets shorter overlaps win', () => {
    const winners = new Set<unknown>();
    for (let seed = 0; seed < 200; seed++) {
      winners.add(
        outcome(fed({ selectionTemperature: 1, seed }), { tokens: span(0, 12) }, idle('long', 'short', 'x'))[0],
      );
    }
    expect([...winners].sort()).toEqual(['long', 'short']);
  });

  it('LB-13: explain tells the overlap in blocks and the holders, best first', () => {
    const { policy: explained } = fed().explain({ tokens: span(0, 17) }, idle('short', 'long'));
    expect(explained.match).toEqual({
      index: 'kv_events',
      matchedUnits: 3,
      requestUnits: 4,
      ratio: 0.75,
      holders: ['long', 'short'],
    });
  });

  it('CA-101: partitions do not concern the index', () => {
    const request = { tokens: span(0, 12), namespace: { cacheSalt: 's' } };
    expect(outcome(fed(), request, [{ id: 'long', inFlight: 9 }, ...idle('none')])).toEqual(['long', 'event_hit']);
  });

  it('LB-42: a token that is none is refused by name', () => {
    expect(() => fed().selectWorker({ tokens: [0, 1, 2, 2 ** 32] }, idle('a'))).toThrow(/tokens/);
  });
});

describe('KV events on a router', () => {
  it('CA-80, CA-95: events of any registered worker serve its pools; removal drops its blocks', async () => {
    const router = await createRouter({ seed: 1 });
    for (const id of ['a', 'b']) router.addWorker({ id });
    stores(router, 'a', span(0, 12));
    router.begin('a');
    expect(router.selectWorker({ tokens: span(0, 12) })).toMatchObject({
      worker: { id: 'a' },
      record: { branch: 'event_hit' },
    });
    expect(router.kvEvents.applyBatch('stranger', { sequence: 1, events: [] })).toMatchObject({ result: 'rejected' });
    router.removeWorker('a');
    expect(router.selectWorker({ tokens: span(0, 12) }).record.branch).toBe('expected_wait_fallback');
  });
});
