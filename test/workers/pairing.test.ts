import { describe, expect, it } from 'vitest';
import { type PairingMode, type PairingWorker, pairCompatible, pairingFacts } from '../../src/workers/pairing.js';

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
    expect(pairs(grpc('sglang'), worker({ runtime: 'vllm' }))[0]).toBe(false);
    expect(pairs(worker({ runtime: 'vllm' }), grpc('sglang'))[0]).toBe(false);
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
