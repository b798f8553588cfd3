import { describe, expect, it } from 'vitest';
import { RingNodes } from '../../src/hashing/ring-nodes.js';
import { seededRandom } from '../../src/runtime/random.js';

/** Owners are numbers; their ids sort the other way round, so that an order by number would be noticed. */
const idOf = (owner: number) => String(9000 - owner);

interface Node {
  readonly position: number;
  readonly owner: number;
}

function ordered(nodes: readonly Node[]): Node[] {
  return nodes.toSorted((a, b) => a.position - b.position || (idOf(a.owner) < idOf(b.owner) ? -1 : 1));
}

function ownersFrom(nodes: RingNodes, position: number, count: number): number[] {
  const owners: number[] = [];
  let place = nodes.firstAt(position);
  for (let i = 0; i < count; i++, place = nodes.after(place)) owners.push(nodes.ownerAt(place));
  return owners;
}

describe('RingNodes against a sorted list', () => {
  // Few positions fill whole pages with one position; many split pages anywhere.
  it.each([3, 5_000, 2 ** 40])(
    'WK-62, B60: keeps 6 000 nodes in order while they come and go, %i positions',
    (range) => {
      const random = seededRandom(range);
      const below = (limit: number) => Math.floor(random() * limit);
      const nodes = new RingNodes(idOf);
      let list: Node[] = [];
      expect(nodes.firstAt(1)).toBe(-1);
      for (const target of [6_000, 700, 3_000, 0]) {
        while (list.length !== target) {
          if (list.length < target) {
            const node = { position: below(range), owner: below(5_000) };
            nodes.add(node.position, node.owner);
            list.push(node);
          } else {
            const index = below(list.length);
            const { position, owner } = list[index] as Node;
            nodes.remove(position, owner);
            list[index] = list.at(-1) as Node;
            list.pop();
          }
        }
        list = ordered(list);
        const owners = list.map(({ owner }) => owner);
        for (const position of [-1, 0, below(range), below(range), range]) {
          const start = list.findIndex((node) => node.position >= position);
          const expected = start < 0 ? owners : [...owners.slice(start), ...owners.slice(0, start)];
          if (target > 0) expect(ownersFrom(nodes, position, target)).toEqual(expected);
          else expect(nodes.firstAt(position)).toBe(-1);
        }
      }
    },
  );
});
