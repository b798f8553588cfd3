import { beforeAll, describe, expect, it } from 'vitest';
import { Ring } from '../../src/hashing/ring.js';
import { type Hash64, loadHash } from '../../src/runtime/hash.js';
import { fc } from '../support/property.js';

let xxh64: Hash64;
beforeAll(async () => {
  xxh64 = await loadHash();
});

/** The ring as WK-63 words it: all nodes in one sorted list, made anew for every lookup. */
function naiveLookup(
  hash: Hash64,
  ids: ReadonlySet<string>,
  position: bigint,
  isEligible: (id: string) => boolean,
): string | undefined {
  const nodes = [...ids].flatMap((id) =>
    Array.from({ length: 150 }, (_, i) => ({ at: Number(hash(`${id}#${i}`)), id })),
  );
  nodes.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  const start = nodes.findIndex(({ at }) => at >= Number(position));
  const clockwise = start < 0 ? nodes : [...nodes.slice(start), ...nodes.slice(0, start)];
  return clockwise.find(({ id }) => isEligible(id))?.id;
}

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l');
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('add' as const), id }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), id }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('lookup' as const),
      position: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      ineligible: fc.uniqueArray(id),
    }),
  },
);

function agrees(hash: Hash64, steps: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[]): void {
  const ring = new Ring(hash);
  const ids = new Set<string>();
  for (const action of steps) {
    if (action.do === 'add') {
      ring.add(action.id);
      ids.add(action.id);
    } else if (action.do === 'remove') {
      ring.remove(action.id);
      ids.delete(action.id);
    } else {
      const isEligible = (candidate: string) => !action.ineligible.some((one) => one === candidate);
      expect(ring.lookup(action.position, isEligible)).toBe(naiveLookup(hash, ids, action.position, isEligible));
    }
    expect(ring.size).toBe(ids.size);
  }
}

describe('Ring against a sorted list', () => {
  it('WK-62, WK-63: agrees after any sequence of additions, removals and lookups', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => agrees(xxh64, steps)),
      { numRuns: 60 },
    );
  });

  it('B60: agrees when many nodes share a position, under a hash of seven values', () => {
    const poor: Hash64 = (data) => (xxh64(data) % 7n) * 2n ** 61n;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => agrees(poor, steps)),
      { numRuns: 60 },
    );
  });
});
