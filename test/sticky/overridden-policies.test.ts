/** The override around policies that bring only what the contract asks for. */
import { scriptedRandom } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { Decision, type DecisionContext, type Policy } from '../../src/policies/policy.js';
import { RequestView } from '../../src/request.js';
import { createRoutingKeyOverride } from '../../src/sticky/override.js';
import { PinMap } from '../../src/sticky/pins.js';
import { CandidateSet } from '../../src/workers/candidate-set.js';

describe('routing-key override: around any policy', () => {
  const noDraws = scriptedRandom([]);
  const limits = { maxPins: 10, maxIdleMs: 0, evictionIntervalMs: 0 };
  const settings = { routingKeyHeaders: ['x-smg-routing-key'], assignmentMode: 'delegate' } as const;
  const around = (inner: Partial<Policy>, pins = new PinMap(limits)) =>
    createRoutingKeyOverride({ name: 'custom', needs: {}, decide: () => new Decision(undefined), ...inner }, settings, {
      pins,
    });

  const contextOf = (available: CandidateSet): DecisionContext => {
    return { now: 0, random: noDraws, model: 'm', leg: 'single', ring: undefined, available };
  };

  it('PO-4, LB-13: a policy that explains nothing is no obstacle', () => {
    const policy = around({});
    const request = new RequestView({ rid: 'K' });
    const candidates = new CandidateSet([]);
    const ctx = contextOf(candidates);
    const decision = policy.decide(new RequestView({}), candidates, ctx);
    expect(policy.describe?.(new RequestView({}), candidates, ctx, decision)).toEqual({});
    expect(policy.describe?.(request, candidates, ctx, policy.decide(request, candidates, ctx))).toEqual({
      pinned: [],
      keyInFlight: undefined,
      tieSet: undefined,
      delegated: undefined,
    });
  });

  it.each([
    [false, false],
    [true, false],
    [false, true],
    [true, true],
  ])('LB-5: work is left when the policy (%s) or the pins (%s) have some left', (innerLeft, pinsLeft) => {
    const pins = new PinMap({ ...limits, maxPins: pinsLeft ? 1 : 10 });
    pins.configure({ ...limits, maxPins: 1000 }, 0);
    for (let i = 0; i < 5; i++) pins.put(`k${i}`, 'w', undefined, 0);
    pins.configure({ ...limits, maxPins: pinsLeft ? 1 : 10 }, 0);
    const policy = around({ maintain: () => innerLeft }, pins);
    expect(policy.maintain?.(0, { spent: () => true })).toBe(innerLeft || pinsLeft);
  });
});
