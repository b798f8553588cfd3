/** What a policy used alone makes of candidates, requests and options of the wrong shape. */
import { describe, expect, it } from 'vitest';
import { RoutingConfigError } from '../../src/errors.js';
import { leastLoad } from '../../src/policies/least-load.js';
import { Decision, type Policy } from '../../src/policies/policy.js';
import { random } from '../../src/policies/random.js';
import { roundRobin } from '../../src/policies/round-robin.js';
import { standalone } from '../../src/policies/standalone.js';
import type { Candidate } from '../../src/workers/candidate.js';
import { alone, two } from './custom-alone.js';

describe('LB-42: hostile candidates and requests', () => {
  it.each([
    ['candidates', null],
    ['candidates', {}],
    ['candidates[0]', [null]],
    ['candidates[0]', ['a']],
    ['candidates[0].id', [{ inFlight: 0 }]],
    ['candidates[0].id', [{ id: '', inFlight: 0 }]],
    [
      'candidates[1].id',
      [
        { id: 'a', inFlight: 0 },
        { id: 'a', inFlight: 0 },
      ],
    ],
    [
      'candidates[1].inFlight',
      [
        { id: 'a', inFlight: 0 },
        { id: 'b', inFlight: -1 },
      ],
    ],
    ['candidates[0].inFlight', [{ id: 'a', inFlight: 0.5 }]],
    ['candidates[0].inFlight', [{ id: 'a', inFlight: Number.NaN }]],
    ['candidates[0].inFlight', [{ id: 'a', inFlight: '3' }]],
    ['candidates[0].inFlight', [{ id: 'a' }]],
    ['candidates[0].activeKeys', [{ id: 'a', inFlight: 0, activeKeys: -2 }]],
    ['candidates[0].keysInFlight', [{ id: 'a', inFlight: 0, keysInFlight: 'k' }]],
    ['candidates[0].keysInFlight', [{ id: 'a', inFlight: 0, keysInFlight: null }]],
  ])('refuses %s before anything changed: %j', (field, candidates) => {
    const policy = roundRobin();
    const refusal = (call: () => unknown) => {
      expect(call).toThrow(TypeError);
      expect(call).toThrow(new RegExp(`^${field.replaceAll(/[[\].]/g, '\\$&')}: expected \\w.*, got `));
    };
    refusal(() => policy.selectWorker({}, candidates as never));
    refusal(() => policy.explain({}, candidates as never));
    expect(policy.selectWorker({}, two)).toMatchObject({ worker: { id: 'a' } });
  });

  it('finds a duplicate also in a list as long as the last one', () => {
    const policy = random();
    policy.selectWorker({}, two);
    expect(() =>
      policy.selectWorker({}, [
        { id: 'b', inFlight: 0 },
        { id: 'b', inFlight: 0 },
      ]),
    ).toThrow('candidates[1].id: expected distinct ids, got "b"');
  });

  it('LR-11a: a report that cannot be read is no report, and resets no credit', () => {
    const policy = leastLoad();
    const known = { waitingTokens: 0, tokensPerSecond: 100 };
    policy.selectWorker({}, [{ id: 'a', inFlight: 0, report: known }]);
    const failing = {
      get observedAt(): number {
        throw new Error('unreadable');
      },
    };
    for (const report of [null, 3, { ranks: [] }, { waitingRequests: '1' }, failing]) {
      const { record } = policy.selectWorker({}, [{ id: 'a', inFlight: 4, report } as never]);
      expect(record.expectedWaitSeconds).toBeUndefined();
    }
    const { record } = policy.selectWorker({}, [{ id: 'a', inFlight: 0, report: known }]);
    expect(record.expectedWaitSeconds).toBe((6 * 1024) / 100);
  });

  it('refuses request fields of the wrong type', () => {
    expect(() => random().selectWorker(null as never, two)).toThrow(/^request: /);
    expect(() => random().selectWorker({ text: 3 as never }, two)).toThrow(/^text: /);
  });
});

it('LB-42: counts and reports that fail when they are read are none, and cost no other candidate anything', () => {
  const fail = (): never => {
    throw new Error('unreadable');
  };
  const failing = Object.defineProperty({}, 'k', { get: fail, enumerable: true });
  const odd = { k: Object.create(null) };
  for (const keysInFlight of [failing, odd] as Candidate['keysInFlight'][]) {
    const policy = leastLoad({ seed: 1 });
    const report = Object.defineProperty({}, 'observedAt', { get: fail });
    const candidates = [...two, { id: 'c', inFlight: 0, keysInFlight, report }];
    expect(policy.selectWorker({}, candidates)).toMatchObject({ ok: true, worker: { id: 'c' } });
  }
});

it('LB-42: options and a ring of the wrong type are refused', () => {
  const policy: Policy = { name: 'own', needs: {}, decide: () => new Decision(undefined) };
  expect(() => standalone(policy, null as never)).toThrow(/^options: expected an object, got null/);
  expect(() => standalone(policy, {}, 5 as never)).toThrow(RoutingConfigError);
});

it('LB-42: an exclusion that fails when it is read is refused before any candidate is known', () => {
  const known: string[] = [];
  const policy = alone({ workerAdded: (id) => void known.push(id) });
  const exclude = new Proxy(['a'], {
    get: (list, key) => {
      if (key === '0') throw new Error('unreadable');
      return Reflect.get(list, key);
    },
  });
  expect(() => policy.selectWorker({ exclude }, two)).toThrow('unreadable');
  expect(known).toEqual([]);
});
