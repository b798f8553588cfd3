import { describe, expect, it } from 'vitest';
import { eligibleEndpoints, type ServingGroup, type ServingRole } from '../../src/workers/endpoints.js';

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
    for (const port of [1, 65_535]) expect(eligibleEndpoints([v6], { port })[0]?.url).toBe(`http://[fd00::1]:${port}`);
    for (const port of [0, 65_536, 80.5]) {
      expect(() => eligibleEndpoints([], { port })).toThrowError(
        expect.objectContaining({ field: 'port', value: port }),
      );
    }
  });
});

it('LB-42: groups of another shape are refused by name', () => {
  const shaped = (members: unknown) => [{ role: 'server', replicas: [{ members }] }] as never;
  expect(() => eligibleEndpoints('groups' as never)).toThrow(/^groups: expected an array/);
  expect(() => eligibleEndpoints(shaped([{ index: 0, host: 5 }]))).toThrow(/^host: expected a string, got 5/);
  expect(() => eligibleEndpoints(shaped(null))).toThrow(/^members: expected an array, got null/);
  expect(() => eligibleEndpoints(shaped([null]))).toThrow(/^member: expected an object, got null/);
  expect(() => eligibleEndpoints([group('server'), null as never])).toThrow(/^groups\[1\]: expected an object/);
  const replicas = (wrong: unknown) => [group('server'), { role: 'server', replicas: wrong }] as never;
  expect(() => eligibleEndpoints(replicas('r'))).toThrow(/^groups\[1\]\.replicas: expected an array, got "r"/);
  expect(() => eligibleEndpoints(replicas([5]))).toThrow(/^replica: expected an object, got 5/);
  expect(() => eligibleEndpoints([], { externalModes: 'per_rank' as never })).toThrow(
    /^externalModes: expected an array/,
  );
  expect(() => eligibleEndpoints([], null as never)).toThrow(/^options: expected an object/);
});
