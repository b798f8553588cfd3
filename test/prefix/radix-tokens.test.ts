/** Labels of the token tree, piece by piece: where they land, what is released and used again, and what moves. */
import { describe, expect, it } from 'vitest';
import { RoutingConfigError } from '../../src/errors.js';
import { RadixNode } from '../../src/prefix/radix-node.js';
import { TokenLabels, type TokenSlab } from '../../src/prefix/radix-tokens.js';
import { TokenHash } from '../../src/prefix/token-hash.js';
import { Words } from '../../src/runtime/words.js';
import { fc } from '../support/property.js';

type Node = RadixNode<TokenSlab>;

const labels = (): TokenLabels => new TokenLabels(2, 7);

/** Ids that no other label of the test has. */
const counting = (count: number, first: number): Uint32Array =>
  Uint32Array.from({ length: count }, (_, i) => first + i);

let nextId = 1;

function put(store: TokenLabels, count: number): Node {
  const node: Node = new RadixNode(store.empty, undefined);
  store.put(node, new Words(counting(count, nextId)), 0, count);
  nextId += count;
  return node;
}

const putMany = (store: TokenLabels, number: number, count: number): Node[] =>
  Array.from({ length: number }, () => put(store, count));

/** As the tree does when it removes a node. */
function release(store: TokenLabels, ...nodes: Node[]): void {
  for (const node of nodes) {
    store.release(node);
    node.label = store.empty;
  }
}

const idsOf = ({ label, extent, units }: Node): number[] => [...label.words.at.subarray(extent, extent + units)];
const sizeOf = (slab: TokenSlab): number => slab.words.at.length;
const placeOf = (node: Node): unknown => [sizeOf(node.label), node.extent, node.units];
const movedFrom = (slab: TokenSlab, nodes: readonly Node[]): boolean[] => nodes.map((node) => node.label !== slab);

/** The first slab, of 4096 ids, full: seven labels of 512 and `number` of 512 / `number`; the next label goes elsewhere. */
function fullSlab(store: TokenLabels, number: number): { slab: TokenSlab; large: Node[]; small: Node[] } {
  const large = putMany(store, 7, 512);
  const small = putMany(store, number, 512 / number);
  const slab = (large[0] as Node).label;
  expect([sizeOf(slab), slab.used, slab.live]).toEqual([4096, 4096, 4096]);
  expect(put(store, 8).label === slab).toBe(false);
  return { slab, large, small };
}

describe('a new label', () => {
  it('LB-31: goes behind the one before; a full slab is followed by one of twice its size, up to 2^20', () => {
    const store = labels();
    expect(putMany(store, 9, 512).map(placeOf)).toEqual([
      ...[0, 512, 1024, 1536, 2048, 2560, 3072, 3584].map((extent) => [4096, extent, 512]),
      [8192, 0, 512],
    ]);
    const sizes = new Set<TokenSlab>();
    // The longest that do not get a slab of their own.
    for (let size = 2 ** 14; size <= 2 ** 20; size *= 2) {
      for (let i = 0; i < 8; i++) sizes.add(put(store, size / 8).label);
    }
    for (let i = 0; i < 9; i++) sizes.add(put(store, 2 ** 17).label);
    const expected = [14, 15, 16, 17, 18, 19, 20, 20, 20].map((power) => 2 ** power);
    expect([...sizes].map(sizeOf).filter((size) => size > 8192)).toEqual(expected);
  });

  it('LB-31: has a slab of its own when it is longer than an eighth of the next slab', () => {
    const store = labels();
    expect(placeOf(put(store, 513))).toEqual([513, 0, 513]);
    expect(placeOf(put(store, 512))).toEqual([4096, 0, 512]);
    // What has room goes in, however long it is.
    expect(placeOf(put(store, 3584))).toEqual([4096, 512, 3584]);
    expect(placeOf(put(store, 1025))).toEqual([1025, 0, 1025]);
    expect(placeOf(put(store, 1024))).toEqual([8192, 0, 1024]);
  });

  it('LB-31: its slab knows what is written, what is in use, and by which nodes', () => {
    const store = labels();
    const [a, b] = [put(store, 10), put(store, 20)];
    expect([a.label.used, a.label.live, a.label.nodes]).toEqual([30, 30, [a, b]]);
    expect(idsOf(b)).toEqual([...counting(20, nextId - 20)]);
    const part: Node = new RadixNode(store.empty, undefined);
    store.put(part, a.label.words, 12, 5);
    expect(idsOf(part)).toEqual(idsOf(b).slice(2, 7));
  });
});

describe('the key of a page', () => {
  it('CA-30: is the salted hash of one page of ids', () => {
    const store = labels();
    const ids = Uint32Array.of(5, 6, 7, 8);
    const hash = new TokenHash();
    hash.start(7, ~7);
    hash.mix([6, 7], 0, 2);
    hash.close();
    expect(store.pageKey(ids, 1)).toBe(hash.low);
    expect(new TokenLabels(2, 8).pageKey(ids, 1)).not.toBe(hash.low);
    const node: Node = new RadixNode(store.empty, undefined);
    put(store, 4);
    store.put(node, new Words(ids), 1, 2);
    expect(store.keyOf(node)).toBe(hash.low);
  });

  it.each([0.5, Number.NaN, Number.POSITIVE_INFINITY])('LB-40: a salt of %d is refused', (salt) => {
    expect(() => new TokenLabels(2, salt)).toThrow(new RoutingConfigError('salt', salt, 'must be a 32-bit integer'));
  });
});

describe('a cut and a join', () => {
  it('CA-39: a cut moves nothing, and a join of what lies side by side neither', () => {
    const store = labels();
    put(store, 3);
    const node = put(store, 10);
    const ids = idsOf(node);
    const head: Node = new RadixNode(store.empty, undefined);
    store.split(node, head, 4);
    expect([placeOf(head), placeOf(node)]).toEqual([
      [4096, 3, 4],
      [4096, 7, 6],
    ]);
    expect([...idsOf(head), ...idsOf(node)]).toEqual(ids);
    store.join(head, node);
    expect(placeOf(node)).toEqual([4096, 3, 10]);
    expect([node.label.used, node.label.live]).toEqual([13, 13]);
    expect(idsOf(node)).toEqual(ids);
  });

  it('B07: a join of what lies apart copies both to the end and frees their places', () => {
    const store = labels();
    const [tail, head] = [put(store, 6), put(store, 6)];
    const ids = [...idsOf(head), ...idsOf(tail)];
    // Side by side, but the tail is first.
    store.join(head, tail);
    expect(placeOf(tail)).toEqual([4096, 12, 12]);
    expect([tail.label.used, tail.label.live, tail.label.nodes.at(-1)]).toEqual([24, 12, tail]);
    expect(idsOf(tail)).toEqual(ids);
  });

  it('B07: places that would lie side by side in one slab, but are in two, are apart', () => {
    const store = labels();
    const head = put(store, 600);
    put(store, 512);
    put(store, 88);
    const tail = put(store, 5);
    const own = head.label;
    expect([placeOf(head), placeOf(tail)]).toEqual([
      [600, 0, 600],
      [4096, 600, 5],
    ]);
    const ids = [...idsOf(head), ...idsOf(tail)];
    store.join(head, tail);
    expect(placeOf(tail)).toEqual([4096, 605, 605]);
    expect(idsOf(tail)).toEqual(ids);
    expect([own.live, tail.label.live]).toEqual([0, 1205]);
  });
});

describe('released space', () => {
  it('B08: the slab being filled starts anew once it is empty, not before', () => {
    const store = labels();
    const [a, b] = [put(store, 10), put(store, 20)];
    const slab = a.label;
    release(store, a);
    expect([slab.used, slab.live]).toEqual([30, 20]);
    const c = put(store, 5);
    expect(placeOf(c)).toEqual([4096, 30, 5]);
    release(store, b, c);
    expect([slab.used, slab.live, slab.nodes]).toEqual([0, 0, []]);
    const d = put(store, 5);
    expect([d.label === slab, d.extent]).toEqual([true, 0]);
  });

  it('B08: an empty slab is the next to be filled, once, when it has the room', () => {
    const store = labels();
    const alone = put(store, 600);
    const spare = alone.label;
    putMany(store, 8, 512);
    release(store, alone);
    expect([spare.used, spare.live, spare.nodes, spare.isSparse]).toEqual([0, 0, [], false]);
    expect(store.compactSome()).toBe(false);
    // 601 ids do not fit: they open a new slab, and the spare stays.
    expect(placeOf(put(store, 601))).toEqual([8192, 0, 601]);
    put(store, 7591);
    const [all, next] = [put(store, 600), put(store, 600)];
    expect([all.label === spare, placeOf(all), placeOf(next)]).toEqual([true, [600, 0, 600], [16384, 0, 600]]);
  });

  it('B08: the largest empty slab is kept, of 2^20 ids at most', () => {
    const store = labels();
    const [small, large] = [put(store, 600), put(store, 700)];
    const [limit, beyond] = [put(store, 2 ** 20), put(store, 2 ** 20 + 1)];
    putMany(store, 8, 512);
    release(store, large, small);
    expect(placeOf(put(store, 500))).toEqual([700, 0, 500]);
    release(store, limit, beyond);
    expect(placeOf(put(store, 500))).toEqual([2 ** 20, 0, 500]);
  });

  it('B08: a slab less than half in use is emptied from the end, eight looks a step, and used again', () => {
    const store = labels();
    const { slab, large, small } = fullSlab(store, 8);
    const kept = small.map(idsOf);
    // Half in use.
    release(store, ...large.slice(0, 4));
    expect([store.compactSome(), slab.isSparse, slab.live]).toEqual([false, false, 2048]);
    release(store, ...large.slice(4));
    expect([slab.isSparse, slab.live]).toEqual([true, 512]);
    // Eight labels move; that the slab is empty shows at the ninth look.
    expect(store.compactSome()).toBe(true);
    expect([movedFrom(slab, small), slab.live, slab.isSparse]).toEqual([Array(8).fill(true), 0, true]);
    expect(small.map(idsOf)).toEqual(kept);
    expect(small.map(placeOf)).toEqual([456, 392, 328, 264, 200, 136, 72, 8].map((extent) => [8192, extent, 64]));
    expect(store.compactSome()).toBe(false);
    expect([slab.used, slab.nodes, slab.isSparse]).toEqual([0, [], false]);
    // It is filled again, emptied again, and filled once more.
    for (let round = 0; round < 2; round++) {
      put(store, 8192 - (small[0] as Node).label.used);
      const again = putMany(store, 8, 512);
      expect(again.map((node) => [node.label === slab, node.extent])).toEqual(
        [0, 512, 1024, 1536, 2048, 2560, 3072, 3584].map((extent) => [true, extent]),
      );
      const filling = put(store, 16);
      expect(filling.label === slab).toBe(false);
      release(store, ...again);
      expect(store.compactSome()).toBe(false);
      expect([slab.used, slab.isSparse]).toEqual([0, false]);
      put(store, sizeOf(filling.label) - filling.label.used);
    }
  });

  it('LB-5: a step takes eight looks, the last of which may find the slab empty; nodes that are gone stay so', () => {
    const store = labels();
    const { slab, large, small } = fullSlab(store, 8);
    release(store, ...large);
    release(store, small[0] as Node);
    expect([slab.isSparse, slab.live]).toEqual([true, 448]);
    expect(store.compactSome()).toBe(false);
    expect(movedFrom(slab, small.slice(1))).toEqual(Array(7).fill(true));
    expect([...large, small[0]].every((node) => node?.label === store.empty)).toBe(true);
    expect([slab.used, slab.live, slab.isSparse]).toEqual([0, 0, false]);
  });

  it('LB-5: labels that are gone cost a look each, and nothing else', () => {
    const store = labels();
    const { slab, large, small } = fullSlab(store, 8);
    release(store, ...large, ...small.slice(2));
    expect([slab.live, slab.isSparse]).toEqual([128, true]);
    // Six that are gone and two that move.
    expect(store.compactSome()).toBe(true);
    expect([movedFrom(slab, small.slice(0, 2)), slab.live, slab.used]).toEqual([[true, true], 0, 4096]);
    expect(store.compactSome()).toBe(false);
    expect(slab.used).toBe(0);
  });

  it('LB-5: compact moves twice the ids that were released since the last', () => {
    const store = labels();
    const { slab, large, small } = fullSlab(store, 32);
    release(store, ...large.slice(0, 4));
    store.compact();
    expect(movedFrom(slab, small)).toEqual(Array(32).fill(false));
    // With this label of 16 ids, less than half is in use: room for two more to move.
    release(store, small[0] as Node);
    expect(slab.isSparse).toBe(true);
    store.compact();
    const moved = [...Array(30).fill(false), true, true];
    expect(movedFrom(slab, [large[4] as Node, ...small.slice(1)])).toEqual(moved);
    store.compact();
    expect(movedFrom(slab, [large[4] as Node, ...small.slice(1)])).toEqual(moved);
  });

  it('LB-5: compact looks at 1024 labels at most', () => {
    const store = labels();
    const large = putMany(store, 5, 512);
    const small = putMany(store, 1536, 1);
    const slab = (large[0] as Node).label;
    put(store, 1);
    release(store, ...large);
    expect([slab.isSparse, slab.live]).toEqual([true, 1536]);
    store.compact();
    expect(movedFrom(slab, small)).toEqual([...Array(512).fill(false), ...Array(1024).fill(true)]);
    expect(slab.live).toBe(512);
    // The release of five labels of 512 is paid for.
    store.compact();
    expect(slab.live).toBe(512);
  });
});

describe('a history of labels', () => {
  const step = fc.record({
    kind: fc.constantFrom('put', 'put', 'put', 'split', 'join', 'release', 'release', 'compact', 'compactSome'),
    first: fc.nat(),
    second: fc.nat(),
    count: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 100, max: 1500 })),
  });

  it('CA-39, B08: keeps the ids of every label, in slabs of about twice their number', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const store = labels();
        const held = new Map<Node, number[]>();
        const pick = (at: number): Node | undefined => [...held.keys()][at % (held.size || 1)];
        const drop = (node: Node): void => {
          held.delete(node);
          node.label = store.empty;
        };
        for (const { kind, first, second, count } of steps) {
          const [a, b] = [pick(first), pick(second)];
          if (kind === 'put') {
            const node = put(store, count);
            held.set(node, idsOf(node));
          } else if (kind === 'compact') {
            store.compact();
          } else if (kind === 'compactSome') {
            store.compactSome();
          } else if (a !== undefined && kind === 'release') {
            store.release(a);
            drop(a);
          } else if (a !== undefined && kind === 'split' && a.units > 1) {
            const head: Node = new RadixNode(store.empty, undefined);
            const ids = held.get(a) as number[];
            const length = 1 + (second % (a.units - 1));
            store.split(a, head, length);
            held.set(head, ids.slice(0, length)).set(a, ids.slice(length));
          } else if (a !== undefined && b !== undefined && kind === 'join' && a !== b) {
            const ids = [...(held.get(a) as number[]), ...(held.get(b) as number[])];
            store.join(a, b);
            drop(a);
            held.set(b, ids);
          }
        }
        while (store.compactSome());
        let ids = 0;
        const slabs = new Set<TokenSlab>();
        for (const [node, expected] of held) {
          expect(idsOf(node)).toEqual(expected);
          slabs.add(node.label);
          ids += node.units;
        }
        const used = [...slabs].reduce((sum, slab) => sum + slab.used, 0);
        const live = [...slabs].reduce((sum, slab) => sum + slab.live, 0);
        expect(live).toBe(ids);
        const filling = Math.max(0, ...[...slabs].map(sizeOf));
        expect(used).toBeLessThanOrEqual(2 * ids + filling);
      }),
      { numRuns: 60 },
    );
  });
});
