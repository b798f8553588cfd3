/** Which policy a plan makes, what goes around it, and which running one can go on under another plan. */
import { describe, expect, it } from 'vitest';
import { policyTables } from '../../src/options/policy-options.js';
import type { OptionTable } from '../../src/options/spec.js';
import { resolveOptions } from '../../src/options/validate.js';
import {
  createPolicy,
  innerPolicy,
  type PoolSurroundings,
  reshapePolicy,
  staysUnder,
} from '../../src/policies/create.js';
import { policyNames } from '../../src/policies/names.js';
import { Decision, noEvents, type Policy, type PolicyName } from '../../src/policies/policy.js';
import type { PolicyPlan } from '../../src/router-options.js';
import { PinMap } from '../../src/sticky/pins.js';

function around(given: Partial<PoolSurroundings> & { readonly override?: boolean } = {}): PoolSurroundings {
  return {
    leg: 'single',
    hash: () => 0n,
    pins: new PinMap({ maxPins: 10, maxIdleMs: 0, evictionIntervalMs: 0 }),
    kvIndex: () => undefined,
    events: noEvents,
    salt: 0,
    sticky: { routingKeyOverride: given.override ?? false, routingKeyHeaders: ['x-key'], assignmentMode: undefined },
    ...given,
  };
}

const planOf = (name: PolicyName): PolicyPlan => ({
  name,
  options: resolveOptions(policyTables[name] as OptionTable, {}),
});

const custom = (own: Partial<Policy> = {}): PolicyPlan => ({
  name: 'custom',
  options: {},
  create: () => ({ name: 'own', needs: {}, decide: () => new Decision(undefined), ...own }),
});

const isWrapped = (policy: Policy) => innerPolicy(policy) !== policy;

describe('the policy of a pool', () => {
  it.each(policyNames)('PO-4: is %s by name, with nothing around it unless the override is on', (name) => {
    const policy = createPolicy(planOf(name), around());
    expect(policy.name).toBe(name);
    expect(isWrapped(policy)).toBe(false);
  });

  it.each(policyNames)('MA-13: %s has the override around it unless it reads keys itself', (name) => {
    const policy = createPolicy(planOf(name), around({ override: true }));
    expect(policy.name).toBe(name);
    expect(isWrapped(policy)).toBe(name !== 'manual' && name !== 'consistent_hashing');
  });

  it('LM-34: that of an encode leg has no override around it, that of every other leg has', () => {
    for (const leg of ['single', 'prefill', 'decode', 'encode'] as const) {
      expect(isWrapped(createPolicy(planOf('random'), around({ override: true, leg })))).toBe(leg !== 'encode');
    }
  });
});

describe('LB-35: a running policy under another plan', () => {
  const stays = (before: PolicyPlan, after = before, override = false) =>
    staysUnder(after, createPolicy(before, around({ override })), before);

  it('goes on when it can take the options, or there are none', () => {
    expect([stays(planOf('bucket')), stays(planOf('random')), stays(custom())]).toEqual([true, true, true]);
    expect([stays(planOf('bucket'), undefined, true), stays(planOf('random'), undefined, true)]).toEqual([true, true]);
  });

  it('does not where it cannot take options there are, or another policy is wanted', () => {
    expect([stays(planOf('least_load')), stays(planOf('least_load'), undefined, true)]).toEqual([false, false]);
    expect([stays(planOf('random'), planOf('round_robin')), stays(custom(), custom())]).toEqual([false, false]);
  });

  it('takes the options, and the override around it where that is switched on', () => {
    const taken: object[] = [];
    const running = createPolicy(planOf('bucket'), around());
    running.configure = (options) => void taken.push(options);
    const plan = planOf('bucket');
    const wrapped = reshapePolicy(running, plan, around({ override: true }), ['a']);
    expect(innerPolicy(wrapped)).toBe(running);
    expect(reshapePolicy(wrapped, plan, around(), ['a'])).toBe(running);
    expect(taken).toEqual([plan.options, plan.options]);
  });

  it('is not configured when it is one of the host’s own', () => {
    const taken: object[] = [];
    const plan = custom({ configure: (options) => void taken.push(options) });
    const running = createPolicy(plan, around());
    expect(reshapePolicy(running, plan, around(), [])).toBe(running);
    expect(taken).toEqual([]);
  });
});
