import { beforeAll, describe, expect, it } from 'vitest';
import { Ring } from '../../src/hashing/ring.js';
import { consistentHashingTable, manualTable, overrideTable, prefixHashTable } from '../../src/options/table.js';
import { resolveOptions } from '../../src/options/validate.js';
import { createConsistentHashing } from '../../src/policies/consistent-hashing.js';
import { createManual } from '../../src/policies/manual.js';
import type { Policy } from '../../src/policies/policy.js';
import { createPrefixHash } from '../../src/policies/prefix-hash.js';
import { createRandom } from '../../src/policies/random.js';
import { type Hash64, loadHash } from '../../src/runtime/hash.js';
import { createRoutingKeyOverride } from '../../src/sticky/override.js';
import { PinMap } from '../../src/sticky/pins.js';
import { decideOn, signalsOf } from './core-context.js';

let hash: Hash64;
beforeAll(async () => {
  hash = await loadHash();
});

const workers = signalsOf('w1', 'w2', 'w3');
const limits = { maxPins: 100, maxIdleMs: 1000, evictionIntervalMs: 100 };
const unlimited = { spent: () => false };

function known<P extends Policy>(policy: P, ids: readonly string[] = ['w1', 'w2', 'w3']): P {
  for (const id of ids) policy.workerAdded?.(id, 0);
  return policy;
}

describe('key policies in a pool', () => {
  it('CH-9: without a ring the hash modulo the number of candidates, in list order', () => {
    const policy = createConsistentHashing(resolveOptions(consistentHashingTable, {}), { hash });
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const decision = decideOn(policy, { routingKey: key }, workers);
      expect(decision.worker?.id).toBe(workers[Number(hash(key) % 3n)]?.id);
      expect(decision.branch).toBe('routing_key_hit');
    }
  });

  it('PH-7: without a ring the least loaded', () => {
    const policy = createPrefixHash(resolveOptions(prefixHashTable, {}), { hash });
    expect(decideOn(policy, { text: 'x' }, workers)).toMatchObject({
      worker: { id: 'w1' },
      branch: 'fallback_least_load',
    });
  });

  it('LB-35: consistent_hashing and prefix_hash take other headers at run time', () => {
    const ring = new Ring(hash);
    for (const { id } of workers) ring.add(id);
    const request = { headers: { 'x-session': 'k' }, text: 'x' };
    const consistent = createConsistentHashing(resolveOptions(consistentHashingTable, {}), { hash });
    expect(decideOn(consistent, request, workers, { ring }).branch).toBe('random_fallback');
    consistent.configure?.(resolveOptions(consistentHashingTable, { routingKeyHeaders: ['x-session'] }));
    expect(decideOn(consistent, request, workers, { ring }).branch).toBe('routing_key_hit');
    const prefix = createPrefixHash(resolveOptions(prefixHashTable, { cacheBoundaries: [1] }), { hash });
    const tokens = { ...request, tokens: [1, 2] };
    expect(decideOn(prefix, tokens, workers, { ring }).level).toBe(1);
    prefix.configure?.(resolveOptions(prefixHashTable, { routingKeyHeaders: ['x-session'], cacheBoundaries: [1] }));
    expect(decideOn(prefix, tokens, workers, { ring }).level).toBe(0);
  });

  it('LB-35: manual takes another mode at run time and keeps its pins', () => {
    const policy = known(createManual(resolveOptions(manualTable, {}), { pins: new PinMap(limits) }));
    const first = decideOn(policy, { routingKey: 'k' }, workers).worker?.id;
    policy.configure?.(resolveOptions(manualTable, { assignmentMode: 'min_load', routingKeyOverride: true }));
    expect(decideOn(policy, { routingKey: 'k' }, workers)).toMatchObject({
      worker: { id: first },
      branch: 'occupied_hit',
    });
    expect(decideOn(policy, { rid: 'conv_t1' }, workers)).toMatchObject({ source: 'rid', branch: 'vacant' });
  });

  it('ST-60a, MA-10: maxPins is one total for all pools that share the map', () => {
    const pins = new PinMap({ ...limits, maxPins: 2 });
    const options = resolveOptions(manualTable, {});
    const pools = [createManual(options, { pins }), createManual(options, { pins })].map((policy) => known(policy));
    pools.forEach((policy, i) => {
      for (const key of ['a', 'b']) decideOn(policy, { routingKey: key }, workers, { model: `m${i}` });
    });
    expect(pins.size).toBe(2);
    expect(decideOn(pools[1] as Policy, { routingKey: 'b' }, workers, { model: 'm1' }).branch).toBe('occupied_hit');
    expect(decideOn(pools[0] as Policy, { routingKey: 'b' }, workers, { model: 'm0' }).branch).toBe('vacant');
  });

  it('WK-13a: in the pool of workers without a model pins are scoped by the requested model', () => {
    const policy = known(createManual(resolveOptions(manualTable, {}), { pins: new PinMap(limits) }));
    decideOn(policy, { routingKey: 'k', model: 'new-1' }, workers);
    expect(decideOn(policy, { routingKey: 'k', model: 'new-2' }, workers).branch).toBe('vacant');
    expect(decideOn(policy, { routingKey: 'k', model: 'new-1' }, workers).branch).toBe('occupied_hit');
  });

  it('ST-60: maintain of manual and of the override sweeps the pins', () => {
    const pins = new PinMap(limits);
    const policy = known(createManual(resolveOptions(manualTable, {}), { pins }));
    decideOn(policy, { routingKey: 'k' }, workers);
    expect(policy.maintain?.(1000, unlimited)).toBe(false);
    expect(pins.size).toBe(0);
    const override = createRoutingKeyOverride(known(createRandom()), resolveOptions(overrideTable, {}), { pins });
    decideOn(override, { routingKey: 'k' }, workers, { now: 1000 });
    expect(pins.size).toBe(1);
    expect(override.maintain?.(2000, unlimited)).toBe(false);
    expect(pins.size).toBe(0);
  });
});

describe('the override in a pool', () => {
  const settings = resolveOptions(overrideTable, {});

  it('PO-4: is known by the name and the needs of its policy, and is reconfigured like it', () => {
    const prefix = createPrefixHash(resolveOptions(prefixHashTable, {}), { hash });
    const override = createRoutingKeyOverride(prefix, settings, { pins: new PinMap(limits) });
    expect(override).toMatchObject({ name: 'prefix_hash', needs: { ring: true }, inner: prefix });
    override.configure?.(resolveOptions(prefixHashTable, { routingKeyHeaders: ['x-session'] }));
    expect(decideOn(prefix, { headers: { 'x-session': 'k' } }, workers).branch).toBe('fallback_least_load');
    const custom: Policy = { name: 'mine', needs: {}, meanPrefillTokens: 7, decide: prefix.decide };
    const around = createRoutingKeyOverride(custom, settings, { pins: new PinMap(limits) });
    expect(around.configure).toBeUndefined();
    expect(around.meanPrefillTokens).toBe(7);
  });

  it('LB-35: other headers and another mode at run time; pins stay', () => {
    const override = known(createRoutingKeyOverride(createRandom(), settings, { pins: new PinMap(limits) }));
    const first = decideOn(override, { headers: { 'x-smg-routing-key': 'k' } }, workers).worker?.id;
    override.configureOverride(
      resolveOptions(overrideTable, { routingKeyHeaders: ['x-session'], assignmentMode: 'min_load' }),
    );
    expect(decideOn(override, { headers: { 'x-smg-routing-key': 'k' } }, workers).branch).toBeUndefined();
    const session = decideOn(override, { headers: { 'x-session': 'k' } }, workers);
    expect(session).toMatchObject({ worker: { id: first }, branch: 'occupied_hit' });
    expect(decideOn(override, { routingKey: 'other' }, workers).inner).toBeUndefined();
  });

  it('LB-30: switched on later it knows the workers that are there already', () => {
    const pins = new PinMap(limits);
    const one = known(createRoutingKeyOverride(createRandom(), settings, { pins }));
    const first = decideOn(one, { routingKey: 'k' }, workers).worker?.id as string;
    const ids = workers.map(({ id }) => id);
    const other = createRoutingKeyOverride(createRandom(), settings, { pins, registered: ids });
    const rest = workers.filter(({ id }) => id !== first);
    const second = decideOn(other, { routingKey: 'k' }, rest).worker?.id;
    other.workerRemoved?.(second as string, 0);
    expect(
      decideOn(
        other,
        { routingKey: 'k' },
        workers.filter(({ id }) => id === first),
      ),
    ).toMatchObject({
      worker: { id: first },
      branch: 'occupied_hit',
    });
  });
});
