/** Counting a dispatch in flight and ending it exactly once: by call, by signal, by age (LB-20 to LB-24). */
import { getEventListeners } from 'node:events';
import { createRouter, type Lease } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';
import { inFlight, oneWorker } from './one-worker.js';

describe('begin and end', () => {
  it('LB-20, WK-30: selecting credits and counts nothing in flight, begin counts, end releases exactly once', async () => {
    const router = await oneWorker();
    const selection = router.selectWorker({ tokens: [1, 2, 3] });
    if (!selection.ok) throw new Error('nothing selected');
    expect(router.worker('a')).toMatchObject({ inFlight: 0, creditTokens: 3, creditRequests: 1 });
    const lease = selection.begin();
    const other = selection.begin();
    expect(inFlight(router)).toBe(2);
    lease.end({ status: 200 });
    lease.end({ error: 'connect' });
    lease[Symbol.dispose]();
    expect(lease.open).toBe(false);
    expect(inFlight(router)).toBe(1);
    other[Symbol.dispose]();
    expect(inFlight(router)).toBe(0);
  });

  it('LB-20: acquire is both in one call; router.begin counts what was chosen elsewhere', async () => {
    const router = await oneWorker();
    const acquired = router.acquire({});
    if (!acquired.ok) throw new Error('nothing acquired');
    expect(inFlight(router)).toBe(1);
    const elsewhere = router.begin('a', { routingKey: 'k' });
    expect(router.worker('a')).toMatchObject({ inFlight: 2, activeKeys: 1 });
    elsewhere.end();
    acquired.lease.end();
    expect(router.worker('a')).toMatchObject({ inFlight: 0, activeKeys: 0 });
    expect(() => router.begin('nobody')).toThrow('workerId: expected a registered worker, got "nobody"');
    expect(() => router.begin('a', { routingKey: 'x'.repeat(129) })).toThrow(/^routingKey: /);
    expect(() => router.begin('a', { signal: {} as never })).toThrow(/^signal: /);
    expect(() => router.begin('a', { scope: {} as never })).toThrow(/^scope: /);
    expect(inFlight(router)).toBe(0);
  });

  it('WK-40, WK-41, WK-43: the effective key counts as a distinct (model, leg, key) while a request of it runs', async () => {
    const router = await createRouter({ policy: 'random', routingKeyOverride: true });
    router.addWorker({ id: 'a', models: ['m', 'n'] });
    const begin = (model: string, rid: string): Lease => {
      const acquired = router.acquire({ model, rid });
      if (!acquired.ok) throw new Error('nothing acquired');
      return acquired.lease;
    };
    const leases = [begin('m', 'k_t1'), begin('m', 'k_t2'), begin('n', 'k_t1'), begin('m', 'other')];
    expect(router.worker('a')?.activeKeys).toBe(3);
    for (const lease of leases) lease.end();
    expect(router.worker('a')?.activeKeys).toBe(0);
  });

  it('LB-21: after removal, or removal and re-adding, a late end touches nothing else', async () => {
    const router = await oneWorker();
    const events: string[] = [];
    router.on('leaseEnded', () => events.push('ended'));
    router.on('breakerOutcome', () => events.push('outcome'));
    const lease = router.begin('a');
    router.removeWorker('a');
    expect(router.leases()).toMatchObject({ open: 0 });
    router.addWorker({ id: 'a' });
    const fresh = router.begin('a');
    lease.end({ error: 'connect' });
    expect(router.worker('a')).toMatchObject({ inFlight: 1, consecutiveFailures: 0 });
    expect(router.leases().open).toBe(1);
    expect(events).toEqual([]);
    fresh.end();
    expect(inFlight(router)).toBe(0);
  });

  it('LB-23: open leases are observable; maxLeaseAgeMs releases older ones with an event, exactly at its age', async () => {
    const time = manualTime();
    const router = await oneWorker({ clock: time.clock, maxLeaseAgeMs: 1000 });
    const seen: unknown[] = [];
    router.on('leaseExpired', ({ worker, ageMs }) => seen.push([worker.id, ageMs]));
    router.on('leaseEnded', ({ end, outcome }) => seen.push([end, outcome]));
    const lease = router.begin('a');
    time.advance(400);
    router.begin('a');
    time.advance(599);
    expect(router.leases()).toMatchObject({ open: 2, oldestAgeMs: 999 });
    expect(router.leases().byWorker).toEqual(new Map([['a', 2]]));
    time.advance(1);
    expect(inFlight(router)).toBe(1);
    lease.end({ status: 500 });
    expect(inFlight(router)).toBe(1);
    expect(seen).toEqual([
      ['expired', undefined],
      ['a', 1000],
    ]);
    expect(router.worker('a')?.consecutiveFailures).toBe(0);
  });

  it('B27: without maxLeaseAgeMs nothing rewrites live counts, whatever time passes', async () => {
    const time = manualTime();
    const router = await oneWorker({ clock: time.clock });
    const leases = [router.begin('a'), router.begin('a'), router.begin('a')];
    time.advance(3_600_000);
    while (router.maintain());
    expect(inFlight(router)).toBe(3);
    for (const lease of leases) lease.end();
    expect(inFlight(router)).toBe(0);
  });
});

describe('signals', () => {
  it('LB-20, B32: an abort ends the lease at once, one that is aborted already too; nothing is recorded', async () => {
    const router = await oneWorker();
    const controller = new AbortController();
    const lease = router.begin('a', { signal: controller.signal });
    expect(inFlight(router)).toBe(1);
    controller.abort();
    expect([lease.open, inFlight(router)]).toEqual([false, 0]);
    const late = router.begin('a', { signal: controller.signal });
    expect([late.open, inFlight(router)]).toEqual([false, 0]);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
    expect(router.worker('a')).toMatchObject({ consecutiveFailures: 0, consecutiveSuccesses: 0 });
  });

  it('LB-15, LB-20: a signal that fails to be let go of leaves no count behind', async () => {
    const router = await oneWorker();
    const signal = {
      aborted: false,
      addEventListener: () => {},
      removeEventListener: () => {
        throw new Error('foreign');
      },
    };
    const lease = router.begin('a', { signal });
    lease.end({ status: 200 });
    expect([lease.open, inFlight(router), router.leases().open]).toEqual([false, 0, 0]);
    expect(router.worker('a')?.consecutiveSuccesses).toBe(1);
  });

  it('B29: acquiring with an aborted signal leaves no credit, no count and no pin', async () => {
    const router = await oneWorker({ routingKeyOverride: true });
    const controller = new AbortController();
    controller.abort();
    const acquired = router.acquire({ rid: 'k' }, { signal: controller.signal });
    expect(acquired).toMatchObject({ ok: true, lease: { open: false } });
    expect(router.worker('a')).toMatchObject({ inFlight: 0, creditTokens: 0, creditRequests: 0, selections: 0 });
    expect(router.pinCount).toBe(0);
    router.removeWorker('a');
    expect(router.acquire({}, { signal: controller.signal })).toMatchObject({ ok: false, reason: 'no_workers' });
  });

  it('LB-24, B35: a thousand requests on one long-lived signal leave no listener', async () => {
    const router = await oneWorker();
    const { signal } = new AbortController();
    for (let i = 0; i < 1000; i++) router.begin('a', { signal }).end({ status: 200 });
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

describe('counts', () => {
  it('WK-31: ends that come again, in any way, never take a count below zero', async () => {
    const router = await oneWorker();
    const abort = new AbortController();
    const lease = router.begin('a', { signal: abort.signal });
    lease.end({ status: 200 });
    abort.abort();
    lease.end();
    lease[Symbol.dispose]();
    expect(inFlight(router)).toBe(0);
    router.begin('a');
    expect(inFlight(router)).toBe(1);
    expect(router.leases().byWorker).toEqual(new Map([['a', 1]]));
  });

  it('WK-33: routers count for themselves, workers of one id included', async () => {
    const [first, second] = [await oneWorker(), await oneWorker()];
    const lease = first.begin('a');
    expect([inFlight(first), inFlight(second)]).toEqual([1, 0]);
    second.begin('a');
    second.begin('a');
    lease.end();
    expect([inFlight(first), inFlight(second)]).toEqual([0, 2]);
  });
});
