/** Which policies a router accepts for its legs, and a few rules that need no test file of their own. */
import { createRouter, loadHash, type RouterOptions, RoutingConfigError } from 'kvroute';
import { describe, expect, it } from 'vitest';

async function refusal(options: RouterOptions): Promise<string | undefined> {
  try {
    await createRouter(options);
    return undefined;
  } catch (error) {
    if (error instanceof RoutingConfigError) return error.field;
    throw error;
  }
}

describe('policies of legs', () => {
  it('LM-10, LM-16: bucket on the decode leg is refused in every mode, explicit or inherited', async () => {
    for (const mode of ['pd', 'epd'] as const) {
      expect(await refusal({ mode, decodePolicy: 'bucket' })).toBe('decodePolicy');
      expect(await refusal({ mode, policy: 'bucket' })).toBe('policy');
      expect(await refusal({ mode, policy: 'bucket', decodePolicy: 'random' })).toBeUndefined();
      expect(await refusal({ mode, prefillPolicy: 'bucket' })).toBeUndefined();
    }
    expect(await refusal({ decodePolicy: 'bucket' })).toBe('decodePolicy');
  });

  it('LM-11: an encode leg takes random, round_robin or consistent_hashing', async () => {
    for (const encodePolicy of ['random', 'round_robin', 'consistent_hashing'] as const) {
      expect(await refusal({ mode: 'epd', encodePolicy })).toBeUndefined();
    }
    for (const encodePolicy of ['cache_aware', 'least_load', 'passthrough'] as const) {
      expect(await refusal({ mode: 'epd', encodePolicy })).toBe('encodePolicy');
    }
  });

  it('LM-13, LM-16: passthrough on the prefill or decode leg is refused, explicit or inherited', async () => {
    expect(await refusal({ mode: 'pd', policy: 'passthrough' })).toBe('policy');
    expect(await refusal({ mode: 'pd', prefillPolicy: 'passthrough' })).toBe('prefillPolicy');
    expect(await refusal({ mode: 'pd', decodePolicy: { name: 'passthrough' } })).toBe('decodePolicy');
    expect(await refusal({ policy: 'passthrough' })).toBeUndefined();
  });

  it('LM-14, CF-117: bucket outside pd names the fix, unless it says legs any', async () => {
    expect(await refusal({ policy: 'bucket' })).toBe('policy');
    await expect(createRouter({ policy: 'bucket' })).rejects.toThrow(/legs: 'any'/);
    expect(await refusal({ policy: { name: 'bucket', legs: 'any' } })).toBeUndefined();
  });

  it('LM-16, LM-12: the same checks at reconfiguration; too few workers for power_of_two is a warning', async () => {
    const router = await createRouter({ mode: 'pd', policy: 'power_of_two' });
    for (const policy of ['bucket', 'passthrough'] as const) {
      expect(() => router.reconfigure({ policy })).toThrow(RoutingConfigError);
    }
    expect(router.pools().map(({ policy }) => policy)).toEqual(['power_of_two', 'power_of_two']);
    router.addWorker({ id: 'p', kind: 'prefill' });
    router.addWorker({ id: 'd', kind: 'decode' });
    expect(router.selectLegs({}).ok).toBe(true);
    expect(router.warnings.map(({ code }) => code)).toContain('tooFewWorkers');
  });
});

describe('fleet', () => {
  it('WK-60: workers by model, kind, connection mode and status, in registration order', async () => {
    const router = await createRouter({ mode: 'pd', policy: 'random' });
    router.addWorker({ id: 'p1', kind: 'prefill', models: ['m', 'n'] });
    router.addWorker({ id: 'd1', kind: 'decode', models: ['m'], connectionMode: 'grpc' });
    router.addWorker({ id: 'p2', kind: 'prefill', models: ['m'], status: 'pending' });
    const ids = (filter: Parameters<typeof router.workers>[0]): string[] => router.workers(filter).map(({ id }) => id);
    expect(ids({})).toEqual(['p1', 'd1', 'p2']);
    expect(ids({ model: 'm', kind: 'prefill' })).toEqual(['p1', 'p2']);
    expect(ids({ model: 'n' })).toEqual(['p1']);
    expect(ids({ connectionMode: 'grpc' })).toEqual(['d1']);
    expect(ids({ kind: 'prefill', status: 'ready' })).toEqual(['p1']);
    expect(ids({ model: 'nobody' })).toEqual([]);
  });

  it('WK-61, WK-11: a worker of several models has no double weight on the ring of all', async () => {
    const router = await createRouter({ policy: 'consistent_hashing' });
    const plain = await createRouter({ policy: 'consistent_hashing' });
    for (const id of ['a', 'b', 'c']) {
      router.addWorker({ id, models: id === 'a' ? ['m', 'n', 'o'] : ['m'] });
      plain.addWorker({ id });
    }
    for (let i = 0; i < 200; i++) {
      const request = { headers: { 'x-smg-routing-key': `key ${i}` } };
      const [all, one] = [router.selectWorker(request), plain.selectWorker(request)];
      expect(all.ok && all.worker.id).toBe(one.ok && one.worker.id);
    }
  });

  it('WK-61, LB-35: the nodes of a worker are hashed once, however many rings it joins, and each ring is its own', async () => {
    const hash = await loadHash();
    const hashed = new Map<string, number>();
    const counting = (data: string | Uint8Array): bigint => {
      if (typeof data === 'string') hashed.set(data, (hashed.get(data) ?? 0) + 1);
      return hash(data);
    };
    const router = await createRouter({ policy: 'consistent_hashing', hash: counting });
    router.addWorker({ id: 'a', models: ['m', 'n', 'o'] });
    router.addWorker({ id: 'b', models: ['m'] });
    expect(hashed.size).toBe(300);
    expect(new Set(hashed.values())).toEqual(new Set([1]));
    router.replaceWorker({ id: 'b', models: ['n', 'o', 'p'] });
    expect(hashed.get('b#149')).toBe(2);
    // Only the ring of `m` lost a worker; the others still have the nodes of both.
    const owners = (model: string): Set<string | false> =>
      new Set(
        Array.from({ length: 50 }, (_, i) => {
          const selection = router.selectWorker({ model, headers: { 'x-smg-routing-key': `key ${i}` } });
          return selection.ok && selection.worker.id;
        }),
      );
    expect([owners('m'), owners('n'), owners('o'), owners('p')]).toEqual([
      new Set(['a']),
      new Set(['a', 'b']),
      new Set(['a', 'b']),
      new Set(['b']),
    ]);
  });

  it('WK-61, WK-20: the ring holds every registered worker: who comes back gets its keys back', async () => {
    const router = await createRouter({ policy: 'consistent_hashing' });
    for (const id of ['a', 'b', 'c']) router.addWorker({ id });
    const place = (): (string | false)[] =>
      Array.from({ length: 100 }, (_, i) => {
        const selection = router.selectWorker({ headers: { 'x-smg-routing-key': `key ${i}` } });
        return selection.ok && selection.worker.id;
      });
    const before = place();
    router.setStatus('b', 'not_ready');
    const without = place();
    expect(without.every((id, i) => (before[i] === 'b' ? id !== 'b' : id === before[i]))).toBe(true);
    router.setStatus('b', 'ready');
    expect(place()).toEqual(before);
  });

  it('OV-23: what the waiting cap refuses is no shed', async () => {
    const router = await createRouter({ policy: { name: 'least_load', maxWaitingRequests: 2 } });
    router.addWorker({ id: 'a' });
    router.reportLoad('a', { waitingRequests: 2 });
    expect(router.selectWorker({})).toMatchObject({
      ok: false,
      reason: 'waiting_cap',
      code: 'no_available_workers',
      retryable: true,
    });
  });

  it('OV-8: a vetoed worker serves under no policy, on no leg, and what runs goes on', async () => {
    const router = await createRouter({ mode: 'pd', policy: 'random', workerOverloadWaitingRequests: 5 });
    router.addWorker({ id: 'p', kind: 'prefill' });
    for (const id of ['d1', 'd2']) router.addWorker({ id, kind: 'decode' });
    const lease = router.begin('d1');
    router.reportLoad('d1', { waitingRequests: 5 });
    for (let i = 0; i < 50; i++) {
      const legs = router.selectLegs({});
      expect(legs.ok && legs.decode.worker.id).toBe('d2');
    }
    expect(lease.open).toBe(true);
    router.reportLoad('d2', { waitingRequests: 6 });
    expect(router.selectLegs({})).toMatchObject({ ok: false, reason: 'overloaded', leg: 'decode', retryable: false });
  });

  it('CB-33: a failed prefill leg records nothing on the decode worker', async () => {
    const router = await createRouter({ mode: 'pd', policy: 'random' });
    router.addWorker({ id: 'p', kind: 'prefill' });
    router.addWorker({ id: 'd', kind: 'decode' });
    const legs = router.selectLegs({});
    if (!legs.ok) throw new Error('nothing selected');
    const [prefill, decode] = [legs.prefill.begin(), legs.decode.begin()];
    prefill.end({ error: 'connect' });
    decode.end();
    expect(router.worker('p')?.consecutiveFailures).toBe(1);
    expect(router.worker('d')).toMatchObject({ consecutiveFailures: 0, consecutiveSuccesses: 0, inFlight: 0 });
  });
});
