import { createRouter, type Router, type RouterEventName } from 'kvroute';
import { describe, expect, it } from 'vitest';

async function fleet(ids: string[], options = {}): Promise<Router> {
  const router = await createRouter({ policy: 'round_robin', seed: 1, ...options });
  for (const id of ids) router.addWorker({ id });
  return router;
}

describe('subscriptions', () => {
  it('LB-50: on, once and off; on returns the function that unsubscribes', async () => {
    const router = await fleet(['a']);
    const heard: string[] = [];
    const stop = router.on('selected', () => heard.push('on'));
    const listener = (): unknown => heard.push('off');
    router.on('selected', listener);
    router.once('selected', () => heard.push('once'));
    router.selectWorker({});
    router.off('selected', listener);
    router.selectWorker({});
    stop();
    stop();
    router.selectWorker({});
    expect(heard).toEqual(['on', 'off', 'once', 'on']);
    expect(() => router.on('selected', undefined as never)).toThrow(TypeError);
  });

  it('B92: of A, B and C all run when B removes itself; a once listener that selects again runs once', async () => {
    const router = await fleet(['a']);
    const heard: string[] = [];
    router.on('selected', () => heard.push('A'));
    const stop = router.on('selected', () => {
      heard.push('B');
      stop();
    });
    router.on('selected', () => heard.push('C'));
    router.selectWorker({});
    expect(heard).toEqual(['A', 'B', 'C']);
    let once = 0;
    router.once('selected', () => {
      once += 1;
      router.selectWorker({});
    });
    router.selectWorker({});
    expect(once).toBe(1);
  });

  it('LB-15, B92: a listener that throws changes no result and leaves no count behind; it is told as a warning', async () => {
    const router = await fleet(['a']);
    const warned: unknown[] = [];
    for (const event of [
      'selected',
      'leaseBegan',
      'leaseEnded',
      'breakerOutcome',
      'workerRemoved',
      'warning',
    ] as RouterEventName[]) {
      router.on(event, () => {
        throw new Error(`listener of ${event}`);
      });
    }
    router.on('warning', ({ code, message, error }) => warned.push([code, message, (error as Error).message]));
    const selection = router.selectWorker({});
    if (!selection.ok) throw new Error('nothing selected');
    const lease = selection.begin();
    expect(selection.worker.inFlight).toBe(1);
    lease.end({ status: 200 });
    expect(selection.worker).toMatchObject({ inFlight: 0, consecutiveSuccesses: 1, creditRequests: 1 });
    expect(router.removeWorker('a')).toBe(true);
    expect(warned.map((row) => (row as string[])[2])).toEqual([
      'listener of selected',
      'listener of leaseBegan',
      'listener of breakerOutcome',
      'listener of leaseEnded',
      'listener of workerRemoved',
    ]);
  });

  it('LB-15: an async listener that fails is told as a warning too, and rejects nowhere', async () => {
    const router = await fleet(['a']);
    router.on('selected', async () => {
      throw new Error('later');
    });
    router.selectWorker({});
    await new Promise((resolve) => setImmediate(resolve));
    expect(router.warnings).toEqual([]);
    const warned: unknown[] = [];
    router.on('warning', ({ code }) => warned.push(code));
    router.selectWorker({});
    await new Promise((resolve) => setImmediate(resolve));
    expect(warned).toEqual(['listenerFailed']);
  });

  it('LB-50: events come after the state is committed, also those a policy causes while it records', async () => {
    const router = await fleet(['a'], { policy: 'cache_aware', routingKeyOverride: true, maxPins: 1 });
    const seen: string[] = [];
    const note = (event: string) => () =>
      seen.push(`${event} credit ${router.worker('a')?.creditRequests} pins ${router.pinCount}`);
    router.on('placement', note('placement'));
    router.on('pinEvicted', note('pinEvicted'));
    router.on('selected', note('selected'));
    router.selectWorker({ text: 'hello', rid: 'k1' });
    router.selectWorker({ text: 'hello', rid: 'k2' });
    expect(seen).toEqual([
      'placement credit 1 pins 1',
      'selected credit 1 pins 1',
      'pinEvicted credit 2 pins 1',
      'placement credit 2 pins 1',
      'selected credit 2 pins 1',
    ]);
  });

  it('LB-50: workers, statuses, reports, leases and selections, each with its payload', async () => {
    const router = await createRouter({ policy: 'passthrough', workerOverloadProtection: true });
    const log: string[] = [];
    router.on('workerAdded', ({ worker }) => log.push(`added ${worker.id}`));
    router.on('workerReplaced', ({ worker, revision }) => log.push(`replaced ${worker.id} ${revision}`));
    router.on('workerRemoved', ({ worker }) => log.push(`removed ${worker.id}`));
    router.on('workerStatus', ({ worker, from, to }) => log.push(`status ${worker.id} ${from} ${to}`));
    router.on('reportApplied', ({ worker, report }) => log.push(`report ${worker.id} ${JSON.stringify(report)}`));
    router.on('reportLost', ({ worker, reason }) => log.push(`lost ${worker.id} ${reason}`));
    router.on('overloadChanged', ({ worker, overload }) => log.push(`overload ${worker.id} ${overload?.value}`));
    router.on('selected', ({ worker, record }) => log.push(`selected ${worker.id} ${record.policy}`));
    router.on('notSelected', ({ reason }) => log.push(`none ${reason}`));
    router.on('leaseBegan', ({ worker, inFlight }) => log.push(`began ${worker.id} ${inFlight}`));
    router.on('leaseEnded', ({ worker, inFlight, end }) => log.push(`ended ${worker.id} ${inFlight} ${end}`));
    router.selectWorker({});
    router.addWorker({ id: 'a' });
    const acquired = router.acquire({});
    if (acquired.ok) acquired.lease.end({ status: 200 });
    router.reportLoad('a', { kvCacheUsage: 0.95 });
    router.setStatus('a', 'not_ready');
    router.replaceWorker({ id: 'a', models: ['m'] });
    router.removeWorker('a');
    expect(log).toEqual([
      'none no_workers',
      'added a',
      'selected a passthrough',
      'began a 1',
      'ended a 0 ended',
      'report a {"kvCacheUsage":0.95}',
      'overload a 0.95',
      'lost a not_ready',
      'overload a undefined',
      'status a ready not_ready',
      'replaced a 1',
      'removed a',
    ]);
  });

  it('CA-92: a gap in a worker’s KV events is told, with what was expected', async () => {
    const router = await fleet(['a'], { policy: 'cache_aware' });
    const gaps: unknown[] = [];
    router.on('kvEventGap', (gap) => gaps.push(gap));
    const batch = (sequence: number) => router.kvEvents.applyBatch('a', { sequence, events: [] });
    expect([batch(5), batch(6), batch(9)]).toEqual([
      { result: 'applied' },
      { result: 'applied' },
      { result: 'gap', expected: 7, received: 9 },
    ]);
    router.kvEvents.reset('a');
    expect(batch(9)).toEqual({ result: 'applied' });
    expect(router.kvEvents.applyBatch('nobody', { sequence: 0, events: [] })).toMatchObject({ result: 'rejected' });
    expect(gaps).toEqual([{ worker: 'a', expected: 7, received: 9 }]);
    expect(router.kvEvents.counts).toMatchObject({ appliedBatches: 3, gaps: 1, unknownWorkerBatches: 1 });
  });
});
