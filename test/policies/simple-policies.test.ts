import { describe, expect, it } from 'vitest';
import { resolveOptions } from '../../src/options/validate.js';
import { createPassthrough, passthrough } from '../../src/policies/passthrough.js';
import type { PolicyWarning } from '../../src/policies/policy.js';
import { random } from '../../src/policies/random.js';
import { createRoundRobin, roundRobin } from '../../src/policies/round-robin.js';
import { runtimeTable } from '../../src/policies/runtime-options.js';
import { type StandalonePolicy, standalone } from '../../src/policies/standalone.js';

const idle = (...ids: string[]) => ids.map((id) => ({ id, inFlight: 0 }));

function pick(policy: StandalonePolicy, ids: readonly string[]): string | undefined {
  const selection = policy.selectWorker({}, idle(...ids));
  return selection.ok ? selection.worker.id : undefined;
}

describe('RA-1: random', () => {
  it('reaches every candidate, whatever its load, and nobody else', () => {
    const won = new Set<string>();
    for (let seed = 0; seed < 200; seed++) {
      const selection = random({ seed }).selectWorker({}, [
        { id: 'a', inFlight: 999 },
        { id: 'b', inFlight: 0 },
        { id: 'c', inFlight: 3 },
      ]);
      if (selection.ok) won.add(selection.worker.id);
    }
    expect([...won].sort()).toEqual(['a', 'b', 'c']);
  });

  it('B69: 10 000 picks in one loop are uniform and independent, with a clock that stands still', () => {
    const policy = random({ seed: 69, clock: () => 0 });
    const counts = new Map<string, number>();
    let longestRun = 0;
    let run = 0;
    let last: string | undefined;
    for (let i = 0; i < 10_000; i++) {
      const id = pick(policy, ['a', 'b', 'c', 'd', 'e']) as string;
      counts.set(id, (counts.get(id) ?? 0) + 1);
      run = id === last ? run + 1 : 1;
      last = id;
      longestRun = Math.max(longestRun, run);
    }
    let chiSquare = 0;
    for (const count of counts.values()) chiSquare += (count - 2000) ** 2 / 2000;
    expect(counts.size).toBe(5);
    // Four degrees of freedom, p = 0.001.
    expect(chiSquare).toBeLessThan(18.47);
    expect(longestRun).toBeLessThanOrEqual(12);
  });

  it('RA-1, LB-11: no candidate, nothing selected', () => {
    expect(random().selectWorker({}, [])).toMatchObject({
      ok: false,
      reason: 'no_available_workers',
      code: 'no_available_workers',
      retryable: true,
    });
  });

  it('LB-12: explain gives the whole set of possible winners', () => {
    expect(random().explain({}, idle('a', 'b')).policy.tieSet).toEqual(['a', 'b']);
  });
});

describe('PT-1, PT-2: passthrough', () => {
  it('PT-1: takes the first candidate, whatever its load', () => {
    const selection = passthrough().selectWorker({}, [
      { id: 'a', inFlight: 99 },
      { id: 'b', inFlight: 0 },
    ]);
    expect(selection).toMatchObject({ ok: true, worker: { id: 'a' }, record: { policy: 'passthrough', inFlight: 99 } });
    expect(pick(passthrough(), ['b'])).toBe('b');
    expect(pick(passthrough(), [])).toBeUndefined();
  });

  it('PT-2: warns once an instance, when a second worker is registered', () => {
    const warnings: PolicyWarning[] = [];
    const policy = createPassthrough({ warning: (warning) => warnings.push(warning) });
    policy.workerAdded?.('a', 0);
    policy.workerRemoved?.('a', 0);
    policy.workerAdded?.('b', 0);
    expect(warnings).toEqual([]);
    policy.workerAdded?.('c', 0);
    expect(warnings).toEqual([
      {
        code: 'passthroughManyWorkers',
        message: 'passthrough sends every request to the first available worker',
        fields: ['policy'],
      },
    ]);
    policy.workerAdded?.('d', 0);
    policy.configure?.({});
    policy.workerRemoved?.('c', 0);
    policy.workerAdded?.('c', 0);
    expect(warnings).toHaveLength(1);
  });
});

describe('RR: round_robin', () => {
  it('RR-1: takes the candidates in turn', () => {
    const policy = roundRobin();
    const picks = Array.from({ length: 7 }, () => pick(policy, ['a', 'b', 'c']));
    expect(picks).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a']);
  });

  it('RR-2: a set that returns resumes where it stopped', () => {
    const policy = roundRobin();
    expect(pick(policy, ['a', 'b', 'c'])).toBe('a');
    expect(pick(policy, ['a', 'c'])).toBe('c');
    expect(pick(policy, ['a', 'c'])).toBe('a');
    expect(pick(policy, ['a', 'b', 'c'])).toBe('b');
  });

  it('RR-3: new sets start one position further each', () => {
    const policy = roundRobin();
    const starts = Array.from({ length: 6 }, (_, i) => pick(policy, ['a', 'b', 'c', `d${i}`]));
    expect(starts).toEqual(['a', 'b', 'c', 'd3', 'a', 'b']);
  });

  it('RR-3: sets that are known already do not move the shared start', () => {
    const policy = roundRobin();
    for (const set of ['ab', 'ab', 'ab', 'cd', 'ab', 'cd', 'ab']) pick(policy, [...set]);
    // Two sets were new: the third starts at position 2.
    expect(pick(policy, ['a', 'b', 'c', 'd'])).toBe('c');
  });

  it('RR-3, LB-12: a look at a new set does not use up its start', () => {
    const policy = roundRobin();
    for (let i = 0; i < 5; i++) expect(policy.explain({}, idle('a', 'b')).policy.tieSet).toEqual(['a']);
    expect(pick(policy, ['a', 'b'])).toBe('a');
  });

  it('RR-4, B80: remembers 4096 sets and forgets the least recently used first', () => {
    const policy = roundRobin();
    const set = (i: number) => [`x${i}`, `y${i}`];
    for (let i = 0; i < 4096; i++) pick(policy, set(i));
    // Set 0 began at position 0; using it again makes set 1 the oldest.
    expect(pick(policy, set(0))).toBe('y0');
    pick(policy, set(4096));
    expect(pick(policy, set(0))).toBe('x0');
    // Set 1 began at 1 and would go on at 0; forgotten, it starts at the shared position 4097, which is odd.
    expect(pick(policy, set(1))).toBe('y1');
  });

  it('RR-5: the order of the ids is part of the set', () => {
    const policy = roundRobin();
    expect(pick(policy, ['a', 'b'])).toBe('a');
    expect(pick(policy, ['b', 'a'])).toBe('a');
    expect(pick(policy, ['a', 'b'])).toBe('b');
  });

  it('RR-6, B70: interleaved sets are each covered evenly', () => {
    const policy = roundRobin();
    const counts = new Map<string, number>();
    for (let i = 0; i < 40; i++) {
      for (const leg of ['p', 'd']) {
        const id = pick(
          policy,
          [1, 2, 3, 4].map((n) => `${leg}${n}`),
        ) as string;
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
    }
    expect([...counts.values()]).toEqual(Array(8).fill(10));
  });

  it('LB-14a: excluded candidates make another set', () => {
    const policy = roundRobin();
    const candidates = idle('a', 'b', 'c');
    expect(policy.selectWorker({ exclude: ['a'] }, candidates)).toMatchObject({ worker: { id: 'b' } });
    expect(policy.selectWorker({}, candidates)).toMatchObject({ worker: { id: 'b' } });
  });

  it('LB-35: configured anew, the rotations go on', () => {
    const policy = createRoundRobin();
    const alone = standalone(policy, resolveOptions(runtimeTable, undefined));
    expect(pick(alone, ['a', 'b'])).toBe('a');
    policy.configure?.({});
    expect(pick(alone, ['a', 'b'])).toBe('b');
  });

  it('RR-1: no candidate, nothing selected, and no rotation begun', () => {
    const policy = roundRobin();
    expect(pick(policy, [])).toBeUndefined();
    expect(policy.explain({}, []).policy).toEqual({ tieSet: [] });
    expect(pick(policy, ['a', 'b'])).toBe('a');
  });
});
