/** The counts of a worker: requests in flight, which policies decide by, and selections, which none may decide by. */
import { createRouter, loadHash } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { cacheAware } from '../../src/policies/cache-aware.js';
import { leastLoad } from '../../src/policies/least-load.js';
import { manual } from '../../src/policies/manual.js';
import { powerOfTwo } from '../../src/policies/power-of-two.js';
import { prefixHash } from '../../src/policies/prefix-hash.js';
import type { StandalonePolicy } from '../../src/policies/standalone.js';
import type { Candidate } from '../../src/workers/candidate.js';
import { report, winners } from './reported.js';

describe('requests in flight', () => {
  const counts = [
    { id: 'a', inFlight: 3 },
    { id: 'b', inFlight: 1 },
    { id: 'c', inFlight: 2 },
  ];
  const reported = counts.map((candidate) => ({ ...candidate, report: report(candidate.inFlight === 1 ? 9000 : 0) }));

  it('WK-35: decide where nobody reports, for the pair and for the whole fleet', () => {
    expect(winners((seed) => leastLoad({ seed }), counts)).toEqual(['b']);
    expect(winners((seed) => powerOfTwo({ seed }), counts)).toEqual(['b', 'c']);
  });

  it.each([
    ['requests', ['b', 'c']],
    ['least_requests', ['b']],
  ] as const)('WK-35: decide first for the metric %s, whatever is reported', (loadMetric, won) => {
    expect(winners((seed) => powerOfTwo({ seed, loadMetric }), reported)).toEqual(won);
  });

  it('WK-35: place a new key with manual under min_load', () => {
    const policy = manual({ seed: 1, assignmentMode: 'min_load' });
    expect(policy.selectWorker({ headers: { 'x-smg-routing-key': 'k' } }, reported)).toMatchObject({
      worker: { id: 'b' },
    });
  });

  it('WK-35: are what prefix_hash and the spill gate of cache_aware compare', async () => {
    const fleet = (hot: number) => ['a', 'b', 'c'].map((id) => ({ id, inFlight: id === 'a' ? hot : 0 }));
    const idle = fleet(0);
    const byHash = prefixHash({ hash: await loadHash() });
    const text = 'the head of a prompt';
    const owner = pickText(byHash, text, idle);
    const loaded = idle.map((candidate) => ({ ...candidate, inFlight: candidate.id === owner ? 100 : 0 }));
    expect(pickText(byHash, text, loaded)).not.toBe(owner);
    const byTree = cacheAware({ seed: 1 });
    const holder = pickText(byTree, text, idle);
    const spilling = idle.map((candidate) => ({ ...candidate, inFlight: candidate.id === holder ? 200 : 0 }));
    expect(pickText(byTree, text, idle)).toBe(holder);
    expect(pickText(byTree, text, spilling)).not.toBe(holder);
  });
});

function pickText(policy: StandalonePolicy, text: string, candidates: readonly Candidate[]): string {
  const selection = policy.selectWorker({ text }, candidates);
  return selection.ok ? selection.worker.id : selection.reason;
}

describe('the lifetime counter', () => {
  it.each(['least_load', 'power_of_two', 'cache_aware'] as const)(
    'WK-50: %s counts each selection once, and no tie is decided by it',
    async (policy) => {
      const router = await createRouter({ policy, seed: 1 });
      router.addWorker({ id: 'a' });
      for (let i = 0; i < 10; i++) router.acquire({ text: `${i}` });
      expect(router.worker('a')?.selections).toBe(10);
      router.addWorker({ id: 'b' });
      // Of the two, one was selected ten times: only what is in flight and credited may tell them apart.
      const fresh = await createRouter({ policy, seed: 1 });
      for (const id of ['a', 'b']) fresh.addWorker({ id });
      const seen = new Set<string>();
      for (let i = 0; i < 100; i++) {
        const acquired = fresh.acquire({ text: `${i}` });
        if (!acquired.ok) throw new Error('nothing acquired');
        acquired.lease.end();
        for (const id of ['a', 'b']) fresh.reportLoad(id, report(0));
        seen.add(acquired.worker.id);
      }
      expect(seen).toEqual(new Set(['a', 'b']));
      const selections = ['a', 'b'].map((id) => fresh.worker(id)?.selections ?? 0);
      expect(selections[0] as number).not.toBe(selections[1]);
      expect(fresh.explain({ text: 'another' }).policy.tieSet ?? ['a', 'b']).toEqual(['a', 'b']);
    },
  );
});
