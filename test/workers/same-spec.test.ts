import { describe, expect, it } from 'vitest';
import { sameSpec } from '../../src/workers/same-spec.js';
import { checkWorkerSpec, type WorkerSpec } from '../../src/workers/worker-spec.js';

const full: WorkerSpec = {
  id: 'a',
  url: 'http://host:1',
  kind: 'prefill',
  connectionMode: 'grpc',
  runtime: 'vllm',
  models: ['m', 'n'],
  labels: { zone: 'z', gpu: 'h100' },
  kvBlockSize: 16,
  loadMonitorIntervalMs: 2000,
  overload: { tokenUsage: 0.5 },
  resilience: { cbFailureThreshold: 3, retryableStatusCodes: [500, 503] },
  bootstrapPort: 9,
};
const same = (a: WorkerSpec, b: WorkerSpec): boolean => sameSpec(checkWorkerSpec(a), checkWorkerSpec(b));

describe('WK-66: whether two specs say the same', () => {
  it('WK-66: a copy does, the starting status and the order of labels aside', () => {
    expect(same(full, structuredClone(full))).toBe(true);
    expect(
      same(full, {
        ...full,
        status: 'pending',
        labels: new Map([
          ['gpu', 'h100'],
          ['zone', 'z'],
        ]),
      }),
    ).toBe(true);
    expect(same({ id: 'a' }, { id: 'a', models: [], labels: {}, overload: {}, resilience: {} })).toBe(true);
    expect(same({ id: 'a' }, { id: 'a', kind: 'regular', connectionMode: 'http', models: ['unknown'] })).toBe(true);
  });

  const changes: readonly Partial<WorkerSpec>[] = [
    { id: 'b' },
    { url: 'http://host:2' },
    { kind: 'decode' },
    { connectionMode: 'http' },
    { runtime: 'sglang' },
    { runtime: undefined },
    { models: ['n', 'm'] },
    { models: ['m'] },
    { labels: { zone: 'y', gpu: 'h100' } },
    { labels: { zone: 'z', cpu: 'h100' } },
    { labels: { zone: 'z' } },
    { labels: { zone: 'z', gpu: 'h100', more: '' } },
    { kvBlockSize: 32 },
    { loadMonitorIntervalMs: 3000 },
    { overload: { tokenUsage: 0.6 } },
    { overload: { tokenUsage: 0.5, waitingRequests: 1 } },
    { overload: undefined },
    { resilience: { cbFailureThreshold: 4, retryableStatusCodes: [500, 503] } },
    { resilience: { cbSuccessThreshold: 3, retryableStatusCodes: [500, 503] } },
    { resilience: { cbFailureThreshold: 3, retryableStatusCodes: [500, 502] } },
    { resilience: { cbFailureThreshold: 3, retryableStatusCodes: [500] } },
    { resilience: { cbFailureThreshold: 3 } },
    { resilience: { cbFailureThreshold: 3, cbSuccessThreshold: 3 } },
    { resilience: undefined },
    { bootstrapPort: 10 },
  ];
  it.each(changes.map((change) => [JSON.stringify(change), change] as const))(
    'WK-66: %s makes another',
    (_, change) => {
      expect(same(full, { ...full, ...change })).toBe(false);
      expect(same({ ...full, ...change }, full)).toBe(false);
    },
  );
});
