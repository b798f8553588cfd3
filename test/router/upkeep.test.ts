/** LB-5: a backlog, however long, is worked off in steps of a few hundred entries, and counts no more meanwhile. */
import { createRouter, type RouterOptions } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';

async function fleet(size: number, options: RouterOptions = {}) {
  const time = manualTime();
  const router = await createRouter({ policy: 'least_load', seed: 1, clock: time.clock, ...options });
  for (let i = 0; i < size; i++) router.addWorker({ id: `w${i}` });
  return { router, time };
}

describe('leases past their age', () => {
  it('LB-5, LB-23: a call releases 144 of them at most, the oldest first; the calls after it go on', async () => {
    const { router, time } = await fleet(1, { maxLeaseAgeMs: 1000 });
    const leases = Array.from({ length: 600 }, () => router.begin('w0'));
    time.advance(999);
    router.begin('w0');
    time.advance(1);
    const open: (number | undefined)[] = [];
    for (let call = 0; call < 6; call++) open.push(router.worker('w0')?.inFlight);
    expect(open).toEqual([457, 313, 169, 25, 1, 1]);
    expect(leases.every((lease) => !lease.open)).toBe(true);
  });

  it('LB-23: one that waits for its turn has expired all the same: what its host says of it does not count', async () => {
    const { router, time } = await fleet(1, { maxLeaseAgeMs: 1000 });
    const told: string[] = [];
    const leases = Array.from({ length: 1000 }, () => router.begin('w0'));
    time.advance(1000);
    router.on('leaseExpired', () => told.push('expired'));
    router.on('leaseEnded', ({ end }) => told.push(end));
    leases[999]?.end({ error: 'connect' });
    expect(router.worker('w0')).toMatchObject({ inFlight: 1000 - 144 - 1 - 144, consecutiveFailures: 0 });
    expect(new Set(told)).toEqual(new Set(['expired']));
    expect(told).toHaveLength(2 * (144 + 1 + 144));
  });

  it('LB-5: maintain() releases as many as its time allows and says whether some are left', async () => {
    const { router, time } = await fleet(1, { maxLeaseAgeMs: 1000, maintenanceBudgetMs: 1 });
    for (let i = 0; i < 50_000; i++) router.begin('w0');
    time.advance(1000);
    // The manual clock stands still: a step ends after 4 096 looks, one every 16 leases.
    expect(router.maintain()).toBe(false);
    expect(router.leases().open).toBe(0);
  });

  it('LB-5, LB-50: listeners hear of the step when it is done, and what they call does not take the next one', async () => {
    const { router, time } = await fleet(1, { maxLeaseAgeMs: 1000 });
    for (let i = 0; i < 1000; i++) router.begin('w0');
    const seen = new Set<number | undefined>();
    router.on('leaseExpired', () => seen.add(router.worker('w0')?.inFlight));
    time.advance(1000);
    expect(router.selectWorker({}).ok).toBe(true);
    expect([...seen]).toEqual([856]);
    expect(router.leases().open).toBe(856 - 144);
  });
});

describe('reports past their age', () => {
  it('LB-5, LR-30: a call tells of 288 of them at most; none has counted since it aged out', async () => {
    const { router, time } = await fleet(1000);
    router.reportLoads(router.workers().map(({ id }) => [id, { waitingRequests: 1, tokensPerSecond: 2000 }]));
    let lost = 0;
    router.on('reportLost', ({ reason }) => {
      if (reason === 'aged_out') lost += 1;
    });
    time.advance(29_999);
    const before = router.selectWorker({});
    expect(before.record.expectedWaitSeconds).toBeGreaterThan(0);
    for (let call = 0; call < 4; call++) router.worker('w0');
    time.advance(1001);
    const told: number[] = [];
    for (let call = 0; call < 5; call++) {
      const selection = router.selectWorker({});
      expect(selection.record.expectedWaitSeconds).toBeUndefined();
      told.push(lost);
    }
    expect(told).toEqual([288, 576, 864, 1000, 1000]);
    expect(router.workers().some(({ report }) => report !== undefined)).toBe(false);
  });

  it('LR-30: workers that come and go while the walk goes on are neither told of twice nor left out', async () => {
    const { router, time } = await fleet(600);
    router.reportLoads(router.workers().map(({ id }) => [id, { waitingRequests: 1 }]));
    const lost: string[] = [];
    router.on('reportLost', ({ worker, reason }) => lost.push(`${worker.id} ${reason}`));
    time.advance(31_000);
    router.worker('w0');
    expect(lost).toHaveLength(288);
    router.removeWorker('w599');
    router.addWorker({ id: 'late' });
    while (router.maintain());
    expect(lost.filter((line) => line.endsWith('aged_out'))).toHaveLength(599);
    expect(lost.filter((line) => line.endsWith('removed'))).toEqual(['w599 removed']);
    expect(new Set(lost).size).toBe(600);
  });
});

describe('workers for which a time comes', () => {
  it('CB-7, B54: breakers whose timeout passed between two calls turn half-open in the order of their moments', async () => {
    const { router, time } = await fleet(4, { circuitBreaker: { failureThreshold: 1, timeoutDurationMs: 1000 } });
    const told: string[] = [];
    router.on('breakerTransition', ({ worker, to }) => told.push(`${worker.id} ${to}`));
    for (const id of ['w2', 'w0', 'w3']) {
      router.begin(id).end({ error: 'connect' });
      time.advance(100);
    }
    router.removeWorker('w3');
    time.advance(2000);
    router.maintain();
    expect(told).toEqual(['w2 open', 'w0 open', 'w3 open', 'w2 half_open', 'w0 half_open']);
    time.advance(2000);
    router.maintain();
    expect(told).toHaveLength(5);
  });

  it('WK-18, LB-5: a draining worker that was taken back stays, one that was sent away again goes at its new time', async () => {
    const { router, time } = await fleet(3, { drainSettleMs: 1000 });
    for (const id of ['w0', 'w1']) router.setStatus(id, 'draining');
    time.advance(600);
    for (const id of ['w0', 'w1']) router.setStatus(id, 'ready');
    router.setStatus('w1', 'draining');
    time.advance(500);
    router.maintain();
    expect(router.workers().map(({ id }) => id)).toEqual(['w0', 'w1', 'w2']);
    time.advance(500);
    router.maintain();
    expect(router.workers().map(({ id }) => id)).toEqual(['w0', 'w2']);
  });
});
