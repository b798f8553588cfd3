import { describe, expect, it } from 'vitest';
import { RoutingConfigError } from '../../src/errors.js';
import { StringTree } from '../../src/prefix/string-tree.js';
import { seededRandom } from '../../src/runtime/random.js';

const unlimited = 2 ** 40;

function treeOf(...placements: [text: string, worker: string, namespace?: string][]): StringTree {
  const tree = new StringTree({ maxTreeSize: unlimited });
  for (const placement of placements) tree.insert(...placement);
  return tree;
}

describe('matching', () => {
  it('CA-31: counts a partial agreement inside a node, and lists that node’s tenants', () => {
    const tree = treeOf(['apple', 'w1'], ['app', 'w2']);
    expect(tree.match('apple')).toEqual({ matchedUnits: 5, requestUnits: 5, tenants: ['w1'] });
    expect(tree.match('apply')).toEqual({ matchedUnits: 4, requestUnits: 5, tenants: ['w1'] });
    expect(tree.match('ape')).toEqual({ matchedUnits: 2, requestUnits: 3, tenants: ['w2', 'w1'] });
    expect(tree.match('bpple')).toEqual({ matchedUnits: 0, requestUnits: 5, tenants: [] });
  });

  it('CA-32: lists at most the 8 newest tenants, newest first', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    for (let i = 0; i < 20; i++) tree.insert('same', `w${i}`);
    expect(tree.match('same').tenants).toEqual(['w19', 'w18', 'w17', 'w16', 'w15', 'w14', 'w13', 'w12']);
    tree.insert('same', 'w3');
    tree.insert('same but longer', 'w0');
    expect(tree.match('same').tenants.slice(0, 3)).toEqual(['w0', 'w3', 'w19']);
    expect(tree.match('same but').tenants).toEqual(['w0']);
  });

  it('CA-33, B02: matched and request units are code points', () => {
    const tree = treeOf(['hello你好', 'w1']);
    expect(tree.match('hello你好世界')).toEqual({ matchedUnits: 7, requestUnits: 9, tenants: ['w1'] });
    expect(tree.match('')).toEqual({ matchedUnits: 0, requestUnits: 0, tenants: [] });
    expect(treeOf(['a😀b😀', 'w1']).match('a😀b😁c')).toEqual({ matchedUnits: 3, requestUnits: 5, tenants: ['w1'] });
  });

  it('CA-30: never ends inside a surrogate pair, on either side', () => {
    // 😀 is d83d de00, 😁 is d83d de01.
    expect(treeOf(['😀', 'w1']).match('😁').matchedUnits).toBe(0);
    expect(treeOf(['😀', 'w1']).match('\ud83d').matchedUnits).toBe(0);
    expect(treeOf(['\ud83d', 'w1']).match('😀').matchedUnits).toBe(0);
    expect(treeOf(['a\ud83d', 'w1']).match('a😀').matchedUnits).toBe(1);
    expect(treeOf(['a\ud83d', 'w1']).match('a\ud83d')).toEqual({ matchedUnits: 2, requestUnits: 2, tenants: ['w1'] });
    const long = 'x'.repeat(100);
    expect(treeOf([`${long}😀`, 'w1']).match(`${long}😁`).matchedUnits).toBe(100);
    const both = treeOf(['a😀', 'w1'], ['a\ud83d', 'w2'], ['a\ude00', 'w3']);
    expect(both.size).toBe(6);
    expect(both.match('a\ud83d').tenants).toEqual(['w2']);
    expect(both.match('a😀').tenants).toEqual(['w1']);
  });

  it('B03: reading leaves no trace', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    for (let i = 0; i < 1000; i++) expect(tree.match('x', i % 2 === 0 ? undefined : 'n').tenants).toEqual([]);
    expect([tree.tenants(), tree.nodeCount, tree.lastUse, tree.size]).toEqual([[], 0, 0, 0]);
    expect(tree.insert('', 'w1')).toBe(0);
    expect([tree.tenants(), tree.size, tree.lastUse]).toEqual([['w1'], 0, 0]);
  });

  it('B14, CA-101, CA-105: namespaces never see each other, whatever the text begins with', () => {
    const tree = treeOf(['same text', 'w1', 's1'], ['\u0001s1\u0001same text', 'w2'], ['same text', 'w3']);
    expect(tree.match('same text', 's2')).toEqual({ matchedUnits: 0, requestUnits: 9, tenants: [] });
    expect(tree.match('same text', 's1').tenants).toEqual(['w1']);
    expect(tree.match('same text').tenants).toEqual(['w3']);
    expect(tree.match('\u0001s1\u0001same text').tenants).toEqual(['w2']);
    expect(tree.match('same text', '__proto__').tenants).toEqual([]);
    expect(tree.size).toBe(9 + 13 + 9);
  });
});

describe('input', () => {
  it('LB-42: text that is no string is refused before anything changes', () => {
    const tree = treeOf(['known', 'w1']);
    for (const text of [undefined, null, 7, {}, ['known']] as unknown as string[]) {
      expect(() => tree.match(text)).toThrow(/^text: expected a string/);
      expect(() => tree.insert(text, 'w2')).toThrow(TypeError);
      expect(() => tree.insertPlacement(text, 'w2', 3)).toThrow(TypeError);
    }
    expect([tree.tenants(), tree.size, tree.lastUse]).toEqual([['w1'], 5, 1]);
  });

  it('LB-40: a budget must be above 0', () => {
    for (const maxTreeSize of [0, -1, Number.NaN, '5', undefined] as number[]) {
      expect(() => new StringTree({ maxTreeSize })).toThrow(RoutingConfigError);
      const tree = treeOf(['known', 'w1']);
      expect(() => {
        tree.maxTreeSize = maxTreeSize;
      }).toThrow(/^maxTreeSize: must be above 0/);
      expect(tree.maxTreeSize).toBe(unlimited);
    }
  });
});

describe('recording', () => {
  it('CA-39, B05: a unit counts once per tenant of its node, however often it is inserted', () => {
    const tree = treeOf(['hello', 'w1'], ['hello', 'w2'], ['help!', 'w1'], ['help!', 'w1']);
    expect([tree.sizeOf('w1'), tree.sizeOf('w2'), tree.size]).toEqual([7, 5, 12]);
  });

  it('CA-38: continues from the match only for the same request, and notices changes in between', () => {
    const tree = treeOf(['hello world', 'w1'], ['hello there', 'w2']);
    tree.match('hello world wide');
    tree.insert('hello weird', 'w3');
    expect(tree.match('hello weird').tenants).toEqual(['w3']);
    tree.match('hello world wide');
    tree.insert('hello worm', 'w4');
    tree.match('hello world wide', 'n');
    tree.insert('hello world wide', 'w5');
    expect(tree.match('hello world wide')).toEqual({ matchedUnits: 16, requestUnits: 16, tenants: ['w5'] });
    expect(tree.match('hello world wide', 'n').matchedUnits).toBe(0);
    tree.match('hello world wide web');
    tree.removeTenant('w5');
    tree.insert('hello world wide web', 'w6');
    expect(tree.sizeOf('w6')).toBe(20);
    tree.match('hello there!');
    tree.evictTo(0);
    tree.insert('hello there!', 'w7');
    expect([tree.size, tree.sizeOf('w7')]).toEqual([12, 12]);
  });

  it('B22: self-similar texts keep exact sizes', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    const texts = Array.from({ length: 8 }, (_, j) => 'a'.repeat(8 * (j + 1)) + 'bcdefghi'.charAt(j).repeat(5));
    const random = seededRandom(22);
    for (let round = 0; round < 3000; round++) {
      const j = Math.floor(random() * 8);
      tree.insert(texts[j] as string, `t${j}`);
    }
    for (const [j, text] of texts.entries()) {
      expect(tree.sizeOf(`t${j}`)).toBe(text.length);
      expect(tree.match(text)).toEqual({ matchedUnits: text.length, requestUnits: text.length, tenants: [`t${j}`] });
    }
  });

  it('B23, B91: thousands of workers, and ids that are names of built-ins', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    for (let i = 0; i < 5000; i++) tree.insert('one prompt', `w${i}`);
    expect([tree.tenantCount, tree.size, tree.nodeCount]).toEqual([5000, 50_000, 1]);
    for (const worker of ['__proto__', 'constructor', 'toString']) tree.insert('__proto__', worker);
    expect(tree.match('__proto__').tenants).toEqual(['toString', 'constructor', '__proto__']);
    expect(tree.sizeOf('__proto__')).toBe(9);
    expect(Object.keys(Object.prototype)).toEqual([]);
    for (let i = 0; i < 5000; i++) tree.removeTenant(`w${i}`);
    while (tree.maintain({ spent: () => true }));
    expect([tree.tenantCount, tree.size, tree.nodeCount]).toEqual([3, 27, 1]);
  });
});

describe('removal', () => {
  it('CA-40, CA-44, B04: a removed worker is gone at once and comes back empty', () => {
    const tree = treeOf(['hello world', 'w1'], ['hello there', 'w2']);
    tree.addTenant('w3');
    expect(tree.tenants()).toEqual(['w1', 'w2', 'w3']);
    tree.removeTenant('w1');
    expect(tree.tenants()).toEqual(['w2', 'w3']);
    expect([tree.sizeOf('w1'), tree.sizeOf('w2'), tree.size]).toEqual([0, 11, 11]);
    expect(tree.match('hello world')).toEqual({ matchedUnits: 6, requestUnits: 11, tenants: ['w2'] });
    expect(tree.printTree()).not.toContain('w1');
    // "hello " and "there" have the same tenant again: one node.
    expect(tree.nodeCount).toBe(1);
    tree.addTenant('w1');
    expect([tree.sizeOf('w1'), tree.hasTenant('w1')]).toEqual([0, true]);
    tree.insert('hello', 'w1');
    expect(tree.sizeOf('w1')).toBe(5);
  });

  it('LB-5, CA-44: reclaims in bounded steps, and reports when work is left', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    const random = seededRandom(5);
    for (let i = 0; i < 3000; i++) tree.insert(`${random()}`, 'w1');
    const nodes = tree.nodeCount;
    tree.removeTenant('w1');
    expect(tree.size).toBe(0);
    // At most 256 holdings at once: nearly all nodes are still there, and nothing finds them.
    expect(tree.nodeCount).toBeGreaterThan(nodes - 520);
    expect(tree.match('0.').tenants).toEqual([]);
    let steps = 1;
    while (tree.maintain({ spent: () => true })) steps++;
    expect(steps).toBeGreaterThan(90);
    expect([tree.nodeCount, tree.maintain({ spent: () => true })]).toEqual([0, false]);
  });
});

describe('eviction', () => {
  it('CA-42, CA-43: the least recently used go first; an insert refreshes its path, a match does not', () => {
    const tree = treeOf(['aaaa', 'w1'], ['bbbb', 'w1'], ['cccc', 'w2'], ['aaaa', 'w1']);
    tree.match('bbbb');
    tree.evictTo(11);
    expect(tree.match('bbbb').matchedUnits).toBe(0);
    tree.evictTo(7);
    expect(tree.match('cccc').matchedUnits).toBe(0);
    expect(tree.match('aaaa').matchedUnits).toBe(4);
    tree.evictTo(0);
    expect([tree.size, tree.nodeCount, tree.tenantCount]).toEqual([0, 0, 2]);
  });

  it('CA-42: a leaf of a tenant goes before what is above it, for that tenant only', () => {
    const tree = treeOf(['system prompt', 'w1'], ['system prompt, one', 'w1'], ['system prompt, two', 'w2']);
    expect(tree.size).toBe(13 + 5 + 13 + 5);
    // w1 used "system prompt" last on its way to ", one".
    expect(tree.evictTo(33)).toBe(3);
    expect(tree.evictTo(31)).toBe(2);
    expect(tree.match('system prompt, one').tenants).toEqual(['w2']);
    expect(tree.sizeOf('w1')).toBe(13);
    expect(tree.evictTo(30)).toBe(13);
    expect([tree.sizeOf('w1'), tree.sizeOf('w2')]).toEqual([0, 18]);
  });

  it('LB-32: the budget holds after every insert', () => {
    const tree = new StringTree({ maxTreeSize: 1000 });
    const random = seededRandom(32);
    for (let i = 0; i < 2000; i++) {
      tree.insert(`${Math.floor(random() * 40)}${'x'.repeat(Math.floor(random() * 90))}`, `w${i % 5}`);
      expect(tree.size).toBeLessThanOrEqual(1000);
    }
    expect(tree.size).toBeGreaterThan(900);
    tree.insert('y'.repeat(5000), 'w1');
    expect(tree.size).toBe(0);
  });

  it('LB-31: holdings are bounded too, for trees of tiny labels', () => {
    const tree = new StringTree({ maxTreeSize: 100_000 });
    const letters = '0123456789abcdefghijklmnopqrstuvwxyzABCDEF';
    for (const a of letters) for (const b of letters) for (const c of letters) tree.insert(a + b + c, 'w1');
    // 42 + 42² + 42³ nodes of one unit would be 75 894.
    expect(tree.size).toBeLessThanOrEqual(65_536);
    expect(tree.nodeCount).toBeGreaterThan(60_000);
    expect(tree.match('FFF').matchedUnits).toBe(3);
    expect(tree.match('000').matchedUnits).toBe(0);
  });

  it('LB-5, LB-35: a smaller budget is reached in bounded steps', () => {
    const tree = new StringTree({ maxTreeSize: 100_000 });
    for (let i = 0; i < 3000; i++) tree.insert(`${i} and more`, 'w1');
    const before = tree.size;
    tree.maxTreeSize = 100;
    expect(tree.size).toBe(before);
    tree.insert('one', 'w1');
    expect(tree.size).toBeGreaterThan(100);
    while (tree.maintain({ spent: () => true }));
    expect(tree.size).toBeLessThanOrEqual(100);
    expect(tree.match('one').matchedUnits).toBe(3);
  });
});
