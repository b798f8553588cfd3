/** Prefix trees of full size: long prompts, many holders, long runs, and the memory that all of it takes. */
import { describe, expect, it } from 'vitest';
import { StringTree } from '../../src/prefix/string-tree.js';
import { TokenTree } from '../../src/prefix/token-tree.js';
import { seededRandom } from '../../src/runtime/random.js';
import { heapAfterCollection } from '../support/heap.js';

const unlimited = 2 ** 40;

/** A flat string: what a host gets from a JSON body. */
const parsed = (text: string): string => JSON.parse(JSON.stringify(text)) as string;

describe('a string tree of full size', () => {
  it('B90: a prompt of 5 MB in one line, and a chain of 3000 nodes', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    const prompt = 'x'.repeat(5_000_000);
    tree.match(prompt);
    tree.insert(prompt, 'w1');
    tree.insert(`${prompt.slice(0, 2_500_000)}y`, 'w2');
    expect(tree.match(prompt)).toEqual({ matchedUnits: 5_000_000, requestUnits: 5_000_000, tenants: ['w1'] });
    expect(tree.size).toBe(7_500_001);
    tree.evictTo(0);
    for (let n = 1; n <= 3000; n++) tree.insert('z'.repeat(n), 'w1');
    expect([tree.nodeCount, tree.sizeOf('w1')]).toEqual([3000, 3000]);
    expect(tree.printTree().length).toBeGreaterThan(3000);
    expect([...tree.pieces()].length).toBe(1);
    expect(tree.evictTo(0)).toBe(3000);
  });

  it('LB-31: holdings stay bounded while a label that thousands hold is cut again and again', () => {
    const tree = new StringTree({ maxTreeSize: 1_000_000 });
    const prompt = 'abcdefghijklmnopqrstuvwxyz0123456789';
    for (let i = 0; i < 3000; i++) tree.insert(prompt, `w${i}`);
    const holdings = (): number => tree.printTree().split('@').length - 1;
    for (let length = prompt.length - 1; length > 0; length--) {
      // The cut gives each of the 3000 another node.
      tree.insert(`${prompt.slice(0, length)}!`, 'w0');
      expect(holdings()).toBeLessThanOrEqual(65_536);
    }
    expect(tree.match(prompt).matchedUnits).toBe(36);
  });

  it('B07: live nodes are of the order of live leaves', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    const random = seededRandom(7);
    const noise = (): string => Array.from({ length: 200 }, () => String.fromCharCode(32 + random() * 90)).join('');
    for (let i = 0; i < 10_000; i++) tree.insert(`sys:${i}${noise()}`, 'w1');
    tree.evictTo(1000);
    const leaves = [...tree.placements()].length;
    expect(leaves).toBeGreaterThanOrEqual(4);
    expect(tree.nodeCount).toBeLessThanOrEqual(2 * leaves + 1);
    tree.evictTo(0);
    expect(tree.nodeCount).toBe(0);
  });

  it('B08: follows the budget under unique prompts', () => {
    const tree = new StringTree({ maxTreeSize: 200_000 });
    const run = (from: number, count: number): number => {
      for (let i = from; i < from + count; i++) {
        const prompt = parsed(`${i}${'-'.repeat(500)}${i}`.repeat(4));
        tree.match(prompt);
        tree.insert(prompt, `w${i % 16}`);
      }
      return heapAfterCollection();
    };
    const early = run(0, 2000);
    const late = run(2000, 8000);
    expect(Math.abs(late - early)).toBeLessThan(800_000);
  });

  it('labels keep no prompt alive, also not after splits and joins', () => {
    const tree = new StringTree({ maxTreeSize: unlimited });
    const shared = parsed('shared '.repeat(20_000));
    tree.insert(shared, 'w1');
    const before = heapAfterCollection();
    // 200 prompts of 140 kB that add 30 units each; every second one also splits the label of the one before.
    for (let i = 0; i < 200; i++) tree.insert(parsed(`${shared}${i >> 1}, and then something ${i}`), 'w1');
    expect(heapAfterCollection() - before).toBeLessThan(300_000);
    // Cutting a long label to a few units frees the rest.
    tree.insert(parsed(`${'q'.repeat(4_000_000)}`), 'w2');
    tree.insert(parsed('qqqq!'), 'w3');
    const cut = heapAfterCollection();
    tree.removeTenant('w2');
    expect(tree.match('qqqqqq').matchedUnits).toBe(4);
    expect(cut - heapAfterCollection()).toBeGreaterThan(3_000_000);
  });
});

describe('a token tree of full size', () => {
  it('B08: released label space is used again', () => {
    const tree = new TokenTree({ maxTreeSize: 200_000, blockSize: 16 });
    const random = seededRandom(8);
    const shared = Array.from({ length: 20 }, () => Uint32Array.from({ length: 160 }, () => random() * 1000));
    const run = (count: number): number => {
      for (let i = 0; i < count; i++) {
        const tokens = new Uint32Array(160 + 16 * Math.floor(random() * 60));
        tokens.set(shared[Math.floor(random() * 20)] as Uint32Array);
        for (let at = 160; at < tokens.length; at++) tokens[at] = random() * 128_000;
        tree.match(tokens);
        tree.insert(tokens, `w${i % 8}`);
      }
      return process.memoryUsage().arrayBuffers;
    };
    run(2000);
    const early = run(2000);
    const late = run(10_000);
    expect(tree.size).toBeGreaterThan(190_000);
    // 200 000 ids take 0.8 MB; tokens of this loop that wait for the collector are allowed for.
    expect(late - early).toBeLessThan(16_000_000);
  });
});
