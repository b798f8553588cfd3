/**
 * Whether a prefill and a decode worker may serve one request together (LM-31): what is known of the two, and the three
 * modes of comparing it. Pure functions; who pairs with whom in a fleet is kept by leg-pairs.ts.
 */
import type { ConnectionMode, RuntimeType } from './worker-spec.js';

/** How much must be known of two workers before they pair (LM-31); the option `pdPairingMode`. */
export type PairingMode = 'off' | 'lenient' | 'strict';

/** Labels that describe how an engine lays out its KV cache; a known difference in one of them forbids a pair. */
const layoutLabels = ['kv_cache_dtype', 'page_size', 'attention_backend', 'model_dtype'] as const;

/** The part of a worker that pairing reads. */
export interface PairingWorker {
  /** `pairing_protocol`, `kv_transport`, `engine_version`, `runtime` and those of the KV layout are read (LM-32a). */
  readonly labels: ReadonlyMap<string, string>;
  /** Over gRPC both legs run one runtime, even when everything else may differ (LM-31). */
  readonly connectionMode: ConnectionMode;
  /** Wins over the label `runtime`. */
  readonly runtime: RuntimeType | undefined;
}

/** What decides about pairs; undefined = unknown. An empty label counts as unknown. */
export interface PairingFacts {
  /** Whether the host talks gRPC to it. */
  readonly grpc: boolean;
  /** Label `pairing_protocol`: given on both legs it decides by itself. */
  readonly protocol: string | undefined;
  /** In lower case. */
  readonly runtime: string | undefined;
  /** Label `kv_transport`. */
  readonly transport: string | undefined;
  /** Label `engine_version`; compared in strict mode only. */
  readonly engineVersion: string | undefined;
  /** Values of `kv_cache_dtype`, `page_size`, `attention_backend`, `model_dtype`. */
  readonly layout: readonly (string | undefined)[];
}

/** Reads the facts of a worker. Runtime names compare in lower case, everything else as written. */
export function pairingFacts(worker: PairingWorker): PairingFacts {
  const label = (name: string): string | undefined => worker.labels.get(name) || undefined;
  return {
    grpc: worker.connectionMode === 'grpc',
    protocol: label('pairing_protocol'),
    runtime: worker.runtime ?? label('runtime')?.toLowerCase(),
    transport: label('kv_transport'),
    engineVersion: label('engine_version'),
    layout: layoutLabels.map(label),
  };
}

/**
 * Whether a prefill and a decode worker may serve one request together (LM-31).
 *
 * `off` pairs everything but two runtimes over gRPC. Otherwise a `pairing_protocol` on both legs decides by equality,
 * given the same runtime. Otherwise `lenient` refuses known differences, `strict` unknown facts as well.
 */
export function pairCompatible(prefill: PairingFacts, decode: PairingFacts, mode: PairingMode): boolean {
  if (mode === 'off') return !(prefill.grpc || decode.grpc) || mayEqual(prefill.runtime, decode.runtime);
  const strict = mode === 'strict';
  const agree = strict ? knownEqual : mayEqual;
  if (!agree(prefill.runtime, decode.runtime)) return false;
  if (prefill.protocol !== undefined && decode.protocol !== undefined) return prefill.protocol === decode.protocol;
  if (strict && prefill.protocol !== decode.protocol) return false;
  if (!agree(prefill.transport, decode.transport)) return false;
  if (strict && !mayEqual(prefill.engineVersion, decode.engineVersion)) return false;
  return prefill.layout.every((value, i) => {
    const other = decode.layout[i];
    // Strict: a fact that neither leg reports is no difference, one that only one reports is.
    return strict ? value === other : mayEqual(value, other);
  });
}

function mayEqual(a: string | undefined, b: string | undefined): boolean {
  return a === undefined || b === undefined || a === b;
}

function knownEqual(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && a === b;
}
