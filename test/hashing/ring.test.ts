import { beforeAll, describe, expect, it } from 'vitest';
import { Ring } from '../../src/hashing/ring.js';
import { type Hash64, loadHash } from '../../src/runtime/hash.js';
import { goldenIds, goldenKeys } from './golden-keys.js';
import golden from './ring-golden.json' with { type: 'json' };

let hash: Hash64;
beforeAll(async () => {
  hash = await loadHash();
});

const anyone = () => true;

function ringOf(ids: Iterable<string>): Ring {
  const ring = new Ring(hash);
  for (const id of ids) ring.add(id);
  return ring;
}

function ownersOf(ring: Ring, keys: readonly string[], isEligible: (id: string) => boolean = anyone) {
  return keys.map((key) => ring.lookup(hash(key), isEligible));
}

function permutations(items: readonly string[]): string[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]));
}

function keysOf(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `key-${i}`);
}

describe('Ring', () => {
  it('B60: the placement of a fixed list of keys is pinned', () => {
    const owners = ownersOf(ringOf(goldenIds), goldenKeys).map((id) => goldenIds.indexOf(id as string).toString(16));
    expect(owners.join('')).toBe(golden.owners.join(''));
  });

  it('B60: all 24 orders of four workers give the same map for 10 000 keys', () => {
    const hashes = keysOf(10_000).map((key) => hash(key));
    const ids = ['w1', 'w2', 'w3', 'w4'];
    const mapOf = (ring: Ring) =>
      hashes.map((position) => ids.indexOf(ring.lookup(position, anyone) as string)).join('');
    const expected = mapOf(ringOf(ids));
    for (const order of permutations(ids)) expect(mapOf(ringOf(order))).toBe(expected);
  });

  it('WK-62: a ring that lost and regained workers equals a fresh one, looked up in between or not', () => {
    const keys = keysOf(2000);
    const ring = ringOf(['a', 'b', 'c', 'd', 'e', 'f']);
    ring.remove('b');
    ownersOf(ring, ['x']);
    for (const id of ['c', 'd', 'e']) ring.remove(id);
    ring.add('g');
    ring.add('c');
    ownersOf(ring, ['x']);
    ring.remove('g');
    ring.add('b');
    expect(ownersOf(ring, keys)).toEqual(ownersOf(ringOf(['f', 'c', 'b', 'a']), keys));
    expect(ring.size).toBe(4);
  });

  it('WK-63: an id given twice counts once', () => {
    const keys = keysOf(1000);
    const ring = ringOf(['w1', 'w2', 'w1', 'w1']);
    expect(ring.size).toBe(2);
    expect(ownersOf(ring, keys)).toEqual(ownersOf(ringOf(['w1', 'w2']), keys));
    ring.remove('w1');
    expect(new Set(ownersOf(ring, keys))).toEqual(new Set(['w2']));
  });

  it('CH-8: removing one of N workers moves only its keys, about 1/N, and adding it back restores the map', () => {
    const keys = keysOf(20_000);
    const ids = Array.from({ length: 10 }, (_, i) => `w${i}`);
    const ring = ringOf(ids);
    const before = ownersOf(ring, keys);
    ring.remove('w3');
    const after = ownersOf(ring, keys);
    const staying = (owners: typeof before) => owners.filter((_, i) => before[i] !== 'w3');
    expect(staying(after)).toEqual(staying(before));
    expect(after).not.toContain('w3');
    const moved = before.filter((id) => id === 'w3').length;
    expect(moved / keys.length).toBeGreaterThan(0.07);
    expect(moved / keys.length).toBeLessThan(0.13);
    ring.add('w3');
    expect(ownersOf(ring, keys)).toEqual(before);
  });

  it('CH-8: an ineligible owner is passed over clockwise, just as if it were not on the ring', () => {
    const keys = keysOf(3000);
    const ring = ringOf(['w1', 'w2', 'w3', 'w4', 'w5']);
    const passedOver = ownersOf(ring, keys, (id) => id !== 'w2' && id !== 'w5');
    expect(passedOver).toEqual(ownersOf(ringOf(['w1', 'w3', 'w4']), keys));
  });

  it('B61: two workers share a ring evenly, within 9 percentage points over 10 000 keys', () => {
    const owners = ownersOf(ringOf(['w1', 'w2']), keysOf(10_000));
    const share = owners.filter((id) => id === 'w1').length / owners.length;
    expect(Math.abs(share - 0.5)).toBeLessThan(0.09);
  });

  it('B62: sixteen similar names get 6.25 % ± 1.9 pp of 100 000 keys each', () => {
    const ids = Array.from({ length: 16 }, (_, i) => `http://10.0.0.${i + 1}:8000`);
    const counts = new Map<string, number>(ids.map((id) => [id, 0]));
    for (const id of ownersOf(ringOf(ids), keysOf(100_000)))
      counts.set(id as string, (counts.get(id as string) ?? 0) + 1);
    expect(counts.size).toBe(16);
    for (const count of counts.values()) expect(Math.abs(count / 100_000 - 0.0625)).toBeLessThan(0.019);
  });

  it('WK-63: nobody is found on an empty ring, and nobody when no one is eligible', () => {
    const ring = new Ring(hash);
    expect(ring.lookup(1n, anyone)).toBeUndefined();
    ring.add('w1');
    ring.add('w2');
    expect(ring.lookup(1n, () => false)).toBeUndefined();
    ring.remove('w1');
    ring.remove('w2');
    ring.remove('unknown');
    expect(ring.lookup(1n, anyone)).toBeUndefined();
    expect(ring.size).toBe(0);
  });

  it('WK-63: asks about each worker at most once, and about the removed ones never', () => {
    const ids = Array.from({ length: 40 }, (_, i) => `w${i}`);
    const ring = ringOf(ids);
    ring.remove('w7');
    const asked: string[] = [];
    ring.lookup(hash('some key'), (id) => asked.push(id) === 0);
    expect(asked.toSorted()).toEqual(ids.filter((id) => id !== 'w7').toSorted());
  });

  it('B91: ids that are names of object members are ordinary', () => {
    const ids = ['__proto__', 'constructor', 'toString'];
    const owners = ownersOf(ringOf(ids), keysOf(3000));
    expect(new Set(owners)).toEqual(new Set(ids));
  });

  it('B89: two rings made at the same time agree', async () => {
    const [first, second] = await Promise.all([loadHash(), loadHash()]);
    const rings = [first, second].map((own) => {
      const ring = new Ring(own);
      for (const id of goldenIds) ring.add(id);
      return goldenKeys.map((key) => ring.lookup(own(key), anyone));
    });
    expect(rings[0]).toEqual(rings[1]);
    expect(first).toBe(second);
  });
});
