/** Candidates with reports, and who wins among them. */
import type { StandalonePolicy } from '../../src/policies/standalone.js';
import type { Candidate } from '../../src/workers/candidate.js';

export const report = (waitingTokens: number, tokensPerSecond = 100, kvCacheUsage = 0.2) => ({
  waitingTokens,
  tokensPerSecond,
  kvCacheUsage,
});

/** The worker a policy selects, or why it selects none. */
export function pick(policy: StandalonePolicy, candidates: readonly Candidate[], tokens?: readonly number[]): string {
  const selection = policy.selectWorker({ tokens }, candidates);
  return selection.ok ? selection.worker.id : selection.reason;
}

/** The exact set of winners over many seeds. */
export function winners(make: (seed: number) => StandalonePolicy, candidates: readonly Candidate[]): string[] {
  const won = new Set<string>();
  for (let seed = 0; seed < 300; seed++) won.add(pick(make(seed), candidates));
  return [...won].sort();
}
