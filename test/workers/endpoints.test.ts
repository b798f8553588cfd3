import { describe, expect, it } from 'vitest';
import {
  eligibleEndpoints,
  neverQualified,
  observeServing,
  type Qualification,
  type QualificationLeg,
  type QualificationLegs,
  qualify,
  type ServingGroup,
  type ServingRole,
} from '../../src/workers/endpoints.js';

/** Two replicas of three members each, hosts `r0m0` … `r1m2`. */
function group(role: ServingRole, mode?: string, qualified?: boolean): ServingGroup {
  const members = (r: number) => [0, 1, 2].map((index) => ({ index, host: `r${r}m${index}` }));
  return { role, mode, qualified, replicas: [{ members: members(0) }, { members: members(1) }] };
}

const urls = (...groups: ServingGroup[]): string[] => eligibleEndpoints(groups).map(({ url }) => url);
const leaders = ['http://r0m0:8000', 'http://r1m0:8000'];
const everyone = [0, 1].flatMap((r) => [0, 1, 2].map((m) => `http://r${r}m${m}:8000`));

describe('eligibleEndpoints', () => {
  it('LM-40: an internal server group answers with member 0 of each replica', () => {
    expect(urls(group('server', 'internal', true))).toEqual(leaders);
  });

  it('LM-40: a qualified external server group answers with every member, each one rank', () => {
    expect(urls(group('server', 'external', true))).toEqual(everyone);
    expect(eligibleEndpoints([group('server', 'external', true)]).map(({ dpRank }) => dpRank)).toEqual([
      0, 1, 2, 0, 1, 2,
    ]);
    expect(eligibleEndpoints([group('server', 'internal', true)])[0]).toEqual({ url: leaders[0], kind: 'regular' });
  });

  it('LM-40: a member that is not qualified is left out', () => {
    const one = group('server', 'external', true);
    const members = [
      { index: 0, host: 'a' },
      { index: 1, host: 'b', qualified: false },
    ];
    expect(urls({ ...one, replicas: [{ members }] })).toEqual(['http://a:8000']);
  });

  it('LM-40: another known mode follows the external rule', () => {
    expect(urls(group('server', 'hybrid', true))).toEqual(everyone);
    expect(urls(group('server', 'per_rank', true))).toEqual(leaders);
    const named = eligibleEndpoints([group('server', 'per_rank', true)], { externalModes: ['per_rank'] });
    expect(named.map(({ url }) => url)).toEqual(everyone);
  });

  it('LM-40: an unknown mode or an unverified group answers with member 0 only', () => {
    for (const [mode, qualified] of [
      [undefined, true],
      ['external', undefined],
      ['external', false],
      ['hybrid', false],
    ] as const) {
      expect(urls(group('server', mode, qualified))).toEqual(leaders);
    }
  });

  it('LM-40: prefill and decode answer with member 0 of each replica, whatever mode and size', () => {
    expect(urls(group('prefill', 'external', true))).toEqual(leaders);
    expect(eligibleEndpoints([group('decode', 'external', true)])).toEqual(
      leaders.map((url) => ({ url, kind: 'decode' })),
    );
  });

  it('LM-40: encode never answers', () => {
    expect(urls(group('encode', 'internal', true), group('decode'))).toEqual(leaders);
  });

  it('LM-40: all roles share one port, 8000 unless stated; IPv6 hosts are bracketed', () => {
    const v6 = { role: 'server', replicas: [{ members: [{ index: 0, host: 'fd00::1' }] }] } as const;
    expect(eligibleEndpoints([v6], { port: 9000 })[0]?.url).toBe('http://[fd00::1]:9000');
    for (const port of [0, 65_536, 80.5]) {
      expect(() => eligibleEndpoints([], { port })).toThrowError(
        expect.objectContaining({ field: 'port', value: port }),
      );
    }
  });
});

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

  it('LM-41: verified of different members restores nothing', () => {
    for (const members of [['a'], ['a', 'c'], ['a', 'b', 'c'], null]) {
      expect(qualify(revoked, legs({ membersReady: { state: 'verified', members } }))).toBe(revoked);
    }
  });

  it('LM-41: never observed is null, observed empty is nobody', () => {
    expect(neverQualified.members).toBeNull();
    const empty: QualificationLeg = { state: 'verified', members: [] };
    const all = Object.fromEntries(names.map((name) => [name, empty])) as unknown as QualificationLegs;
    expect(qualify(neverQualified, all)).toEqual({ qualified: true, members: [] });
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
  const group = (members: unknown) => [{ role: 'server', replicas: [{ members }] }] as never;
  expect(() => eligibleEndpoints('groups' as never)).toThrow(/^groups: expected an array/);
  expect(() => eligibleEndpoints(group([{ index: 0, host: 5 }]))).toThrow(/^host: expected a string, got 5/);
  expect(() => eligibleEndpoints(group(null))).toThrow(/^members: expected an array, got null/);
  expect(() => observeServing([{ observedAt: '0' as never, workers: [] }], 0)).toThrow(
    /^observedAt: expected a number/,
  );
  expect(() => observeServing([{ observedAt: 0, workers: [5 as never] }], 0)).toThrow(/^members: expected strings/);
});
