/** What was learned, carried over a restart in snapshots and to other replicas by placements (LB-33, LB-34). */
import { createRouter, type Placement, type Router, SnapshotError } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';
import { fleet, pick, prompt } from './cached-fleet.js';

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
