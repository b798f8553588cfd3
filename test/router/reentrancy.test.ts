/** Listeners that call the router back: they see whole changes only, and what they do then holds (LB-15, LB-50). */
import { createRouter, type Router } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';

async function fleet(ids: readonly string[], options = {}): Promise<Router> {
  const router = await createRouter({ policy: 'round_robin', seed: 1, ...options });
  for (const id of ids) router.addWorker({ id });
  return router;
}

const ids = (router: Router): string[] => router.workers().map((worker) => worker.id);
const pooled = (router: Router): Record<string, readonly string[]> =>
  Object.fromEntries(router.pools().map(({ model, workers }) => [model, workers]));

describe('membership', () => {
  it('LB-50, LB-30: a worker removed while its replacement is told stays removed, in every pool', async () => {
    const router = await fleet([]);
    router.addWorker({ id: 'a', models: ['m'] });
    router.addWorker({ id: 'b', models: ['m'] });
    router.reportLoad('a', { waitingRequests: 1 });
    const seen: unknown[] = [];
    router.on('reportLost', ({ worker }) => {
      seen.push(worker.models);
      router.removeWorker(worker.id);
    });
    router.replaceWorker({ id: 'a', models: ['n'] });
    expect(seen).toEqual([['n']]);
    expect(ids(router)).toEqual(['b']);
    expect(pooled(router)).toEqual({ unknown: ['b'], m: ['b'] });
  });

  it('LB-50: a removal is told once, when it is done; an id registered anew by a listener stays', async () => {
    const router = await fleet(['a']);
    router.reportLoad('a', { waitingRequests: 1 });
    let removals = 0;
    const found: boolean[] = [];
    router.on('reportLost', ({ worker }) => found.push(router.removeWorker(worker.id)));
    router.on('workerRemoved', () => {
      removals += 1;
      router.addWorker({ id: 'a' });
    });
    router.removeWorker('a');
    expect(removals).toBe(1);
    expect(found).toEqual([false]);
    expect(ids(router)).toEqual(['a']);
    expect(pooled(router)).toEqual({ unknown: ['a'] });
  });

  it('WK-66, LB-50: reconciling is one change: no listener meets the fleet half way', async () => {
    const router = await fleet(['a', 'b']);
    const met: string[][] = [];
    for (const event of ['workerAdded', 'workerRemoved', 'workerReplaced'] as const) {
      router.on(event, () => met.push(ids(router)));
    }
    router.reconcile([{ id: 'b', labels: { zone: '1' } }, { id: 'c' }]);
    expect(met).toEqual([
      ['b', 'c'],
      ['b', 'c'],
      ['b', 'c'],
    ]);
  });

  it('WK-66, LB-21, LB-30: reconciling lets go of the leases of all whom it removes, and of no others', async () => {
    const router = await fleet(['a', 'b', 'c']);
    const leases = ['a', 'b', 'c', 'a', 'b', 'c'].map((id) => router.begin(id));
    router.reconcile([{ id: 'b' }]);
    expect(router.leases()).toMatchObject({ open: 2, byWorker: new Map([['b', 2]]) });
    for (const lease of leases) lease.end({ status: 500 });
    expect(router.leases().open).toBe(0);
    expect(router.worker('b')).toMatchObject({ inFlight: 0, consecutiveFailures: 2 });
  });

  it('WK-19: of two drained workers, one that a listener takes back stays', async () => {
    const time = manualTime();
    const router = await fleet(['a', 'b'], { clock: time.clock });
    router.setStatus('a', 'draining');
    router.setStatus('b', 'draining');
    router.once('workerRemoved', () => router.setStatus('b', 'ready'));
    time.advance(5000);
    expect(ids(router)).toEqual(['b']);
    time.advance(50_000);
    expect(router.worker('b')?.status).toBe('ready');
  });

  it('WK-18: statuses set by a listener are told after the one it listened to', async () => {
    const router = await fleet(['a']);
    router.reportLoad('a', { waitingRequests: 1 });
    const told: string[] = [];
    router.on('workerStatus', ({ from, to }) => told.push(`${from}>${to}`));
    router.on('reportLost', ({ worker }) => router.setStatus(worker.id, 'failed'));
    router.setStatus('a', 'not_ready');
    expect(told.sort()).toEqual(['not_ready>failed', 'ready>not_ready']);
    expect(router.worker('a')?.status).toBe('failed');
  });
});

describe('requests', () => {
  it('LB-50, LB-30: legs are recorded before any of them is told: a listener may remove the next one', async () => {
    const router = await createRouter({ mode: 'pd', policy: 'round_robin' });
    router.addWorker({ id: 'p', kind: 'prefill' });
    router.addWorker({ id: 'd', kind: 'decode' });
    router.once('selected', () => router.removeWorker('d'));
    const legs = router.selectLegs({});
    if (!legs.ok) throw new Error('nothing selected');
    const lease = legs.decode.begin();
    lease.end({ status: 200 });
    expect(router.leases().open).toBe(0);
    expect(router.selectLegs({})).toMatchObject({ ok: false, reason: 'no_workers', leg: 'decode' });
  });

  it('LB-21, LB-23: a lease begun after its worker was removed is its holder’s alone and never expires', async () => {
    const time = manualTime();
    const router = await fleet(['a', 'b'], { clock: time.clock, maxLeaseAgeMs: 1000 });
    const told: string[] = [];
    for (const event of ['leaseBegan', 'leaseEnded', 'leaseExpired'] as const) router.on(event, () => told.push(event));
    const selection = router.selectWorker({});
    if (!selection.ok) throw new Error('nothing selected');
    router.removeWorker(selection.worker.id);
    const lease = selection.begin();
    expect(selection.worker.inFlight).toBe(1);
    expect(router.leases()).toEqual({ open: 0, oldestAgeMs: 0, byWorker: new Map() });
    time.advance(2000);
    expect(router.leases().open).toBe(0);
    expect(lease.open).toBe(true);
    lease.end({ status: 500 });
    expect(selection.worker.inFlight).toBe(0);
    expect(told).toEqual([]);
  });

  it('LB-23: leaseExpired comes after the leaseEnded of the same lease', async () => {
    const time = manualTime();
    const router = await fleet(['a'], { clock: time.clock, maxLeaseAgeMs: 10 });
    const told: string[] = [];
    router.on('leaseExpired', () => told.push('leaseExpired'));
    router.on('leaseEnded', ({ end }) => told.push(`leaseEnded ${end}`));
    router.acquire({});
    time.advance(10);
    router.maintain();
    expect(told).toEqual(['leaseEnded expired', 'leaseExpired']);
  });

  it('LB-50: after off a listener is not called, not even by the event that is on its round', async () => {
    const router = await fleet([]);
    let calls = 0;
    const later = (): void => {
      calls += 1;
    };
    router.on('workerAdded', () => router.off('workerAdded', later));
    router.on('workerAdded', later);
    router.addWorker({ id: 'a' });
    expect(calls).toBe(0);
  });
});

describe('reports', () => {
  it('LR-22, LR-27: who hears of a lost report finds the whole tick applied', async () => {
    const router = await fleet(['a', 'b', 'c']);
    router.reportLoads([
      ['a', { waitingRequests: 5 }],
      ['b', { waitingRequests: 5 }],
    ]);
    const met: unknown[] = [];
    router.once('reportLost', () => met.push(router.worker('b')?.report, router.worker('c')?.report));
    router.reportLoads([
      ['a', null],
      ['b', null],
      ['c', { waitingRequests: 1 }],
    ]);
    expect(met).toEqual([undefined, { waitingRequests: 1 }]);
  });

  it('LR-27: of two entries of one worker the later one counts', async () => {
    const router = await fleet(['a']);
    const report = { waitingRequests: 1 };
    expect(
      router.reportLoads([
        ['a', null],
        ['a', report],
      ]),
    ).toEqual({ applied: 1, lost: 1, invalid: 0, ignored: 0 });
    expect(router.worker('a')?.report).toBe(report);
  });

  it('LR-30, OV-9: a veto that aged out is told as gone before the next report counts, without maintenance between', async () => {
    const time = manualTime();
    const router = await fleet(['a'], { clock: time.clock, workerOverloadProtection: true });
    const told: unknown[] = [];
    router.on('overloadChanged', ({ overload }) => told.push(overload?.signal ?? 'none'));
    router.on('reportLost', ({ reason }) => told.push(reason));
    router.on('reportApplied', () => told.push('applied'));
    time.advance(500);
    router.reportLoad('a', { kvCacheUsage: 0.95 });
    time.advance(29_900);
    router.maintain();
    time.advance(100);
    router.reportLoad('a', { kvCacheUsage: 0.1 });
    expect(told).toEqual(['applied', 'kv_cache_usage', 'aged_out', 'none', 'applied']);
  });

  it('LR-31, OV-9: a sample that is too old on arrival vetoes nobody and announces no veto', async () => {
    const time = manualTime();
    const router = await fleet(['a'], { clock: time.clock, workerOverloadProtection: true });
    const told: unknown[] = [];
    router.on('overloadChanged', ({ overload }) => told.push(overload));
    router.reportLoad('a', { kvCacheUsage: 1, observedAt: time.now - 30_000 });
    expect(router.worker('a')).toMatchObject({ available: true, report: undefined, overload: undefined });
    expect(told).toEqual([]);
  });
});
