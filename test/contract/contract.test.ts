import { describe, expect, it } from 'vitest';
import type { PowerOfTwoOptions } from '../../src/options/policy-options.js';
import { bucket } from '../../src/policies/bucket.js';
import { cacheAware } from '../../src/policies/cache-aware.js';
import { consistentHashing } from '../../src/policies/consistent-hashing.js';
import { leastLoad } from '../../src/policies/least-load.js';
import { manual } from '../../src/policies/manual.js';
import { passthrough } from '../../src/policies/passthrough.js';
import { powerOfTwo } from '../../src/policies/power-of-two.js';
import { prefixHash } from '../../src/policies/prefix-hash.js';
import { random } from '../../src/policies/random.js';
import { roundRobin } from '../../src/policies/round-robin.js';
import type { StandalonePolicy } from '../../src/policies/standalone.js';
import { stickySessions } from '../../src/policies/sticky-sessions.js';
import { loadHash } from '../../src/runtime/hash.js';
import { type ContractRuntime, type PolicyCapabilities, policyContract } from '../../src/testing/policy-contract.js';

const hash = await loadHash();

type Row = readonly [string, (runtime: ContractRuntime) => StandalonePolicy, PolicyCapabilities];

const policies: readonly Row[] = [
  ['random', (runtime) => random(runtime), { reachesAll: true }],
  ['round_robin', (runtime) => roundRobin(runtime), {}],
  ['passthrough', (runtime) => passthrough(runtime), {}],
  ['least_load', (runtime) => leastLoad(runtime), { reachesAll: true, loadAware: true }],
  ['bucket', (runtime) => bucket(runtime), {}],
  ['manual', (runtime) => manual(runtime), { reachesAll: true, keepsKeys: true }],
  ['consistent_hashing', (runtime) => consistentHashing({ ...runtime, hash }), { reachesAll: true, keepsKeys: true }],
  ['prefix_hash', (runtime) => prefixHash({ ...runtime, hash }), { keepsKeys: true, keepsPrompts: true }],
  ['cache_aware', (runtime) => cacheAware(runtime), { reachesAll: true, loadAware: true, keepsPrompts: true }],
  ...(['expected_wait', 'requests', 'least_requests'] as const).map(
    (loadMetric: PowerOfTwoOptions['loadMetric']): Row => [
      'power_of_two',
      (runtime) => powerOfTwo({ ...runtime, loadMetric }),
      { reachesAll: true, loadAware: true },
    ],
  ),
];

for (const [name, make, capabilities] of policies) {
  describe(`the contract of ${name}`, () => {
    for (const contractCase of policyContract(make, capabilities)) it(contractCase.name, contractCase.run);
    it('PO-3: goes by its name', () => expect(make({ seed: 1, clock: () => 0 }).name).toBe(name));
  });
}

describe('the contract of policies under the routing-key override', () => {
  const capabilities = { keepsKeys: true };
  for (const contractCase of policyContract((runtime) => stickySessions(leastLoad(runtime)), capabilities)) {
    it(contractCase.name, contractCase.run);
  }
});
