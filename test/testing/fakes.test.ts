import { createRouter, leastLoad, responseHeaders } from 'kvroute';
import { fakeCandidate, fakeFleet, fakeReport, fakeWorker } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';

describe('candidates and reports', () => {
  it('LB-10a: are literals a policy takes, each call its own', () => {
    expect(fakeCandidate()).toEqual({ id: 'w1', inFlight: 0 });
    expect(fakeCandidate({ id: 'gpu', inFlight: 4, activeKeys: 2 })).toEqual({ id: 'gpu', inFlight: 4, activeKeys: 2 });
    expect(fakeCandidate()).not.toBe(fakeCandidate());
    expect(fakeFleet(0)).toEqual([]);
    expect(fakeFleet(3, (index) => ({ inFlight: index * 2 }))).toEqual([
      { id: 'w1', inFlight: 0 },
      { id: 'w2', inFlight: 2 },
      { id: 'w3', inFlight: 4 },
    ]);
  });

  it('EW-1: the fake report is one of an idle engine, and counts as fresh', () => {
    const fleet = fakeFleet(2, (index) => ({ report: fakeReport(index === 0 ? { waitingTokens: 4000 } : {}) }));
    const selection = leastLoad().selectWorker({ tokens: [1] }, fleet);
    expect(selection).toMatchObject({ ok: true, worker: { id: 'w2' }, record: { expectedWaitSeconds: 0 } });
    expect(fakeReport()).not.toBe(fakeReport());
    expect(fakeReport({ dpRank: 3 })).toMatchObject({ dpRank: 3, kvCacheUsage: 0 });
  });
});

describe('fakeWorker', () => {
  it('has every property of a registered worker', async () => {
    const router = await createRouter({});
    const real = router.addWorker({ url: 'http://w1:8000' });
    const fake = fakeWorker();
    for (const [name, value] of Object.entries(fake)) {
      expect([name, real[name as keyof typeof real]]).toEqual([name, value]);
    }
    expect(Object.keys(fake).length).toBe(22);
  });

  it('derives identity, connection and availability from what it is given', () => {
    expect(fakeWorker({ id: 'gpu' })).toMatchObject({ id: 'gpu', url: undefined, connectionMode: 'http' });
    expect(fakeWorker({ url: 'grpcs://x:1' })).toMatchObject({ id: 'grpcs://x:1', connectionMode: 'grpc' });
    expect(fakeWorker({ id: 'z', url: 'ipc:///run/z' })).toMatchObject({ id: 'z', connectionMode: 'zmq' });
    expect(fakeWorker().available).toBe(true);
    expect(fakeWorker({ status: 'draining' }).available).toBe(false);
    expect(fakeWorker({ breakerState: 'open' }).available).toBe(false);
    expect(fakeWorker({ breakerState: 'half_open' }).available).toBe(true);
    const overload = { signal: 'kv_cache_usage', value: 0.95, threshold: 0.9 } as const;
    expect(fakeWorker({ overload }).available).toBe(false);
    expect(fakeWorker({ overload, available: true }).available).toBe(true);
    expect(responseHeaders(fakeWorker())).toEqual({ 'x-smg-routed-worker-id': 'http://w1:8000' });
  });
});
