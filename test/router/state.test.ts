import { createRouter, type Placement, type Router, RoutingConfigError, SnapshotError } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';

async function fleet(ids: string[], options = {}): Promise<Router> {
  const router = await createRouter({ policy: 'cache_aware', seed: 1, ...options });
  for (const id of ids) router.addWorker({ id, models: ['m'] });
  return router;
}

function pick(router: Router, request = {}): string {
  const selection = router.selectWorker({ model: 'm', ...request });
  return selection.ok ? selection.worker.id : selection.reason;
}

const prompt = (i: number): string => `conversation ${i}: ${'lorem ipsum '.repeat(4)}`;

describe('snapshots', () => {
  it('LB-33: trees and pins survive JSON; live counts are not part of it', async () => {
    const router = await fleet(['a', 'b', 'c'], { routingKeyOverride: true });
    const placed = Array.from({ length: 12 }, (_, i) => pick(router, { text: prompt(i) }));
    const tokens = Array.from({ length: 64 }, (_, i) => i);
    const byTokens = pick(router, { tokens });
    const pinned = pick(router, { rid: 'k' });
    router.begin('a');
    const copy = await fleet(['a', 'b', 'c'], { routingKeyOverride: true });
    const report = copy.restore(JSON.parse(JSON.stringify(router.snapshot())));
    expect(report.skipped).toBe(0);
    // One pin; a record for each leaf of the trees.
    expect(report.restored).toBeGreaterThanOrEqual(14);
    expect(placed.map((_, i) => pick(copy, { text: prompt(i) }))).toEqual(placed);
    expect(pick(copy, { tokens })).toBe(byTokens);
    expect(pick(copy, { rid: 'k' })).toBe(pinned);
    expect(copy.worker('a')?.inFlight).toBe(0);
  });

  it('LB-33: unknown workers are skipped and counted', async () => {
    const router = await fleet(['a'], { routingKeyOverride: true });
    pick(router, { text: prompt(1), rid: 'k' });
    const snapshot = router.snapshot();
    const other = await fleet(['b'], { routingKeyOverride: true });
    const { restored, skipped } = other.restore(snapshot);
    expect(restored).toBe(0);
    expect(skipped).toBeGreaterThanOrEqual(2);
    expect(other.pinCount).toBe(0);
    const noModel = await createRouter({ seed: 1 });
    expect(noModel.restore(snapshot)).toMatchObject({ restored: 0 });
  });

  it('LB-33, LB-30: a worker that left the model is skipped too, so its removal leaves no trace', async () => {
    const router = await fleet(['a']);
    pick(router, { text: prompt(1), tokens: Array.from({ length: 32 }, (_, i) => i) });
    pick(router, { text: prompt(1) });
    const other = await fleet(['b']);
    other.addWorker({ id: 'a', models: ['another'] });
    expect(other.restore(router.snapshot())).toEqual({ restored: 0, skipped: 2 });
    other.removeWorker('a');
    expect(JSON.stringify(other.snapshot())).not.toContain('"a"');
    expect(other.explain({ model: 'm', text: prompt(1) }).policy.match?.holders).toEqual([]);
  });

  it('LB-33, B09: what was learned for an index that is not in use is skipped', async () => {
    const hash = { policy: { name: 'cache_aware', cacheIndex: 'hash', cacheBoundaries: [4] } } as const;
    const byTree = await fleet(['a']);
    pick(byTree, { text: prompt(1) });
    pick(byTree, { tokens: Array.from({ length: 32 }, (_, i) => i) });
    const byHash = await fleet(['a'], hash);
    pick(byHash, { tokens: [1, 2, 3, 4] });
    const [trees, heads] = [byTree.snapshot(), byHash.snapshot()];
    const empty = JSON.stringify((await fleet(['a'])).snapshot());
    for (const [options, unread] of [
      [hash, trees],
      [{}, heads],
    ] as const) {
      const router = await fleet(['a'], options);
      expect(router.restore(unread)).toEqual({ restored: 0, skipped: unread.pieces.length });
      expect(JSON.stringify(router.snapshot())).toBe(empty);
    }
    expect(byTree.restore(trees).skipped).toBe(0);
    expect(byHash.restore(heads).skipped).toBe(0);
  });

  it('LB-33: another version, or no snapshot at all, is refused and the router stays as it was', async () => {
    const router = await fleet(['a', 'b']);
    pick(router, { text: prompt(1) });
    const before = JSON.stringify(router.snapshot());
    for (const wrong of [
      { ...router.snapshot(), version: 2 },
      null,
      'x',
      { version: 1 },
      { version: 1, pieces: 'x' },
    ]) {
      expect(() => router.restore(wrong as never)).toThrow(SnapshotError);
    }
    expect(JSON.stringify(router.snapshot())).toBe(before);
    expect(router.restorePiece(undefined as never)).toEqual({ restored: 0, skipped: 1 });
    expect(
      router.restorePiece({ model: 'm', leg: 'single', piece: { kind: 'pins', data: [['k', 'a', null], 7] } } as never),
    ).toEqual({
      restored: 0,
      skipped: 2,
    });
    expect(router.restorePiece({ model: '__proto__', leg: 'x', piece: { kind: 'text', data: 7 } } as never)).toEqual({
      restored: 0,
      skipped: 1,
    });
  });

  it('LB-33: pieces may be made and loaded one by one while requests go on', async () => {
    const router = await fleet(['a', 'b', 'c']);
    const placed = new Map<number, string>();
    for (let i = 0; i < 3000; i++) placed.set(i, pick(router, { text: `${i} ${prompt(i)}` }));
    const copy = await fleet(['a', 'b', 'c']);
    let pieces = 0;
    for (const piece of router.snapshotPieces()) {
      pieces += 1;
      copy.restorePiece(structuredClone(piece));
      pick(router, { text: `meanwhile ${pieces}` });
    }
    expect(pieces).toBeGreaterThan(1);
    for (let i = 0; i < 3000; i += 97) expect(pick(copy, { text: `${i} ${prompt(i)}` })).toBe(placed.get(i));
  });

  it('ST-60a: the idle time of pins goes on in the other router', async () => {
    const time = manualTime();
    const router = await fleet(['a', 'b'], { policy: 'manual', maxIdleMs: 10_000, clock: time.clock });
    const key = { headers: { 'x-smg-routing-key': 'k' } };
    pick(router, key);
    time.advance(6000);
    const later = manualTime(999);
    const copy = await fleet(['a', 'b'], { policy: 'manual', maxIdleMs: 10_000, clock: later.clock });
    copy.restore(router.snapshot());
    later.advance(3999);
    expect(copy.explain({ model: 'm', ...key }).selection.record.branch).toBe('occupied_hit');
    later.advance(1);
    expect(copy.explain({ model: 'm', ...key }).selection.record.branch).toBe('vacant');
  });
});

describe('placements', () => {
  it('LB-34: what one router learns, another merges: in any order, repeated, and without an echo', async () => {
    const router = await fleet(['a', 'b', 'c']);
    const deltas: Placement[] = [];
    router.on('placement', (placement) => deltas.push(structuredClone(placement)));
    const tokens = Array.from({ length: 48 }, (_, i) => i);
    for (let i = 0; i < 8; i++) pick(router, { text: prompt(i) });
    pick(router, { tokens });
    expect(deltas).toHaveLength(9);
    expect(deltas[0]).toMatchObject({
      model: 'm',
      leg: 'single',
      kind: 'text',
      units: prompt(0),
      namespace: undefined,
    });
    expect(deltas[8]).toMatchObject({ kind: 'tokens' });
    const [forwards, backwards] = [await fleet(['a', 'b', 'c']), await fleet(['a', 'b', 'c'])];
    backwards.on('placement', () => expect.unreachable('applying echoes'));
    for (const delta of deltas) expect(forwards.applyPlacement(delta)).toBe(true);
    for (const delta of [...deltas].reverse()) backwards.applyPlacement(delta);
    for (const delta of deltas) expect(backwards.applyPlacement(delta)).toBe(false);
    const holder = (from: Router, request: object): unknown =>
      from.explain({ model: 'm', ...request }).policy.match?.holders;
    for (let i = 0; i < 8; i++) {
      expect(holder(forwards, { text: prompt(i) })).toEqual(holder(router, { text: prompt(i) }));
      expect(holder(backwards, { text: prompt(i) })).toEqual(holder(router, { text: prompt(i) }));
    }
    expect(holder(backwards, { tokens })).toEqual(holder(router, { tokens }));
  });

  it('LB-34, LB-42: unknown models and workers are left alone, malformed deltas refused', async () => {
    const router = await fleet(['a']);
    const delta: Placement = {
      model: 'm',
      leg: 'single',
      kind: 'text',
      namespace: undefined,
      units: 'x',
      worker: 'a',
      use: 1,
    };
    expect(router.applyPlacement({ ...delta, model: 'n' })).toBe(false);
    expect(router.applyPlacement({ ...delta, worker: 'b' })).toBe(false);
    for (const wrong of [null, 7, { ...delta, model: 7 }, { ...delta, units: 7 }, { ...delta, use: Number.NaN }]) {
      expect(() => router.applyPlacement(wrong as never)).toThrow(TypeError);
    }
    expect(router.applyPlacement(delta)).toBe(true);
  });
});

describe('reconfigure', () => {
  it('LB-35: options change, learned state is kept', async () => {
    const router = await fleet(['a', 'b', 'c']);
    const holder = pick(router, { text: 'abcdefghij' });
    expect(pick(router, { text: 'abcdexxxxx' })).toBe(holder);
    router.reconfigure({ policy: { name: 'cache_aware', cacheThreshold: 0.9 } });
    expect(router.pools()[1]?.options).toMatchObject({ cacheThreshold: 0.9 });
    const { selection, policy } = router.explain({ model: 'm', text: 'abcdefghij' });
    expect(selection.record).toMatchObject({ branch: 'tree_match', matchedRatio: 1 });
    expect(policy.match?.holders).toContain(holder);
    expect(router.explain({ model: 'm', text: 'abcdeyyyyy' }).selection.record.branch).toBe('expected_wait_fallback');
  });

  it('LB-35: an invalid set changes nothing', async () => {
    const router = await fleet(['a', 'b'], { policy: { name: 'cache_aware', cacheThreshold: 0.4 } });
    const before = JSON.stringify(router.pools());
    const wrong: [object, string][] = [
      [{ policy: { name: 'cache_aware', cacheThreshold: 2 } }, 'policy.cacheThreshold'],
      [{ policy: 'fastest' }, 'policy'],
      [{ maxIdleMs: -1 }, 'maxIdleMs'],
      [{ mode: 'pd' }, 'mode'],
      [{ seed: 2 }, 'seed'],
      [{ clock: () => 0 }, 'clock'],
    ];
    for (const [options, field] of wrong) {
      try {
        router.reconfigure(options);
        expect.unreachable(field);
      } catch (error) {
        expect(error).toBeInstanceOf(RoutingConfigError);
        expect((error as RoutingConfigError).field).toBe(field);
      }
    }
    expect(JSON.stringify(router.pools())).toBe(before);
  });

  it('LB-35: another policy takes over, stickiness goes on and off and keeps its pins', async () => {
    const router = await fleet(['a', 'b', 'c'], { policy: 'round_robin' });
    expect([pick(router, { rid: 'k' }), pick(router, { rid: 'k' })]).toEqual(['a', 'b']);
    router.reconfigure({ policy: 'round_robin', routingKeyOverride: true });
    expect([pick(router, { rid: 'k' }), pick(router, { rid: 'k' }), pick(router)]).toEqual(['c', 'c', 'a']);
    router.reconfigure({ policy: 'round_robin' });
    expect(pick(router, { rid: 'k' })).toBe('b');
    router.reconfigure({ policy: 'passthrough', routingKeyOverride: true });
    expect([pick(router, { rid: 'k' }), pick(router)]).toEqual(['c', 'a']);
  });

  it('LB-35: thresholds of breakers and overload apply to registered workers, their state stays', async () => {
    const router = await fleet(['a', 'b'], { policy: 'random', circuitBreaker: { failureThreshold: 5 } });
    for (let i = 0; i < 2; i++) router.recordOutcome('a', { status: 500 });
    router.reconfigure({ policy: 'random', circuitBreaker: { failureThreshold: 3 }, workerOverloadProtection: true });
    expect(router.worker('a')?.consecutiveFailures).toBe(2);
    router.recordOutcome('a', { status: 500 });
    expect(router.worker('a')?.breakerState).toBe('open');
    router.reportLoad('b', { kvCacheUsage: 0.95 });
    expect(router.worker('b')?.available).toBe(false);
  });

  it('LR-30, OV-7, LB-35: reports that are kept are judged by the options as they are now', async () => {
    const time = manualTime();
    const router = await fleet(['a', 'b'], {
      clock: time.clock,
      loadReportMaxAgeMs: Infinity,
      workerOverloadProtection: true,
    });
    router.reportLoad('a', { kvCacheUsage: 0.95 });
    expect(router.worker('a')?.available).toBe(false);
    const changes: unknown[] = [];
    router.on('overloadChanged', ({ overload }) => changes.push(overload?.signal));
    router.reconfigure({ loadReportMaxAgeMs: Infinity });
    expect(router.worker('a')?.available).toBe(true);
    router.reconfigure({ workerOverloadTokenUsage: 0.5 });
    expect(router.worker('a')?.available).toBe(false);
    expect(changes).toEqual([undefined, 'kv_cache_usage']);
    time.advance(30_000);
    expect(router.worker('a')).toMatchObject({ available: true, report: undefined });
  });

  it('LM-24: a policy that a label decided stays through a reconfiguration', async () => {
    const router = await createRouter({ policy: 'random' });
    router.addWorker({ id: 'a', models: ['m'], labels: { policy: 'least_load' } });
    router.addWorker({ id: 'b', models: ['m'] });
    router.removeWorker('a');
    router.reconfigure({ policy: 'round_robin', policyOptions: { least_load: { maxWaitingRequests: 4 } } });
    expect(router.pools().map(({ policy, options }) => [policy, options.maxWaitingRequests])).toEqual([
      ['round_robin', undefined],
      ['least_load', 4],
    ]);
  });
});

describe('warnings', () => {
  it('LB-41: options without effect, by name, in warnings and as events', async () => {
    const codes = async (options: object, ids = ['a', 'b']): Promise<string[]> => {
      const router = await fleet(ids, options);
      pick(router);
      pick(router);
      return router.warnings.map(({ code, fields }) => `${code} ${fields.join()}`);
    };
    expect(await codes({})).toEqual([]);
    expect(await codes({ policy: { name: 'cache_aware', cacheThreshold: 1 } })).toEqual([
      'optionWithoutEffect cacheThreshold',
    ]);
    expect(await codes({ policy: { name: 'cache_aware', cacheBoundaries: [16] } })).toEqual([
      'optionWithoutEffect cacheBoundaries,cacheIndex',
    ]);
    expect(await codes({ loadReportMaxAgeMs: 5000 })).toEqual([
      'reportMaxAgeBelowInterval loadReportMaxAgeMs,loadMonitorIntervalMs',
    ]);
    expect(await codes({ policyOptions: { least_load: {} } })).toEqual([
      'unusedPolicyOptions policyOptions.least_load',
    ]);
    expect(await codes({ policy: 'least_load', policyOptions: { least_load: {} } })).toEqual([]);
    expect(await codes({ policy: { name: 'cache_aware', cacheIndex: 'hash', cacheBoundaries: [16] } })).toEqual([
      'boundariesWithoutTokens cacheBoundaries',
    ]);
    expect(await codes({ policy: 'power_of_two' }, ['a'])).toEqual(['tooFewWorkers policy']);
    expect(await codes({ policy: { name: 'cache_aware', balanceAbsThreshold: 8 } }, ['a'])).toEqual([
      'balanceThresholdUnreachable balanceAbsThreshold',
    ]);
  });

  it('LB-41: reconfiguring tells as an event', async () => {
    const router = await fleet(['a', 'b']);
    const heard: string[] = [];
    router.on('warning', ({ code }) => heard.push(code));
    router.reconfigure({ loadReportMaxAgeMs: 1 });
    expect(heard).toEqual(['reportMaxAgeBelowInterval']);
  });

  it('ST-60a, LB-41: all pins are in one map: manual sets its limits, and what says otherwise elsewhere is told', async () => {
    const time = manualTime();
    const policy = { name: 'manual', maxIdleMs: 1000, evictionIntervalMs: 100 } as const;
    const router = await fleet(['a', 'b'], { policy, clock: time.clock });
    pick(router, { routingKey: 'k' });
    time.advance(1000);
    while (router.maintain());
    expect([router.pinCount, router.warnings]).toEqual([0, []]);
    router.reconfigure({ policy: 'cache_aware', maxPins: 5, policyOptions: { manual: { maxPins: 9, maxIdleMs: 7 } } });
    expect(router.warnings.map(({ code, fields }) => `${code} ${fields.join()}`)).toEqual([
      'optionWithoutEffect maxPins',
      'optionWithoutEffect maxIdleMs',
    ]);
  });

  it('LB-41: a worker of a kind that the mode never serves, when it is registered or becomes one', async () => {
    const router = await createRouter({ policy: 'random' });
    const told: unknown[] = [];
    router.on('warning', ({ code, fields, worker }) => told.push([code, fields, worker]));
    router.addWorker({ id: 'a' });
    router.addWorker({ id: 'p', kind: 'prefill' });
    const warning = (worker: string): unknown[] => ['kindWithoutLeg', ['kind', 'mode'], worker];
    expect(told).toEqual([warning('p')]);
    router.replaceWorker({ id: 'p', kind: 'prefill', models: ['m'] });
    expect(told).toHaveLength(1);
    router.replaceWorker({ id: 'a', kind: 'encode' });
    expect(told).toEqual([warning('p'), warning('a')]);
    expect(router.selectWorker({})).toMatchObject({ ok: false, reason: 'no_workers' });
    router.removeWorker('p');
    expect(router.warnings.map(({ message }) => message)).toEqual([
      'worker a is of kind encode, which mode regular never selects',
    ]);
    const legs = await createRouter({ mode: 'pd', policy: 'random' });
    for (const kind of ['prefill', 'decode', 'regular', 'encode'] as const) legs.addWorker({ id: kind, kind });
    expect(legs.warnings.map(({ worker }) => worker)).toEqual(['regular', 'encode']);
  });

  it('LB-30: a warning about a worker goes with it', async () => {
    const router = await fleet(['a', 'b']);
    for (const id of ['a', 'b']) router.reportLoad(id, {});
    router.removeWorker('a');
    expect(router.warnings.map(({ worker }) => worker)).toEqual(['b']);
  });
});

describe('removal and labels', () => {
  it('WK-64, LB-30: a removed worker leaves every pool, index and count; its pin is merely unavailable', async () => {
    const router = await createRouter({
      policy: 'cache_aware',
      seed: 1,
      routingKeyOverride: true,
      workerOverloadWaitingRequests: 5,
    });
    router.addWorker({ id: 'a', models: ['m', 'n'] });
    for (const model of ['m', 'n']) router.selectWorker({ model, text: prompt(1) });
    router.selectWorker({ model: 'm', routingKey: 'k' });
    router.kvEvents.applyBatch('a', {
      sequence: 0,
      events: [{ type: 'stored', hashes: [1], tokens: [1, 2], blockSize: 2 }],
    });
    router.begin('a');
    router.reportLoad('a', { waitingRequests: 9 });
    expect(router.worker('a')).toMatchObject({ inFlight: 1, available: false });
    router.removeWorker('a');
    expect(router.pools().flatMap(({ workers }) => workers)).toEqual([]);
    expect(router.leases().open).toBe(0);
    expect(router.pinCount).toBe(1);
    const learned = router.snapshot().pieces.filter(({ piece }) => piece.kind !== 'pins');
    expect(JSON.stringify(learned)).not.toContain('"a"');
    const back = router.addWorker({ id: 'a', models: ['m', 'n'] });
    expect(back).toMatchObject({ inFlight: 0, creditRequests: 0, selections: 0, report: undefined, available: true });
    for (const model of ['m', 'n']) {
      expect(router.explain({ model, text: prompt(1) }).selection.record.branch).not.toBe('tree_match');
    }
  });

  it('LM-28, CA-80: events count for a model whose own label asks for cache_aware', async () => {
    const router = await createRouter({ policy: 'round_robin', seed: 1 });
    for (const id of ['a', 'b']) router.addWorker({ id, models: ['m'], labels: { policy: 'cache_aware' } });
    const tokens = Array.from({ length: 8 }, (_, i) => i);
    router.kvEvents.applyBatch('b', {
      sequence: 0,
      events: [{ type: 'stored', hashes: [1, 2], tokens, blockSize: 4 }],
    });
    for (let i = 0; i < 5; i++) expect(pick(router, { tokens })).toBe('b');
    expect(router.kvEvents.counts.appliedBatches).toBe(1);
  });
});
