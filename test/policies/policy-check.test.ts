import { describe, expect, it } from 'vitest';
import { RoutingConfigError } from '../../src/errors.js';
import { Decision, type Policy } from '../../src/policies/policy.js';
import { checkedPolicy } from '../../src/policies/policy-check.js';

const policy: Policy = { name: 'mine', needs: {}, decide: () => new Decision(undefined) };

describe('checkedPolicy', () => {
  it('LB-40: returns what has a name, needs and decide', () => {
    expect(checkedPolicy(policy)).toBe(policy);
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a name alone', 'round_robin'],
    ['no name', { ...policy, name: undefined }],
    ['a name that is no string', { ...policy, name: 5 }],
    ['no needs', { ...policy, needs: undefined }],
    ['needs that are null', { ...policy, needs: null }],
    ['needs that are a string', { ...policy, needs: 'text' }],
    ['no decide', { ...policy, decide: undefined }],
    ['a decide that is no function', { ...policy, decide: {} }],
  ])('LB-40: refuses %s', (_name, given) => {
    const refusal = expect.objectContaining({
      field: 'policy',
      value: given,
      reason: 'must be a policy: an object with name, needs and decide',
    });
    expect(() => checkedPolicy(given as never)).toThrow(refusal);
    expect(() => checkedPolicy(given as never)).toThrow(RoutingConfigError);
  });
});

describe('Decision', () => {
  it('LB-11: says why when it has no worker, and nothing when it has one', () => {
    const worker = { id: 'a', inFlight: 0, activeKeys: 0, creditTokens: 0, creditRequests: 0, keyInFlight: () => 0 };
    expect(new Decision(undefined).reason).toBe('no_available_workers');
    expect(new Decision({ ...worker, load: undefined }).reason).toBeUndefined();
  });
});
