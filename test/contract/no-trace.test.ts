/**
 * LB-30, B58: after removal nothing reachable mentions the worker. Private fields cannot be walked from outside, so the
 * test asks the heap itself: a snapshot lists every string that is still alive.
 */
import { describe, expect, it } from 'vitest';
import { bucket } from '../../src/policies/bucket.js';
import { cacheAware } from '../../src/policies/cache-aware.js';
import { consistentHashing } from '../../src/policies/consistent-hashing.js';
import { leastLoad } from '../../src/policies/least-load.js';
import { passthrough } from '../../src/policies/passthrough.js';
import { powerOfTwo } from '../../src/policies/power-of-two.js';
import { prefixHash } from '../../src/policies/prefix-hash.js';
import { random } from '../../src/policies/random.js';
import { roundRobin } from '../../src/policies/round-robin.js';
import type { StandalonePolicy } from '../../src/policies/standalone.js';
import { loadHash } from '../../src/runtime/hash.js';
import { aliveStrings } from '../support/alive-strings.js';

const hash = await loadHash();

/** Pins are left out: those of a removed worker go with the next touch (ST-62). */
const policies: readonly StandalonePolicy[] = [
  random(),
  roundRobin(),
  passthrough(),
  leastLoad(),
  powerOfTwo(),
  bucket(),
  consistentHashing({ hash }),
  prefixHash({ hash }),
  cacheAware(),
  cacheAware({ cacheIndex: 'hash', cacheBoundaries: [2, 4] }),
];

// Put together at run time, so that the source text of this file does not hold them.
const idOf = (kind: string, i: number): string => ['trace', kind, String(i), 'worker'].join('/');

function use(policy: StandalonePolicy, i: number): void {
  const candidates = [idOf('gone', i), idOf('kept', i)].map((id) => ({
    id,
    inFlight: 0,
    report: { waitingTokens: 5, kvCacheUsage: 0.1 },
    keysInFlight: { key: 1 },
  }));
  for (let round = 0; round < 20; round++) {
    policy.selectWorker({ text: `prompt ${round} of many` }, candidates);
    policy.selectWorker({ tokens: Uint32Array.from([round, 2, 3, 4, 5]) }, candidates);
    policy.selectWorker({ headers: { 'x-smg-routing-key': `key ${round}` } }, candidates);
    policy.selectWorker({ exclude: [idOf('kept', i)] }, candidates);
    policy.explain({ text: 'prompt' }, candidates);
  }
}

function forget(policy: StandalonePolicy, i: number): void {
  policy.forget(idOf('gone', i));
  // Removal is complete at once for readers; memory follows in bounded steps (CA-44).
  while (policy.maintain());
}

describe('LB-30, B58: removal leaves no trace', () => {
  it('of a worker in any policy, while the others are still known', async () => {
    for (const [i, policy] of policies.entries()) use(policy, i);
    for (const [i, policy] of policies.entries()) forget(policy, i);
    const alive = await aliveStrings(['trace', ''].join('/'));
    const kept = policies.map((_, i) => idOf('kept', i)).filter((id) => alive.has(id));
    const gone = policies.map((_, i) => idOf('gone', i)).filter((id) => alive.has(id));
    // Passing the check needs the snapshot to see what is kept: all policies know the ids given to them.
    expect(kept).toHaveLength(policies.length);
    expect(gone).toEqual([]);
  });
});
