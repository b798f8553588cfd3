/** What the ends of leases tell the breakers (CB-20 to CB-33). */
import { type Lease, RequestScope } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../support/manual-time.js';
import { inFlight, oneWorker } from './one-worker.js';

describe('outcomes', () => {
  it('CB-20, CB-25: statuses, no answer and aborts reach the breaker once, at the end', async () => {
    const router = await oneWorker({ circuitBreaker: { failureThreshold: 3 } });
    const end = (outcome: Parameters<Lease['end']>[0]): number | undefined => {
      router.begin('a').end(outcome);
      return router.worker('a')?.consecutiveFailures;
    };
    expect(end({ status: 500 })).toBe(1);
    expect(end({ status: 429 })).toBe(1);
    expect(end({ aborted: true })).toBe(1);
    expect(end(undefined)).toBe(1);
    expect(end({ error: 'timeout' })).toBe(2);
    expect(end({ status: 404 })).toBe(0);
    expect(end({ error: 'connect' })).toBe(1);
  });

  it('LB-22, CB-30, CB-31: one request charges a worker once, whatever its attempts', async () => {
    const router = await oneWorker();
    router.addWorker({ id: 'b' });
    const scope = new RequestScope();
    for (const id of ['a', 'b', 'a']) router.begin(id, { scope }).end({ status: 500 });
    expect(router.workers().map((worker) => worker.consecutiveFailures)).toEqual([1, 1]);
    expect(router.recordOutcome('a', { status: 500 }, scope)).toBe(true);
    expect(router.worker('a')?.consecutiveFailures).toBe(1);
    expect(router.recordOutcome('a', { status: 500 })).toBe(true);
    expect(router.worker('a')?.consecutiveFailures).toBe(2);
    expect(router.recordOutcome('nobody', { status: 500 })).toBe(false);
  });

  it('CB-32: a request id stands for a scope; the last 4 096 are remembered', async () => {
    const router = await oneWorker({ disableCircuitBreaker: true });
    const failures = (): number | undefined => router.worker('a')?.consecutiveFailures;
    for (let i = 0; i < 3; i++) router.begin('a', { scope: 'request-1' }).end({ status: 500 });
    router.recordOutcome('a', { status: 500 }, 'request-1');
    expect(failures()).toBe(1);
    for (let i = 2; i <= 4096; i++) router.recordOutcome('a', { status: 500 }, `request-${i}`);
    router.recordOutcome('a', { status: 500 }, 'request-1');
    expect(failures()).toBe(4096);
    router.recordOutcome('a', { status: 500 }, 'one more');
    router.recordOutcome('a', { status: 500 }, 'request-2');
    expect(failures()).toBe(4098);
    expect(() => router.recordOutcome('a', { status: 500 }, '')).toThrow(/^scope: /);
    expect(() => router.begin('a', { scope: 'x'.repeat(257) })).toThrow(/^scope: /);
    expect(router.recordOutcome('a', { status: 500 }, 'x'.repeat(256))).toBe(true);
    expect(inFlight(router)).toBe(0);
  });

  it('CB-2, CB-4, CB-5, CB-7: an opened breaker takes its worker out, half-open lets it in again, events tell', async () => {
    const time = manualTime();
    const router = await oneWorker({
      clock: time.clock,
      circuitBreaker: { failureThreshold: 2, successThreshold: 1, timeoutDurationMs: 30_000 },
    });
    router.addWorker({ id: 'b' });
    const moves: string[] = [];
    router.on('breakerTransition', ({ worker, from, to }) => moves.push(`${worker.id}:${from}>${to}`));
    for (let i = 0; i < 2; i++) router.begin('a').end({ status: 503 });
    const reachable = (): Set<string | undefined> =>
      new Set(Array.from({ length: 40 }, () => router.selectWorker({})).map((s) => (s.ok ? s.worker.id : undefined)));
    expect(reachable()).toEqual(new Set(['b']));
    time.advance(29_999);
    expect(reachable()).toEqual(new Set(['b']));
    time.advance(1);
    expect(reachable()).toEqual(new Set(['a', 'b']));
    expect(router.worker('a')?.breakerState).toBe('half_open');
    router.begin('a').end({ status: 200 });
    expect(moves).toEqual(['a:closed>open', 'a:open>half_open', 'a:half_open>closed']);
  });

  it('CB-26: the outcome of a lease begun before the last transition moves streaks, never the state', async () => {
    const router = await oneWorker({ circuitBreaker: { failureThreshold: 1, successThreshold: 1 } });
    const early = router.begin('a');
    router.begin('a').end({ status: 500 });
    expect(router.worker('a')?.breakerState).toBe('open');
    early.end({ status: 200 });
    expect(router.worker('a')).toMatchObject({ breakerState: 'open', consecutiveFailures: 0, consecutiveSuccesses: 1 });
  });
});
