import { describe, expect, it } from 'vitest';
import {
  neverQualified,
  observeServing,
  type Qualification,
  type QualificationLeg,
  type QualificationLegs,
  qualify,
} from '../../src/workers/serving-state.js';

describe('qualify', () => {
  const verified: QualificationLeg = { state: 'verified', members: ['b', 'a'] };
  const legs = (change: Partial<QualificationLegs> = {}): QualificationLegs => ({
    membersComplete: verified,
    membersReady: verified,
    groupForwards: verified,
    noPlannedRetirement: verified,
    noPendingReplacement: verified,
    ...change,
  });
  const qualified: Qualification = { qualified: true, members: ['a', 'b'] };
  const revoked: Qualification = { qualified: false, members: [] };
  const names = Object.keys(legs()) as (keyof QualificationLegs)[];

  it('LM-41: all five verified of the same members qualify them', () => {
    expect(names).toHaveLength(5);
    expect(qualify(neverQualified, legs())).toEqual(qualified);
    expect(qualify(revoked, legs({ groupForwards: { state: 'verified', members: ['a', 'b', 'a'] } }))).toEqual(
      qualified,
    );
  });

  for (const name of names) {
    it(`LM-41: ${name}: failed revokes at once, unknown holds`, () => {
      expect(qualify(qualified, legs({ [name]: { state: 'failed', members: null } }))).toEqual(revoked);
      const unknown = legs({ [name]: { state: 'unknown', members: null } });
      for (const previous of [qualified, revoked, neverQualified]) expect(qualify(previous, unknown)).toBe(previous);
    });
  }

  it('LM-41: one failed leg outweighs any unknown ones', () => {
    const unknown: QualificationLeg = { state: 'unknown', members: null };
    const mixed = legs({
      membersReady: unknown,
      groupForwards: { state: 'failed', members: ['a'] },
      membersComplete: unknown,
    });
    expect(qualify(qualified, mixed)).toEqual(revoked);
  });

  it('LM-41: unknown holds whatever members it was observed of', () => {
    for (const name of names) {
      expect(qualify(revoked, legs({ [name]: { state: 'unknown', members: ['a', 'b'] } }))).toBe(revoked);
    }
  });

  it('LM-41: verified of different members restores nothing', () => {
    for (const members of [['a'], ['a', 'c'], ['a', 'b', 'c'], null]) {
      expect(qualify(revoked, legs({ membersReady: { state: 'verified', members } }))).toBe(revoked);
    }
  });

  it('LM-41: never observed is null, observed empty is nobody', () => {
    expect(neverQualified.members).toBeNull();
    const all = (members: readonly string[] | null): QualificationLegs =>
      Object.fromEntries(names.map((name) => [name, { state: 'verified', members }])) as unknown as QualificationLegs;
    expect(qualify(neverQualified, all([]))).toEqual({ qualified: true, members: [] });
    expect(qualify(qualified, all(null))).toBe(qualified);
  });
});

describe('observeServing', () => {
  const view = (observedAt: number, ...workers: string[]) => ({ observedAt, workers });

  it('LM-42: complete, fresh views that agree are confirmed, order and repetition aside', () => {
    expect(observeServing([view(0, 'b', 'a'), view(900, 'a', 'b', 'a')], 1000)).toEqual({
      state: 'Confirmed',
      workers: ['a', 'b'],
    });
    expect(observeServing([view(0)], 0)).toEqual({ state: 'Confirmed', workers: [] });
  });

  it('LM-42: a view counts for 15 000 ms, or as long as stated', () => {
    expect(observeServing([view(0, 'a')], 15_000).state).toBe('Confirmed');
    expect(observeServing([view(0, 'a')], 15_001)).toEqual({ state: 'Unknown' });
    expect(observeServing([view(0, 'a'), view(14_000, 'a')], 15_001)).toEqual({ state: 'Unknown' });
    expect(observeServing([view(0, 'a')], 2001, 2000)).toEqual({ state: 'Unknown' });
    expect(observeServing([view(90_000, 'a')], 92_000, 2000).state).toBe('Confirmed');
    expect(observeServing([view(90_000, 'a')], 92_001, 2000)).toEqual({ state: 'Unknown' });
  });

  it('B55: a view from the future is fresh', () => {
    expect(observeServing([view(9000, 'a')], 0).state).toBe('Confirmed');
  });

  it('LM-42: disagreeing views have not converged', () => {
    expect(observeServing([view(0, 'a'), view(0, 'b')], 0)).toEqual({ state: 'NotConverged' });
    expect(observeServing([view(0, 'a'), view(0)], 0)).toEqual({ state: 'NotConverged' });
  });

  it('LM-42: a missing or incomplete view makes it unknown, whatever the others say', () => {
    expect(observeServing([view(0, 'a'), null], 0)).toEqual({ state: 'Unknown' });
    expect(observeServing([view(0, 'a'), view(0, 'b'), null], 0)).toEqual({ state: 'Unknown' });
    expect(observeServing([{ ...view(0, 'a'), complete: false }], 0)).toEqual({ state: 'Unknown' });
  });

  it('LM-42: without a router nothing is configured', () => {
    expect(observeServing([], 0)).toEqual({ state: 'NotConfigured' });
  });
});

it('LB-42: observations of another shape are refused by name', () => {
  expect(() => observeServing([{ observedAt: '0' as never, workers: [] }], 0)).toThrow(
    /^observedAt: expected a number/,
  );
  expect(() => observeServing([{ observedAt: 0, workers: [5 as never] }], 0)).toThrow(/^members: expected strings/);
  expect(() => observeServing([{ observedAt: 0, workers: 'a' as never }], 0)).toThrow(/^members: expected an array/);
  expect(() => observeServing([5 as never], 0)).toThrow(/^view: expected an object, got 5/);
  expect(() => observeServing('views' as never, 0)).toThrow(/^views: expected an array/);
  expect(() => observeServing([], '0' as never)).toThrow(/^now: expected a number/);
  expect(() => observeServing([], 0, '1' as never)).toThrow(/^maxAgeMs: expected a number/);
  expect(() => qualify(neverQualified, null as never)).toThrow(/^legs: expected an object/);
  expect(() => qualify(neverQualified, {} as never)).toThrow(/^membersComplete: expected an object/);
});
