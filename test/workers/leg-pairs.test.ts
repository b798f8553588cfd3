/** The pairs between two lists of workers, without a router. */
import { describe, expect, it } from 'vitest';
import { AvailableList } from '../../src/workers/available-list.js';
import { LegPairs } from '../../src/workers/leg-pairs.js';
import type { PairingMode } from '../../src/workers/pairing.js';
import type { WorkerState } from '../../src/workers/worker.js';
import { workerState } from '../support/worker-state.js';

/** A worker of a runtime; `any` has none that is known. */
function worker(id: string, runtime: 'sglang' | 'vllm' | 'trtllm' | 'any'): WorkerState {
  return workerState({ id, runtime: runtime === 'any' ? undefined : runtime });
}

function listOf(...workers: readonly WorkerState[]): AvailableList {
  const list = new AvailableList();
  for (const each of workers) list.add(each);
  return list;
}

function pairsOf(prefill: readonly WorkerState[], decode: readonly WorkerState[], mode: PairingMode = 'lenient') {
  const [prefillList, decodeList] = [listOf(...prefill), listOf(...decode)];
  return { pairs: new LegPairs(prefillList, decodeList, mode, (each) => each), decodeList };
}

const idsOf = (list: AvailableList): string[] => Array.from(list.members(), ({ id }) => id);

describe('partnersOf', () => {
  it('LM-30, LM-31: compatible decode workers in registration order', () => {
    const [p1, p2] = [worker('p1', 'sglang'), worker('p2', 'vllm')];
    const decode = [worker('d1', 'sglang'), worker('d2', 'vllm'), worker('d3', 'any'), worker('d4', 'sglang')];
    const { pairs } = pairsOf([p1, p2], decode);
    expect(idsOf(pairs.partnersOf(p1))).toEqual(['d1', 'd3', 'd4']);
    expect(idsOf(pairs.partnersOf(p2))).toEqual(['d2', 'd3']);
  });

  it('LM-31: where all pair with all, the partners are the decode list itself', () => {
    const p = worker('p', 'sglang');
    const { pairs, decodeList } = pairsOf([p], [worker('d1', 'vllm'), worker('d2', 'sglang')], 'off');
    expect(pairs.partnersOf(p)).toBe(decodeList);
  });

  it('LM-31: the same id may be in both legs', () => {
    const p = worker('w', 'sglang');
    const { pairs } = pairsOf([p, worker('w2', 'sglang')], [worker('w', 'vllm')], 'off');
    expect(idsOf(pairs.partnersOf(p))).toEqual(['w']);
  });

  it('LM-31: a thousand workers a leg share as many lists as there are kinds of facts', () => {
    const runtimes = ['sglang', 'vllm', 'trtllm'] as const;
    const leg = (name: string) =>
      Array.from({ length: 1000 }, (_, i) => worker(`${name}${i}`, runtimes[i % 3] ?? 'any'));
    const prefill = leg('p');
    const { pairs } = pairsOf(prefill, leg('d'));
    expect(new Set(prefill.map((each) => pairs.partnersOf(each))).size).toBe(3);
    expect(idsOf(pairs.partnersOf(prefill[0] as WorkerState)).slice(0, 3)).toEqual(['d0', 'd3', 'd6']);
  });
});

describe('viablePrefill', () => {
  it('LM-32a: tells a fleet without any compatible pair from one that is merely unavailable', () => {
    const d = worker('d', 'sglang');
    expect(pairsOf([], []).pairs.viablePrefill(0)).toEqual({ viable: undefined, hasPair: false });
    expect(pairsOf([worker('p', 'sglang')], []).pairs.viablePrefill(0)).toEqual({ viable: new Set(), hasPair: false });
    expect(pairsOf([worker('p', 'vllm')], [d]).pairs.viablePrefill(0)).toEqual({ viable: new Set(), hasPair: false });
    const { pairs } = pairsOf([worker('p', 'sglang')], [d]);
    expect(pairs.viablePrefill(0)).toEqual({ viable: undefined, hasPair: true });
    expect(pairs.viablePrefill(0, ['d'])).toEqual({ viable: new Set(), hasPair: true });
  });

  it('LM-30: names those with a partner that is available and not excluded', () => {
    const prefill = [worker('p1', 'sglang'), worker('p2', 'vllm'), worker('p3', 'sglang')];
    const { pairs } = pairsOf(prefill, [worker('d1', 'sglang'), worker('d2', 'vllm')]);
    expect(pairs.viablePrefill(0).viable).toBeUndefined();
    expect(pairs.viablePrefill(0, ['d2']).viable).toEqual(new Set(['p1', 'p3']));
    expect(pairs.viablePrefill(0, ['d1']).viable).toEqual(new Set(['p2']));
  });
});

describe('dissolve', () => {
  it('LB-30: lets go of the workers in the lists it made, and of no other', () => {
    const [p1, p2] = [worker('p1', 'sglang'), worker('p2', 'any')];
    const decode = [worker('d1', 'sglang'), worker('d2', 'vllm')];
    const { pairs, decodeList } = pairsOf([p1, p2], decode);
    const [own, whole] = [pairs.partnersOf(p1), pairs.partnersOf(p2)];
    pairs.dissolve();
    expect(own.size).toBe(0);
    expect(whole).toBe(decodeList);
    expect(decodeList.size).toBe(2);
    for (const { memberships } of decode) expect(memberships.map(({ list }) => list)).toEqual([decodeList]);
  });
});
