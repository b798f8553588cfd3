/** What calls are given, mostly sound: requests, workers, reports, events and the like, hostile values by name. */
import { fc } from '../support/property.js';
import { hostileRecord, mostly } from './hostile.js';

const ids = ['w1', 'w2', 'w3', '__proto__', 'http://w5:8000'];
export const id = fc.constantFrom(...ids);
export const model = fc.constantFrom('m', 'n', '__proto__', '');
export const status = fc.constantFrom('ready', 'not_ready', 'pending', 'failed', 'draining');
export const text = fc.constantFrom('a prompt', 'a prompt with more', 'ä你😀', '\ud800x', '');
export const tokens = fc.oneof(
  { weight: 6, arbitrary: fc.array(fc.nat(9), { maxLength: 40 }) },
  { weight: 1, arbitrary: fc.constantFrom({ $: 'words' }, { $: 'enormousSparse' }) },
);
const headers = fc.dictionary(
  fc.constantFrom('x-smg-routing-key', 'X-SMG-Target-Worker', 'X-Smg-Routing-Tokens', 'authorization', '__proto__'),
  mostly(fc.constantFrom('k1', 'k2', '0', '1', '1,2,3')),
  { maxKeys: 3 },
);

export const request = hostileRecord({
  model,
  leg: fc.constantFrom('single', 'prefill', 'decode'),
  text: fc.oneof({ weight: 300, arbitrary: text }, { weight: 1, arbitrary: fc.constant({ $: 'hugeText' }) }),
  tokens,
  headers: fc.oneof({ weight: 20, arbitrary: headers }, { weight: 1, arbitrary: fc.constant({ $: 'manyKeys' }) }),
  rid: fc.constantFrom('r1', 'r1_t2', 'r2'),
  routingKey: fc.constantFrom('k1', 'k2'),
  namespace: hostileRecord({ cacheSalt: text, extraKey: text, lora: text }),
  exclude: fc.array(mostly(id), { maxLength: 3 }),
});

export const workerSpec = hostileRecord({
  id,
  url: fc.constantFrom('http://w5:8000', 'grpc://w6:1'),
  kind: fc.constantFrom('regular', 'regular', 'prefill'),
  connectionMode: fc.constantFrom('http', 'grpc', 'zmq'),
  runtime: fc.constantFrom('sglang', 'vllm'),
  models: fc.array(mostly(model, 30), { maxLength: 2 }),
  labels: fc.dictionary(fc.constantFrom('model_id', '__proto__', 'tier'), mostly(fc.constantFrom('m', 'n')), {
    maxKeys: 2,
  }),
  status,
  kvBlockSize: fc.constantFrom(0, 4, 16),
  loadMonitorIntervalMs: fc.constantFrom(1, 5000),
  overload: hostileRecord({ waitingRequests: fc.constant(8), tokenUsage: fc.constant(0.9) }),
  resilience: hostileRecord({ cbFailureThreshold: fc.constant(2), capacityStatusCodes: fc.constant([429]) }),
  bootstrapPort: fc.constantFrom(1, 8998),
});

export const report = fc.oneof(
  hostileRecord({
    waitingRequests: fc.nat(20),
    waitingTokens: fc.nat(5000),
    kvCacheUsage: fc.constantFrom(0, 0.5, 0.95),
    tokensPerSecond: fc.constantFrom(0, 100),
    observedAt: fc.constantFrom(0, 1e9),
  }),
  hostileRecord({ ranks: fc.array(hostileRecord({ waitingRequests: fc.nat(9) }), { maxLength: 2 }) }),
  fc.constant(null),
);

export const kvEvent = hostileRecord({
  type: fc.constantFrom('stored', 'removed', 'cleared'),
  hashes: fc.array(mostly(fc.nat(5)), { maxLength: 2 }),
  tokens,
  blockSize: fc.constantFrom(4, 0),
  parent: fc.nat(5),
  medium: fc.constantFrom('GPU', 'CPU'),
});

export const piece = hostileRecord({
  model,
  leg: fc.constantFrom('single', 'decode'),
  piece: hostileRecord({
    kind: fc.constantFrom('text', 'tokens', 'hash', 'pins'),
    data: fc.oneof(
      hostileRecord({
        workers: fc.array(mostly(id), { maxLength: 2 }),
        namespaces: fc.array(mostly(fc.constant(null)), { maxLength: 2 }),
        parents: fc.array(mostly(fc.constantFrom(-1, 0)), { maxLength: 3 }),
        labels: fc.array(mostly(fc.oneof(text, fc.array(fc.nat(9), { maxLength: 16 }))), { maxLength: 3 }),
        holds: fc.array(mostly(fc.constantFrom(0, 1, 2)), { maxLength: 6 }),
      }),
      fc.array(mostly(fc.tuple(mostly(fc.constant('7:restoredsingle:k')), mostly(id), mostly(id), mostly(fc.nat(9)))), {
        maxLength: 2,
      }),
    ),
  }),
});

export const placement = hostileRecord({
  model,
  leg: fc.constantFrom('single', 'decode'),
  kind: fc.constantFrom('text', 'tokens', 'hash'),
  namespace: fc.constantFrom('n', undefined),
  units: fc.oneof(text, fc.array(mostly(fc.nat(9), 30), { maxLength: 20 })),
  worker: id,
  use: fc.constantFrom(1, 5, 2 ** 52),
});

export const outcome = hostileRecord({
  status: fc.constantFrom(200, 429, 500, 99),
  error: fc.constantFrom('connect', 'timeout', 'body'),
  aborted: fc.boolean(),
});

export const beginOptions = hostileRecord({
  signal: fc.constantFrom({ $: 'live' }, { $: 'aborted' }),
  scope: fc.constantFrom({ $: 'scope' }, 'request-1'),
});

/** Any number of attempts is accepted, so an enormous one would be waited for: only small ones and refused ones. */
export const retry = fc.record(
  {
    maxAttempts: fc.constantFrom(1, 2, 0, { $: 'half' }, { $: 'bigint' }, { $: 'nan' }),
    baseMs: mostly(fc.constant(1)),
    jitter: mostly(fc.constant(0.5)),
  },
  { requiredKeys: [] },
);

export const candidates = fc.array(
  mostly(
    hostileRecord({
      id,
      inFlight: fc.nat(5),
      report,
      activeKeys: fc.nat(3),
      keysInFlight: fc.dictionary(fc.constantFrom('k1', '__proto__'), mostly(fc.nat(3))),
    }),
    30,
  ),
  { maxLength: 3 },
);
