/**
 * A short soak, so that its checks run with every change: `npm run soak` is the long one, which also watches the heap and
 * the time of calls.
 */
import { describe, expect, it } from 'vitest';
import { Meter } from './meter.js';
import { type PhaseResult, runPhase } from './run.js';
import { bounds, subjects, wideSubjects } from './subjects.js';

async function soak(selections: number, workers: number, chosen = subjects): Promise<PhaseResult> {
  const meter = new Meter(5);
  const result = await runPhase({ name: 'short', subjects: chosen, workers, selections }, meter);
  await meter.stop();
  return result;
}

describe('soak, the short run', () => {
  it('LB-21, LB-31, LB-32, B08, B27, B34, B80: counts and bounds hold under churn, and everything ends at zero', {
    timeout: 120_000,
  }, async () => {
    const { subjects: results, findings } = await soak(7000, 24);
    expect(findings).toEqual([]);
    const byName = new Map(results.map((result) => [result.name, result]));
    for (const { name } of subjects) {
      const { selections = 0, refused = 0, calls = 0 } = byName.get(name) ?? {};
      expect(selections, name).toBe(500);
      // The traffic did what it is for: most requests found a worker, and much else happened beside them.
      expect(refused, name).toBeLessThan(100);
      expect(calls, name).toBeGreaterThan(1200);
    }
    // Bounds hold because they were met, not because nothing came near them.
    expect(byName.get('cache_aware: text')?.largestTree).toBeGreaterThan(0.95 * bounds.maxTreeSize);
    expect(byName.get('cache_aware: tokens, softmax')?.largestTree).toBeGreaterThan(0.95 * bounds.maxTreeSize);
    expect(byName.get('cache_aware: hash index')?.mostHeads).toBeGreaterThan(100);
    expect(byName.get('round_robin')?.mostRotations).toBeGreaterThan(100);
  });

  it('PO-6: the same holds for large fleets', async () => {
    const wide = wideSubjects.filter(({ name }) => ['round_robin', 'cache_aware: text'].includes(name));
    expect(wide).toHaveLength(2);
    const { findings } = await soak(60, 3000, wide);
    expect(findings).toEqual([]);
  });
});
