import { createRouter, type Router, type RouterOptions } from 'kvroute';
import { manualClock, recordDecisions } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';

describe('recordDecisions', () => {
  it('writes one line for each selection, refusal, begin and end, with everything that is defined', async () => {
    const { clock } = manualClock();
    const router = await createRouter({ clock, seed: 1, policy: 'cache_aware', workerOverloadProtection: true });
    const recorder = recordDecisions(router);
    router.addWorker({ id: 'a', models: ['m'] });
    const first = router.acquire({ model: 'm', text: 'hello world' });
    router.selectWorker({ model: 'm', text: 'hello world', exclude: ['a'] });
    router.selectWorker({ text: 'hello' });
    if (first.ok) first.lease.end({ status: 200 });
    const elsewhere = router.begin('a');
    elsewhere.end({ error: 'timeout' });
    router.reportLoad('a', { kvCacheUsage: 0.95 });
    router.selectWorker({ model: 'm' });
    expect(recorder.lines).toEqual([
      'select a cache_aware expected_wait_fallback matchedRatio=0 threshold=0.3 inFlight=0 model=m',
      'begin a inFlight=1',
      'refuse no_available_workers no_available_workers excluded=1 cache_aware model=m',
      'select a cache_aware expected_wait_fallback matchedRatio=0 threshold=0.3 inFlight=1',
      'end a inFlight=0 by=ended status=200',
      'begin a inFlight=1',
      'end a inFlight=0 by=ended error=timeout',
      'refuse overloaded worker_overload_protection_shed stage=selection retryAfterMs=10000 cache_aware model=m',
    ]);
    expect(recorder.text).toBe(`${recorder.lines.join('\n')}\n`);
  });

  it('OB-93: a routing key shows as its hash, with source and the branch of the policy below', async () => {
    const router = await createRouter({ policy: 'cache_aware', routingKeyOverride: true });
    const recorder = recordDecisions(router);
    router.addWorker({ id: 'a' });
    router.selectWorker({ routingKey: 'secret', text: 'hello' });
    expect(recorder.lines.length).toBe(1);
    expect(recorder.lines[0]).toMatch(
      /^select a cache_aware vacant policyBranch=expected_wait_fallback source=header keyHash=[0-9a-f]{16} matchedRatio=0 threshold=0.3 inFlight=0$/,
    );
    expect(recorder.text).not.toContain('secret');
  });

  it('clear forgets, stop unsubscribes', async () => {
    const router = await createRouter({ policy: 'round_robin' });
    const recorder = recordDecisions(router);
    router.addWorker({ id: 'a' });
    router.selectWorker({});
    recorder.clear();
    expect([recorder.lines.length, recorder.text]).toEqual([0, '']);
    router.selectWorker({});
    expect(recorder.lines).toEqual(['select a round_robin inFlight=0']);
    recorder.stop();
    router.selectWorker({});
    expect(recorder.lines.length).toBe(1);
  });

  it('LB-3: two runs of one scenario are equal byte for byte, another seed is not', async () => {
    const run = async (seed: number): Promise<string> => {
      const { clock, advance } = manualClock();
      const options: RouterOptions = { clock, seed, policy: 'power_of_two', routingKeyOverride: true };
      const router: Router = await createRouter(options);
      const recorder = recordDecisions(router);
      for (const id of ['a', 'b', 'c', 'd']) router.addWorker({ id });
      for (let i = 0; i < 60; i++) {
        const result = router.acquire({ tokens: [i, i + 1], rid: i % 4 === 0 ? `c${i % 3}` : undefined });
        advance(i);
        if (result.ok && i % 3 !== 0) result.lease.end({ status: i % 7 === 0 ? 500 : 200 });
        if (i % 10 === 0) router.reportLoad('b', { waitingTokens: i * 100, tokensPerSecond: 700 });
      }
      return recorder.text;
    };
    const first = await run(1);
    expect(first.split('\n').length).toBe(161);
    expect(await run(1)).toBe(first);
    expect(await run(2)).not.toBe(first);
  });
});
