import { bucket, cacheAware, leastLoad, random } from 'kvroute';
import { distribution, fakeFleet, fakeReport } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';

describe('distribution', () => {
  it('EW-20: reaches exactly the tie, and counts add up to the seeds', () => {
    const fleet = fakeFleet(5, (index) => ({ report: fakeReport({ waitingTokens: index < 3 ? 100 : 90_000 }) }));
    const { reachable, counts, nobody } = distribution(leastLoad, {}, fleet);
    expect(reachable).toEqual(['w1', 'w2', 'w3']);
    expect([...counts.keys()]).toEqual(['w1', 'w2', 'w3', 'w4', 'w5']);
    expect([counts.get('w4'), counts.get('w5'), nobody]).toEqual([0, 0, 0]);
    expect([...counts.values()].reduce((sum, wins) => sum + wins, 0)).toBe(200);
  });

  it('RA-1: the same seeds give the same counts; seeds may be a number or a list', () => {
    const fleet = fakeFleet(4);
    const options = { seeds: 50 };
    expect(distribution(random, {}, fleet, options)).toEqual(distribution(random, {}, fleet, options));
    const seeds = Array.from({ length: 50 }, (_, seed) => seed);
    expect(distribution(random, {}, fleet, { seeds })).toEqual(distribution(random, {}, fleet, options));
    const single = distribution(random, {}, fleet, { seeds: [3] });
    expect([single.reachable.length, single.nobody]).toEqual([1, 0]);
  });

  it('counts the runs that selected nobody', () => {
    const full = fakeFleet(2, () => ({ report: fakeReport({ waitingRequests: 9 }) }));
    const capped = distribution((runtime) => leastLoad({ ...runtime, maxWaitingRequests: 5 }), {}, full, { seeds: 20 });
    expect(capped).toEqual({
      reachable: [],
      counts: new Map([
        ['w1', 0],
        ['w2', 0],
      ]),
      nobody: 20,
    });
    expect(distribution(bucket, {}, [], { seeds: 3 })).toEqual({ reachable: [], counts: new Map(), nobody: 3 });
  });

  it('LB-31: ids of object built-ins are counted like any other', () => {
    const fleet = [
      { id: '__proto__', inFlight: 0 },
      { id: 'constructor', inFlight: 0 },
    ];
    const { reachable, counts } = distribution(random, {}, fleet, { seeds: 100 });
    expect(reachable).toEqual(['__proto__', 'constructor']);
    expect((counts.get('__proto__') ?? 0) + (counts.get('constructor') ?? 0)).toBe(100);
  });

  it('CA-36: a policy is made to know earlier requests where it is made', () => {
    const text = 'the same long prompt, word for word';
    const warm = distribution(
      (runtime) => {
        const policy = cacheAware(runtime);
        policy.selectWorker({ text }, fakeFleet(3).slice(1, 2));
        return policy;
      },
      { text },
      fakeFleet(3),
    );
    expect(warm.reachable).toEqual(['w2']);
  });
});

it('LB-42: names the argument of the wrong type', () => {
  const fleet = fakeFleet(2);
  expect(() => distribution(null as never, {}, fleet)).toThrow(/^make: expected a function/);
  expect(() => distribution(leastLoad, {}, null as never)).toThrow(/^candidates: expected an array/);
  for (const seeds of [-1, 0.5, null, {}]) {
    expect(() => distribution(leastLoad, {}, fleet, { seeds: seeds as never })).toThrow(
      /^seeds: expected an integer ≥ 0/,
    );
  }
  expect(distribution(leastLoad, {}, fleet, { seeds: 0 })).toMatchObject({ reachable: [], nobody: 0 });
});
