/** Reported faults of the prefix trees themselves: each is ruled out here by one test, under its id. */
import { cacheAware, type MaintenanceBudget, StringTree, seededRandom, TokenTree } from 'kvroute';
import { fakeCandidate } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { heapAfterCollection } from '../support/heap.js';
import { fleet, isFull, noise, range, times } from './support.js';

const w1 = fakeCandidate();
const w2 = fakeCandidate({ id: 'w2' });
const noLimit: MaintenanceBudget = { spent: () => false };
const large = 1_000_000_000;

describe('prefix trees', () => {
  it('B02: the matched share is counted in code points on both sides of the division', () => {
    const held = 'hello你好';
    const asked = 'hello你好世界';
    const policy = cacheAware({ cacheThreshold: 0.75, seed: 1, clock: () => 0 });
    policy.selectWorker({ text: held }, [w1]);
    // Counted in bytes, 11 of 17 would be a miss, and the idle w2 would win.
    const candidates = [fakeCandidate({ inFlight: 5 }), w2];
    const { match } = policy.explain({ text: asked }, candidates).policy;
    expect(match).toMatchObject({ index: 'string_tree', matchedUnits: 7, requestUnits: 9, ratio: 7 / 9 });
    const selection = policy.selectWorker({ text: asked }, candidates);
    expect(selection).toMatchObject({ ok: true, worker: { id: 'w1' }, record: { branch: 'tree_match' } });
    expect(selection.record.matchedRatio).toBeCloseTo(0.78, 2);
    expect(policy.explain({ text: '' }, candidates).policy.match).toMatchObject({
      matchedUnits: 0,
      requestUnits: 0,
      ratio: 0,
    });
    const draw = seededRandom('B02');
    const alphabet = ['a', '你', '😀', 'e\u0301', '\ud83d'];
    for (const text of times(100, () => times(1 + Math.floor(draw() * 6), () => alphabet[Math.floor(draw() * 5)]))) {
      const request = { text: text.join('') };
      const ratio = policy.explain(request, candidates).policy.match?.ratio ?? -1;
      expect(ratio).toBeGreaterThanOrEqual(0);
      expect(ratio).toBeLessThanOrEqual(1);
      policy.selectWorker(request, candidates);
      // What was just recorded is held whole: both sides of the division agree to the last code point.
      expect(policy.explain(request, candidates).policy.match?.ratio).toBe(1);
    }
  });

  it('B03: reading never invents an owner', () => {
    const tree = new StringTree({ maxTreeSize: large });
    for (let i = 0; i < 1000; i++) expect(tree.match('x').tenants).toEqual([]);
    expect(tree.tenants()).toEqual([]);
    expect([tree.tenantCount, tree.nodeCount, tree.size]).toEqual([0, 0, 0]);
    tree.insert('', 'w1');
    expect(['w1']).toEqual(expect.arrayContaining(tree.tenants()));
    expect(tree.size).toBe(0);
    expect(tree.match('x').tenants).toEqual([]);
  });

  it('B04: a removed worker leaves the trees of all its models, text and tokens, with its counters and its nodes', async () => {
    const tree = new StringTree({ maxTreeSize: large });
    tree.insert('hello world', 'w1');
    tree.insert('hello there', 'w2');
    tree.removeTenant('w1');
    expect(new Map(tree.tenants().map((id) => [id, tree.sizeOf(id)]))).toEqual(new Map([['w2', 11]]));
    expect(tree.size).toBe(11);
    expect(tree.match('hello world')).toEqual({ matchedUnits: 6, requestUnits: 11, tenants: ['w2'] });
    while (tree.maintain(noLimit));
    expect(tree.printTree()).not.toContain('world');
    tree.addTenant('w1');
    expect(tree.sizeOf('w1')).toBe(0);

    const tokens = new TokenTree({ maxTreeSize: large, blockSize: 4 });
    tokens.insert(range(1, 8), 'w1');
    tokens.removeTenant('w1');
    expect([tokens.tenants(), tokens.size, tokens.match(range(1, 8)).tenants]).toEqual([[], 0, []]);

    const models = ['m1', 'm2'];
    const router = await fleet([
      { id: 'w1', models },
      { id: 'w2', models },
    ]);
    router.setStatus('w2', 'not_ready');
    for (const model of models) {
      router.selectWorker({ model, text: 'hello world' });
      router.selectWorker({ model, tokens: range(1, 32) });
    }
    expect(JSON.stringify(router.snapshot())).toContain('"w1"');
    router.removeWorker('w1');
    expect(JSON.stringify(router.snapshot())).not.toContain('"w1"');
    router.addWorker({ id: 'w1', models });
    router.setStatus('w2', 'ready');
    for (const request of [{ text: 'hello world' }, { tokens: range(1, 32) }]) {
      expect(router.explain({ model: 'm1', ...request }).policy.match?.holders ?? []).toEqual([]);
    }
  });

  it('B05: walking over an owned path again adds nothing to its owner', () => {
    const tree = new TokenTree({ maxTreeSize: large, blockSize: 16 });
    for (let i = 0; i < 3; i++) tree.insert(range(0, 47), 'w1');
    expect(tree.sizeOf('w1')).toBe(48);
    tree.insert([...range(0, 15), ...range(100, 115)], 'w2');
    expect([tree.sizeOf('w2'), tree.sizeOf('w1'), tree.size]).toEqual([32, 48, 80]);
  });

  it('B07: inner nodes go with the leaves below them', () => {
    const tree = new StringTree({ maxTreeSize: large });
    const draw = seededRandom('B07');
    for (let i = 0; i < 10_000; i++) tree.insert(`sys:${i}${noise(200, draw)}`, 'w1');
    expect(tree.nodeCount).toBeGreaterThan(10_000);
    tree.evictTo(1000);
    expect(tree.size).toBeLessThanOrEqual(1000);
    const [piece] = tree.pieces(Number.MAX_SAFE_INTEGER);
    const parents = new Set(piece?.parents.filter((parent) => parent >= 0));
    const leaves = (piece?.labels.length ?? 0) - parents.size;
    expect(leaves).toBeGreaterThan(0);
    expect(tree.nodeCount).toBe(piece?.labels.length);
    expect(tree.nodeCount).toBeLessThanOrEqual(2 * leaves + 1);
    tree.evictTo(0);
    expect([tree.nodeCount, tree.size]).toEqual([0, 0]);
  });

  it('B08: memory follows the budget, however many different prompts come', () => {
    const maxTreeSize = 1_000_000;
    const prompts = isFull ? 200_000 : 4000;
    const tree = new StringTree({ maxTreeSize });
    const draw = seededRandom('B08');
    const body = noise(2000, draw);
    const tick = (): void => {
      while (tree.maintain(noLimit));
      expect(tree.size).toBeLessThanOrEqual(maxTreeSize);
    };
    let atQuarter = 0;
    for (let i = 1; i <= prompts; i++) {
      const cut = Math.floor(draw() * 1900);
      tree.insert(`${i}:${body.slice(cut)}${body.slice(0, cut)}`.slice(0, 2000), 'w1');
      if (tree.size > maxTreeSize + 2000) throw new Error(`${tree.size} after prompt ${i}`);
      if (i % 1000 === 0) tick();
      if (i === prompts / 4) atQuarter = heapAfterCollection();
    }
    const atEnd = heapAfterCollection();
    expect(Math.abs(atEnd - atQuarter) / atQuarter).toBeLessThan(0.2);
    // The test runner's own heap is most of that, so the difference itself is looked at too: three trees' worth of text.
    expect(atEnd - atQuarter).toBeLessThan(3 * maxTreeSize);
    expect(tree.nodeCount).toBeLessThan(3000);
  });

  it('B22: self-similar prompts neither shift depths nor counts', () => {
    const tree = new StringTree({ maxTreeSize: large });
    const draw = seededRandom('B22');
    const prompts = times(8, (i) => 'a'.repeat(8 * (i + 1)) + 'bcdefghi'[i]?.repeat(5));
    const inserted = new Set<string>();
    const wrong: string[] = [];
    for (let round = 0; round < 3000; round++) {
      const j = Math.floor(draw() * 8);
      tree.insert(prompts[j] as string, `t${j + 1}`);
      inserted.add(prompts[j] as string);
      let total = 0;
      for (const prompt of inserted) {
        const tenant = `t${prompts.indexOf(prompt) + 1}`;
        const { matchedUnits, tenants } = tree.match(prompt);
        const isWhole = matchedUnits === prompt.length && tenants.join() === tenant;
        if (!isWhole || tree.sizeOf(tenant) !== prompt.length) wrong.push(`${tenant} in round ${round}`);
        total += prompt.length;
      }
      if (tree.size !== total) wrong.push(`the sum in round ${round}`);
    }
    expect(wrong).toEqual([]);
    expect(inserted.size).toBe(8);
  });
});
