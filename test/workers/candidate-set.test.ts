/** LB-14a, LB-10: what `exclude` leaves of a set and what narrowing keeps, against the sets made of those workers. */
import { describe, expect, it } from 'vitest';
import type { WorkerSignals } from '../../src/workers/candidate.js';
import { CandidateSet } from '../../src/workers/candidate-set.js';
import { fingerprintOf } from '../../src/workers/fingerprint.js';
import { fc } from '../support/property.js';

function worker(id: string, inFlight = 0): WorkerSignals {
  return { id, inFlight, activeKeys: 0, load: undefined, creditTokens: 0, creditRequests: 0, keyInFlight: () => 0 };
}

const ids = (set: CandidateSet): string[] => set.workers.map(({ id }) => id);

/** A set of ten thousand whose owner keeps positions, and how many of its workers were read so far. */
function watchedSet(): { readonly set: CandidateSet; readonly reads: () => number } {
  let read = 0;
  const all = Array.from({ length: 10_000 }, (_, i) => worker(`w${i}`, 1));
  const watched = new Proxy(all, {
    get(target, name) {
      if (typeof name === 'string' && /^\d+$/.test(name)) read += 1;
      return Reflect.get(target, name);
    },
  });
  return { set: new CandidateSet(watched, 10_000, (id) => Number(id.slice(1))), reads: () => read };
}

describe('a set without some of its candidates', () => {
  it('LB-14a, RR-5: is in every respect the set of the rest', () => {
    const cases = fc.record({
      size: fc.integer({ min: 0, max: 12 }),
      excluded: fc.array(fc.integer({ min: 0, max: 14 }), { maxLength: 9 }),
      later: fc.array(fc.integer({ min: 0, max: 14 }), { maxLength: 4 }),
    });
    fc.assert(
      fc.property(cases, ({ size, excluded, later }) => {
        const workers = Array.from({ length: size }, (_, i) => worker(`w${i}`, i * i));
        const names = (numbers: readonly number[]): string[] => numbers.map((number) => `w${number}`);
        const set = new CandidateSet(workers).without(names(excluded)).without(names(later));
        const left = workers.filter((_, i) => !excluded.includes(i) && !later.includes(i));
        const rest = new CandidateSet(left);
        expect([set.size, set.inFlight, fingerprintOf(set)]).toEqual([rest.size, rest.inFlight, fingerprintOf(rest)]);
        for (let i = -1; i <= size; i++) {
          expect(set.at(i)).toBe(rest.at(i));
          expect(set.indexOf(`w${i}`)).toBe(rest.indexOf(`w${i}`));
          expect(set.get(`w${i}`)).toBe(rest.get(`w${i}`));
          expect(set.has(`w${i}`)).toBe(rest.has(`w${i}`));
        }
        expect(set.workers).toEqual(left);
      }),
      { seed: 14, numRuns: 500 },
    );
  });

  it('LB-14a: is the set itself when nobody in it is excluded', () => {
    const set = new CandidateSet([worker('a'), worker('b')]);
    expect(set.without([])).toBe(set);
    expect(set.without(['c', ''])).toBe(set);
    expect(ids(set.without(['a', 'a', 'b']))).toEqual([]);
  });

  it('LB-14a, PO-6: costs what was excluded: finding candidates by position or id reads nobody else', () => {
    const { set, reads } = watchedSet();
    fingerprintOf(set);
    const before = reads();
    const rest = set.without(['w17', 'w18', 'w9000']);
    fingerprintOf(rest);
    expect([rest.size, rest.inFlight]).toEqual([9997, 9997]);
    expect([rest.at(17)?.id, rest.at(8999)?.id, rest.indexOf('w9001'), rest.has('w18')]).toEqual([
      'w19',
      'w9002',
      8998,
      false,
    ]);
    expect(reads() - before).toBeLessThan(20);
  });
});

describe('the positions of a set that nobody keeps', () => {
  it('PO-6: are made on first use, once', () => {
    let read = 0;
    const all = Array.from({ length: 1000 }, (_, i) =>
      Object.defineProperty(worker(`w${i}`), 'id', { get: () => `w${++read && i}` }),
    );
    const set = new CandidateSet(all);
    expect(read).toBe(0);
    expect([set.indexOf('w999'), set.indexOf('w5'), set.indexOf('nobody'), set.has('w7')]).toEqual([999, 5, -1, true]);
    expect(read).toBe(1000);
  });
});

describe('the part of a set with some ids', () => {
  it('LB-10, WK-23: is in every respect the set of those workers, in the order of the whole', () => {
    const cases = fc.record({
      size: fc.integer({ min: 0, max: 12 }),
      excluded: fc.array(fc.integer({ min: 0, max: 14 }), { maxLength: 3 }),
      named: fc.array(fc.integer({ min: 0, max: 14 }), { maxLength: 14 }),
    });
    fc.assert(
      fc.property(cases, ({ size, excluded, named }) => {
        const workers = Array.from({ length: size }, (_, i) => worker(`w${i}`, i * i));
        const set = new CandidateSet(workers).without(excluded.map((i) => `w${i}`));
        const part = set.only(new Set(named.map((i) => `w${i}`)));
        const left = workers.filter((_, i) => named.includes(i) && !excluded.includes(i));
        expect(part.workers).toEqual(left);
        expect(part.inFlight).toBe(left.reduce((sum, { inFlight }) => sum + inFlight, 0));
        expect(part === set).toBe(left.length === set.size);
        for (const [position, { id }] of left.entries()) expect(part.indexOf(id)).toBe(position);
      }),
      { seed: 10, numRuns: 500 },
    );
  });

  it('LB-10, PO-6: costs what was named: nobody else is read', () => {
    const { set, reads } = watchedSet();
    expect(ids(set.only(new Set(['w9000', 'w18', 'w17'])))).toEqual(['w17', 'w18', 'w9000']);
    expect(reads()).toBe(3);
  });
});

describe('fingerprints', () => {
  it('RR-5: tell apart order, membership and ids that join up alike', () => {
    const lists = [[], ['a'], ['b'], ['a', 'b'], ['b', 'a'], ['ab'], ['a', 'b', 'c'], ['a', 'c', 'b'], ['b', 'a', 'c']];
    const of = (list: readonly string[]): string => fingerprintOf(new CandidateSet(list.map((id) => worker(id))));
    expect(new Set(lists.map(of)).size).toBe(lists.length);
    expect(lists.map(of)).toEqual(lists.map(of));
    // The size and two hashes, either of which does so by itself.
    const halves = lists.map((list) => of(list).split(':'));
    for (const half of [1, 2]) expect(new Set(halves.map((parts) => parts[half])).size).toBe(lists.length);
  });
});
