import { createRouter, responseHeaders } from 'kvroute';
import { describe, expect, it } from 'vitest';

describe('responseHeaders', () => {
  it('OB-100: names the worker by its URL as registered, rank included; from a worker, a selection or an acquire', async () => {
    const router = await createRouter({ policy: 'random' });
    const worker = router.addWorker({ id: 'rank-3', url: 'http://10.0.0.1:8000@3' });
    const expected = { 'x-smg-routed-worker-id': 'http://10.0.0.1:8000@3' };
    expect(responseHeaders(worker)).toEqual(expected);
    expect(responseHeaders(router.selectWorker({}))).toEqual(expected);
    expect(responseHeaders(router.acquire({}))).toEqual(expected);
  });

  it('OB-100, WK-1: a worker without a URL is named by its id', async () => {
    const router = await createRouter({});
    expect(responseHeaders(router.addWorker({ id: 'gpu-7' }))).toEqual({ 'x-smg-routed-worker-id': 'gpu-7' });
  });

  it('OB-100: no header when the value is no legal header value, or the worker does not speak HTTP', async () => {
    const router = await createRouter({});
    for (const id of ['gpu\r\nset-cookie: a=b', 'gpü', 'gpu\u0000', 'gpu\u007f']) {
      expect(responseHeaders(router.addWorker({ id }))).toEqual({});
    }
    expect(responseHeaders(router.addWorker({ url: 'grpc://w:1' }))).toEqual({});
    expect(responseHeaders(router.addWorker({ url: 'ipc:///run/w' }))).toEqual({});
  });

  it('OB-100, LM-35: of a disaggregated request the decode worker is named', async () => {
    const router = await createRouter({ mode: 'pd', policy: 'random' });
    router.addWorker({ url: 'http://p:1', kind: 'prefill' });
    router.addWorker({ url: 'http://d:1', kind: 'decode' });
    expect(responseHeaders(router.selectLegs({}))).toEqual({ 'x-smg-routed-worker-id': 'http://d:1' });
  });

  it('OB-101, OV-20: an empty selection gives its code, a shed also Retry-After in whole seconds, rounded up', async () => {
    const router = await createRouter({ workerOverloadProtection: true, loadMonitorIntervalMs: 1500 });
    expect(responseHeaders(router.selectWorker({}))).toEqual({ 'X-SMG-Error-Code': 'no_available_workers' });
    router.addWorker({ id: 'a' });
    router.reportLoad('a', { kvCacheUsage: 1 });
    expect(responseHeaders(router.selectWorker({}))).toEqual({
      'X-SMG-Error-Code': 'worker_overload_protection_shed',
      'Retry-After': '2',
    });
  });

  it('OB-101, LM-32: workers that do not pair', async () => {
    const router = await createRouter({ mode: 'pd', policy: 'random' });
    router.addWorker({ id: 'p', kind: 'prefill', labels: { pairing_protocol: 'x' } });
    router.addWorker({ id: 'd', kind: 'decode', labels: { pairing_protocol: 'y' } });
    expect(responseHeaders(router.selectLegs({}))).toEqual({ 'X-SMG-Error-Code': 'no_compatible_pd_pair' });
  });
});
