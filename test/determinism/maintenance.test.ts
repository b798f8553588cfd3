/**
 * LB-5: what is due happens at the first call that comes, as of the instant it was due; `maintain()` in between changes no
 * result. Each story is told twice, with and without it.
 */
import { createRouter, type RouterOptions } from 'kvroute';
import { type ManualClock, manualClock, recordDecisions } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';

type Router = Awaited<ReturnType<typeof createRouter>>;

interface Story {
  readonly options: RouterOptions;
  /** Tells the story; `pause` is a moment at which a host may call `maintain()`. */
  readonly tell: (router: Router, clock: ManualClock, pause: () => void) => void;
}

async function decisions({ options, tell }: Story, maintained: boolean): Promise<string> {
  const clock = manualClock();
  const router = await createRouter({ seed: 1, clock: clock.clock, ...options });
  const recorded = recordDecisions(router);
  tell(router, clock, () => {
    if (!maintained) return;
    while (router.maintain());
  });
  return recorded.text;
}

describe('LB-5: results do not depend on when maintenance ran', () => {
  it('LB-23: a lease past its age has expired when its host ends it, and its outcome does not count', async () => {
    const failures: number[] = [];
    const story: Story = {
      options: { policy: 'random', maxLeaseAgeMs: 1000 },
      tell: (router, clock, pause) => {
        router.addWorker({ id: 'a' });
        const lease = router.begin('a');
        clock.advance(1000);
        pause();
        lease.end({ error: 'connect' });
        failures.push(router.worker('a')?.consecutiveFailures ?? Number.NaN);
      },
    };
    const expected = 'begin a inFlight=1\nend a inFlight=0 by=expired\n';
    expect(await decisions(story, false)).toBe(expected);
    expect(await decisions(story, true)).toBe(expected);
    expect(failures).toEqual([0, 0]);
  });

  it('BU-5, BU-9, WK-19: a drained worker leaves its bucket pool when it is due, before later checks', async () => {
    const story: Story = {
      options: { policy: { name: 'bucket', legs: 'any', balanceAbsThreshold: 1_000_000 }, drainSettleMs: 500 },
      tell: (router, clock, pause) => {
        for (const id of ['a', 'b', 'c']) router.addWorker({ id });
        clock.advance(4000);
        for (let size = 100; size < 160; size++) router.selectWorker({ tokens: new Uint32Array(size) });
        router.setStatus('c', 'draining');
        clock.advance(700);
        pause();
        clock.advance(15_000);
        for (const size of [50, 110, 120, 130, 140, 150, 300]) router.selectWorker({ tokens: new Uint32Array(size) });
      },
    };
    const without = await decisions(story, false);
    expect(await decisions(story, true)).toBe(without);
    // The ranges follow the traffic of 100 to 159 tokens: half of the units were in requests of up to 133.
    const chosen = without.trimEnd().split('\n').slice(-7);
    expect(chosen.map((line) => line.split(' ')[1])).toEqual(['a', 'a', 'a', 'a', 'b', 'b', 'b']);
  });

  it('CA-83, CA-95: which of equal holders wins does not depend on slots that were freed meanwhile', async () => {
    const stored = (sequence: number, blocks: number) => ({
      sequence,
      events: [
        {
          type: 'stored' as const,
          hashes: Array.from({ length: blocks }, (_, i) => i),
          tokens: Uint32Array.from({ length: blocks * 16 }, (_, i) => i),
          blockSize: 16,
        },
      ],
    });
    const story: Story = {
      options: { policy: 'cache_aware' },
      tell: (router, clock, pause) => {
        const tokens = Uint32Array.from({ length: 64 }, (_, i) => i);
        for (const id of ['a', 'b', 'c', 'd']) router.addWorker({ id, models: ['m'] });
        for (const id of ['a', 'b', 'c']) router.kvEvents.applyBatch(id, stored(1, 4000));
        router.removeWorker('a');
        clock.advance(1);
        pause();
        router.kvEvents.applyBatch('d', stored(1, 4000));
        for (let i = 0; i < 40; i++) router.selectWorker({ model: 'm', tokens });
      },
    };
    const without = await decisions(story, false);
    expect(without).toContain('event_hit');
    expect(await decisions(story, true)).toBe(without);
  });
});
