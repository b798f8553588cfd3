/** Fleets and remembered texts for tests of `cache_aware`. */
import type { StandaloneCacheAware } from '../../src/policies/cache-aware.js';
import type { Candidate } from '../../src/workers/candidate.js';

export const idle = (...ids: string[]): Candidate[] => ids.map((id) => ({ id, inFlight: 0 }));

/** Remembers `text` for each of the workers, the last one as the newest. */
export function seed(policy: StandaloneCacheAware, text: string, ...workers: string[]): void {
  for (const [i, worker] of workers.entries()) {
    policy.applyPlacement({ kind: 'text', units: text, worker, use: i + 1, namespace: undefined });
  }
}

/** All winners over 200 seeds. */
export function winners(run: (seed: number) => string | undefined): string[] {
  return [...new Set(Array.from({ length: 200 }, (_, i) => run(i) ?? 'none'))].sort();
}

export function selected(policy: StandaloneCacheAware, text: string, candidates: Candidate[]): string | undefined {
  const selection = policy.selectWorker({ text }, candidates);
  return selection.ok ? selection.worker.id : undefined;
}
