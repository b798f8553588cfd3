/** LB-35: what a running policy does once its options, or the stickiness around it, have changed. */
import { createRouter, type Router, type RouterOptions } from 'kvroute';
import { manualClock } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';

async function fleet(ids: readonly string[], options: RouterOptions): Promise<Router> {
  const router = await createRouter({ seed: 1, ...options });
  for (const id of ids) router.addWorker({ id });
  return router;
}

function pick(router: Router, request = {}): string {
  const selection = router.selectWorker(request);
  return selection.ok ? selection.worker.id : selection.reason;
}

const keyed = (i: number) => ({ headers: { 'x-smg-routing-key': `session-${i}` } });

describe('LB-35: policies that are running', () => {
  it('WK-61: a policy that hashes finds the registered workers on its ring when it takes over', async () => {
    const ids = ['a', 'b', 'c', 'd'];
    const router = await fleet(ids, { policy: 'random' });
    router.reconfigure({ policy: 'consistent_hashing' });
    const fresh = await fleet(ids, { policy: 'consistent_hashing' });
    const places = Array.from({ length: 200 }, (_, i) => pick(fresh, keyed(i)));
    expect(new Set(places)).toEqual(new Set(ids));
    expect(Array.from({ length: 200 }, (_, i) => pick(router, keyed(i)))).toEqual(places);
  });

  it('BU-6: bucket keeps its ranges and what it routed, and compares with the new thresholds', async () => {
    const clock = manualClock();
    const open = { name: 'bucket', legs: 'any', balanceAbsThreshold: 1_000_000 } as const;
    const router = await fleet(['a', 'b'], { policy: open, clock: clock.clock });
    const short = { tokens: new Uint32Array(100) };
    // Short requests belong to the first of two even ranges, whatever it was given before.
    expect([pick(router, short), pick(router, short), pick(router, short)]).toEqual(['a', 'a', 'a']);
    router.reconfigure({ policy: { ...open, balanceAbsThreshold: 64 } });
    // 300 tokens to none in the window are too uneven now: the other one takes the request.
    expect(pick(router, short)).toBe('b');
  });

  it('ST-50: another assignment mode of the override counts from the next new key on, pins stay', async () => {
    const sticky = { policy: 'passthrough', routingKeyOverride: true } as const;
    const router = await fleet(['a', 'b', 'c'], sticky);
    expect(pick(router, { rid: 'first' })).toBe('a');
    for (let i = 0; i < 3; i++) router.begin('a');
    router.begin('b');
    router.reconfigure({ ...sticky, assignmentMode: 'min_load' });
    expect(pick(router, { rid: 'second' })).toBe('c');
    expect(pick(router, { rid: 'first' })).toBe('a');
    router.reconfigure(sticky);
    expect(pick(router, { rid: 'third' })).toBe('a');
    expect(pick(router, { rid: 'second' })).toBe('c');
    expect(router.pinCount).toBe(3);
  });
});
