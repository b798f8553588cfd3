import { describe, expect, it } from 'vitest';
import { Map64 } from '../../src/prefix/map64.js';
import { seededRandom } from '../../src/runtime/random.js';

/** Keys of large tables: random ones, engine-like counters, and counters in the high lane or the top bits. */
const series: readonly (readonly [string, (i: number) => readonly [number, number]])[] = [
  ['random', randomKeys()],
  ['counting', (i) => [i, 0]],
  ['counting in the high lane', (i) => [0, i]],
  ['counting in the top bits', (i) => [i << 16, i >>> 16]],
  ['multiples of a page', (i) => [(i << 12) | 0, i >>> 20]],
];

function randomKeys(): (i: number) => readonly [number, number] {
  const random = seededRandom(1);
  const lanes = Int32Array.from({ length: 200_000 }, () => random() * 4294967296);
  return (i) => [lanes[2 * i] as number, lanes[2 * i + 1] as number];
}

describe('Map64', () => {
  it.each(series)('LB-5: holds 60 000 entries through splits, sweeps and shrinking, keys %s', (_, keyOf) => {
    const count = 60_000;
    const map = new Map64();
    let wrong = 0;
    const check = (isRight: boolean): void => {
      if (!isRight) wrong++;
    };
    for (let i = 0; i < count; i++) {
      check(map.set(...keyOf(i), i) === -1);
      // Also while some pages have been split and others not yet.
      if (i % 2_500 === 0) check([...map.values()].length === i + 1);
    }
    for (let i = 0; i < count; i++) check(map.get(...keyOf(i)) === i);
    expect([wrong, map.size]).toEqual([0, count]);
    expect(map.byteLength / count).toBeGreaterThan(12);
    expect(map.byteLength / count).toBeLessThan(40);
    expect([...map.values()].length).toBe(count);

    // A walk visits all that stays, although the map grows meanwhile.
    const visits = new Uint8Array(count);
    let added = count;
    for (let cursor = 0; cursor < Map64.end; ) {
      cursor = map.sweep(cursor, (value) => {
        if (value < count) visits[value] = (visits[value] as number) + 1;
        return value % 3 !== 0;
      });
      for (let i = 0; i < 40 && added < count + 20_000; i++, added++) map.set(...keyOf(added), added);
    }
    expect(visits.every((number) => number > 0)).toBe(true);
    for (let i = 0; i < count; i++) check(map.get(...keyOf(i)) === (i % 3 === 0 ? -1 : i));
    for (let i = 0; i < count; i++) check(map.delete(...keyOf(i)) === (i % 3 === 0 ? -1 : i));
    for (let cursor = 0; cursor < Map64.end; ) cursor = map.sweep(cursor, () => false);
    expect([wrong, map.size]).toEqual([0, 0]);
    // Empty pages are small.
    expect(map.byteLength).toBeLessThan(20_000);
  });

  it.each(series)('LB-31: gives room back as entries are deleted, keys %s', (_, keyOf) => {
    const map = new Map64();
    for (let i = 0; i < 20_000; i++) map.set(...keyOf(i), i);
    const full = map.byteLength;
    for (let i = 100; i < 20_000; i++) map.delete(...keyOf(i));
    expect([map.size, [...map.values()].sort((a, b) => a - b)]).toEqual([
      100,
      Array.from({ length: 100 }, (_v, i) => i),
    ]);
    expect(map.byteLength).toBeLessThan(full / 8);
  });

  it('LB-5: keys that agree in all mixed bits make one page grow, not the directory', () => {
    // low ^ imul(high, 0x85ebca6b) is 0 for all of them, and so is the mixed key.
    const map = new Map64();
    const count = 1_500;
    for (let high = 0; high < count; high++) map.set(Math.imul(high, 0x85ebca6b), high, high);
    expect(map.byteLength).toBeLessThan(count * 60);
    for (let high = 0; high < count; high += 100) expect(map.get(Math.imul(high, 0x85ebca6b), high)).toBe(high);
    for (let high = 0; high < count; high++) map.delete(Math.imul(high, 0x85ebca6b), high);
    expect(map.size).toBe(0);
  });
});
