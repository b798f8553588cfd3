/** The one removal routine, and what a model's label brings into its pool (WK-64, LB-30, LM-28). */
import { createRouter } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { pick, prompt } from './cached-fleet.js';

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
