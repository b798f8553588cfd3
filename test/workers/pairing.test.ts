import { describe, expect, it } from 'vitest';
import {
  PairingIndex,
  type PairingMode,
  type PairingWorker,
  pairCompatible,
  pairingFacts,
} from '../../src/workers/pairing.js';

function worker(
  labels: Readonly<Record<string, string>> = {},
  other: Partial<Omit<PairingWorker, 'labels'>> = {},
): PairingWorker {
  return { labels: new Map(Object.entries(labels)), connectionMode: 'http', runtime: undefined, ...other };
}

/** Whether the two pair in the modes off, lenient and strict. */
function pairs(prefill: PairingWorker, decode: PairingWorker): boolean[] {
  const modes: PairingMode[] = ['off', 'lenient', 'strict'];
  return modes.map((mode) => pairCompatible(pairingFacts(prefill), pairingFacts(decode), mode));
}

const known = { runtime: 'sglang', kv_transport: 'nixl' };

describe('pairCompatible', () => {
  it('LM-31: nothing known pairs unless strict', () => {
    expect(pairs(worker(), worker())).toEqual([true, true, false]);
  });

  it('LM-31: runtime and transport known and equal pair in every mode', () => {
    expect(pairs(worker(known), worker(known))).toEqual([true, true, true]);
  });

  it('LM-31: a known difference in runtime or transport is refused', () => {
    expect(pairs(worker(known), worker({ ...known, runtime: 'vllm' }))).toEqual([true, false, false]);
    expect(pairs(worker(known), worker({ ...known, kv_transport: 'mooncake' }))).toEqual([true, false, false]);
  });

  it('LM-31: strict refuses a runtime or transport that either leg does not tell', () => {
    for (const missing of ['runtime', 'kv_transport'] as const) {
      const { [missing]: _, ...rest } = known;
      expect(pairs(worker(rest), worker(known))).toEqual([true, true, false]);
      expect(pairs(worker(known), worker(rest))).toEqual([true, true, false]);
      expect(pairs(worker(rest), worker(rest))).toEqual([true, true, false]);
    }
  });

  for (const fact of ['kv_cache_dtype', 'page_size', 'attention_backend', 'model_dtype']) {
    it(`LM-31: ${fact}: a difference is refused, one leg alone telling it only by strict`, () => {
      const a = worker({ ...known, [fact]: '16' });
      expect(pairs(a, worker({ ...known, [fact]: '16' }))).toEqual([true, true, true]);
      expect(pairs(a, worker({ ...known, [fact]: '32' }))).toEqual([true, false, false]);
      expect(pairs(a, worker(known))).toEqual([true, true, false]);
      expect(pairs(worker(known), a)).toEqual([true, true, false]);
    });
  }

  it('LM-31: engine versions matter to strict only, and only when both are known', () => {
    const version = (v: string): PairingWorker => worker({ ...known, engine_version: v });
    expect(pairs(version('1'), version('2'))).toEqual([true, true, false]);
    expect(pairs(version('1'), version('1'))).toEqual([true, true, true]);
    expect(pairs(version('1'), worker(known))).toEqual([true, true, true]);
  });

  it('LM-31: a protocol on both legs decides by equality, over transport, layout and version', () => {
    const prefill = worker({ ...known, pairing_protocol: 'p1', page_size: '16', engine_version: '1' });
    const other = { runtime: 'sglang', kv_transport: 'mooncake', page_size: '32', engine_version: '2' };
    expect(pairs(prefill, worker({ ...other, pairing_protocol: 'p1' }))).toEqual([true, true, true]);
    expect(pairs(worker({ ...known, pairing_protocol: 'p1' }), worker({ ...known, pairing_protocol: 'p2' }))).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('LM-31: equal protocols do not join two runtimes', () => {
    const [a, b] = ['sglang', 'vllm'].map((runtime) => worker({ runtime, pairing_protocol: 'p1' }));
    expect(pairs(a as PairingWorker, b as PairingWorker)).toEqual([true, false, false]);
    expect(pairs(worker({ pairing_protocol: 'p1' }), worker({ pairing_protocol: 'p1' }))).toEqual([true, true, false]);
  });

  it('LM-31: a protocol on one leg only is refused by strict alone', () => {
    expect(pairs(worker({ ...known, pairing_protocol: 'p1' }), worker(known))).toEqual([true, true, false]);
    expect(pairs(worker(known), worker({ ...known, pairing_protocol: 'p1' }))).toEqual([true, true, false]);
  });

  it('LM-31: off keeps one runtime over gRPC', () => {
    const grpc = (runtime: 'sglang' | 'vllm' | undefined): PairingWorker =>
      worker({}, { connectionMode: 'grpc', runtime });
    expect(pairs(grpc('sglang'), grpc('vllm'))[0]).toBe(false);
    expect(pairs(grpc('sglang'), grpc('sglang'))[0]).toBe(true);
    expect(pairs(grpc('sglang'), grpc(undefined))[0]).toBe(true);
    expect(pairs(worker({ runtime: 'sglang' }), worker({ runtime: 'vllm' }))[0]).toBe(true);
  });

  it('LM-32a: the runtime of the spec wins over the label, names compare in lower case, empty labels are unknown', () => {
    expect(pairingFacts(worker({ runtime: 'SGLang' })).runtime).toBe('sglang');
    expect(pairingFacts(worker({ runtime: 'sglang' }, { runtime: 'vllm' })).runtime).toBe('vllm');
    expect(pairingFacts(worker({ runtime: '', pairing_protocol: '' }))).toEqual(pairingFacts(worker()));
  });
});

describe('PairingIndex', () => {
  const sglang = worker({ runtime: 'sglang' });
  const vllm = worker({ runtime: 'vllm' });

  it('LM-30, LM-31: partners of both legs in registration order, whatever the order of joining', () => {
    const index = new PairingIndex('lenient');
    const d1 = index.add('decode', 'd1', sglang);
    const p1 = index.add('prefill', 'p1', sglang);
    const p2 = index.add('prefill', 'p2', vllm);
    index.add('decode', 'd2', vllm);
    index.add('decode', 'd3', worker());
    index.add('decode', 'd4', sglang);
    expect(index.partnersOf('prefill', p1)).toEqual(['d1', 'd3', 'd4']);
    expect(index.partnersOf('prefill', p2)).toEqual(['d2', 'd3']);
    expect(index.partnersOf('decode', d1)).toEqual(['p1']);
    expect(index.partnersOf('decode', index.groupOf('decode', 'd3') ?? d1)).toEqual(['p1', 'p2']);
    expect(index.groupOf('decode', 'd4')).toBe(d1);
  });

  it('LM-32a: hasPairs tells a fleet without any compatible pair from one that is merely unavailable', () => {
    const index = new PairingIndex('lenient');
    expect(index.hasPairs).toBe(false);
    index.add('prefill', 'p1', sglang);
    index.add('decode', 'd1', vllm);
    expect(index.hasPairs).toBe(false);
    index.add('decode', 'd2', sglang);
    expect(index.hasPairs).toBe(true);
    index.remove('decode', 'd2');
    expect(index.hasPairs).toBe(false);
  });

  it('LM-31: direction is kept: the same id may be in both legs, and a leg never pairs within itself', () => {
    const index = new PairingIndex('off');
    const p = index.add('prefill', 'w', sglang);
    index.add('prefill', 'w2', sglang);
    expect(index.partnersOf('prefill', p)).toEqual([]);
    index.add('decode', 'w', vllm);
    expect(index.partnersOf('prefill', p)).toEqual(['w']);
  });

  it('WK-3: a replaced worker with other facts keeps its place and changes its partners', () => {
    const index = new PairingIndex('lenient');
    const p = index.add('prefill', 'p', sglang);
    for (const id of ['d1', 'd2', 'd3']) index.add('decode', id, sglang);
    index.add('decode', 'd1', vllm);
    expect(index.partnersOf('prefill', p)).toEqual(['d2', 'd3']);
    index.add('decode', 'd1', worker());
    expect(index.partnersOf('prefill', p)).toEqual(['d1', 'd2', 'd3']);
    expect(index.add('decode', 'd1', worker())).toBe(index.groupOf('decode', 'd1'));
    expect(index.partnersOf('prefill', p)).toEqual(['d1', 'd2', 'd3']);
  });

  it('LB-30: removal leaves no group and no partner behind; removing an unknown id is harmless', () => {
    const index = new PairingIndex('lenient');
    const p = index.add('prefill', 'p', sglang);
    index.add('decode', 'd1', sglang);
    index.add('decode', 'd2', sglang);
    index.remove('decode', 'd1');
    expect(index.partnersOf('prefill', p)).toEqual(['d2']);
    index.remove('decode', 'd2');
    index.remove('decode', 'd2');
    expect([p.partners.size, index.groupOf('decode', 'd2'), index.partnersOf('prefill', p)]).toEqual([
      0,
      undefined,
      [],
    ]);
  });

  it('LM-31: a thousand workers a leg make as many groups as there are kinds of facts', () => {
    const index = new PairingIndex('lenient');
    const runtimes = ['sglang', 'vllm', 'trtllm'];
    for (let i = 0; i < 1000; i++) {
      index.add('prefill', `p${i}`, worker({ runtime: runtimes[i % 3] as string }));
      index.add('decode', `d${i}`, worker({ runtime: runtimes[i % 3] as string }));
    }
    const groups = new Set(Array.from({ length: 1000 }, (_, i) => index.groupOf('prefill', `p${i}`)));
    expect(groups.size).toBe(3);
    for (const group of groups) expect(group?.partners.size).toBe(1);
    const first = index.groupOf('prefill', 'p0');
    expect(first && index.partnersOf('prefill', first).slice(0, 3)).toEqual(['d0', 'd3', 'd6']);
  });
});
