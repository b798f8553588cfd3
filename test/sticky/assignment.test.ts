/** How a key without a usable pin is placed, mode by mode. */
import { scriptedRandom } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { assign, assignable } from '../../src/sticky/assignment.js';
import type { WorkerSignals } from '../../src/workers/candidate.js';
import { CandidateSet } from '../../src/workers/candidate-set.js';

function worker(id: string, inFlight: number, activeKeys: number): WorkerSignals {
  return { id, inFlight, activeKeys, load: undefined, creditTokens: 0, creditRequests: 0, keyInFlight: () => 0 };
}

const noDraws = scriptedRandom([]);
// Fewest in flight: b and d. Fewest keys: c alone.
const candidates = new CandidateSet([worker('a', 3, 2), worker('b', 1, 2), worker('c', 4, 1), worker('d', 1, 3)]);

describe('assign', () => {
  it('ST-50: a single least loaded worker is taken without a draw', () => {
    expect(assign('min_group', candidates, noDraws)?.id).toBe('c');
  });

  it.each([
    [0, 'b'],
    [0.499, 'b'],
    [0.5, 'd'],
    [0.999, 'd'],
  ])('ST-50: of the least loaded a draw of %d takes %s', (draw, id) => {
    const random = scriptedRandom([draw]);
    expect(assign('min_load', candidates, random)?.id).toBe(id);
    expect(random.drawn).toBe(1);
  });

  it('ST-50: random takes any of them, whatever their load', () => {
    const taken = [0, 0.25, 0.5, 0.75].map((draw) => assign('random', candidates, scriptedRandom([draw]))?.id);
    expect(taken).toEqual(['a', 'b', 'c', 'd']);
  });

  it('ST-50: nobody is taken where there is nobody', () => {
    const nobody = new CandidateSet([]);
    expect(assign('min_load', nobody, noDraws)).toBeUndefined();
    expect(assign('min_group', nobody, noDraws)).toBeUndefined();
  });
});

describe('assignable', () => {
  it.each([
    ['random', ['a', 'b', 'c', 'd']],
    ['min_load', ['b', 'd']],
    ['min_group', ['c']],
  ] as const)('LB-13: %s could take %j', (mode, ids) => {
    expect(assignable(mode, candidates)).toEqual(ids);
  });
});
