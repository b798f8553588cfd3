/** What a worker tells of itself, without a router. */
import { describe, expect, it } from 'vitest';
import { summarizeReport } from '../../src/load/load-summary.js';
import { ElapsedTime } from '../../src/runtime/clock.js';
import { manualTime } from '../support/manual-time.js';
import { workerState } from '../support/worker-state.js';

describe('WorkerState', () => {
  it('WK-1, WK-4, WK-6: tells what it was registered with', () => {
    const worker = workerState({ id: 'a', url: 'grpc://h:1', kind: 'decode', runtime: 'vllm', labels: { zone: 'z' } });
    const { id, url, kind, connectionMode, runtime, models, labels } = worker;
    expect({ id, url, kind, connectionMode, runtime, models, labels }).toEqual({
      id: 'a',
      url: 'grpc://h:1',
      kind: 'decode',
      connectionMode: 'grpc',
      runtime: 'vllm',
      models: ['unknown'],
      labels: new Map([['zone', 'z']]),
    });
    expect(workerState({ id: 'a' }).url).toBeUndefined();
  });

  it('WK-41, WK-42, WK-43: counts requests by key, and keeps nothing of a key whose requests have ended', () => {
    const worker = workerState({ id: 'a' });
    const counts = (): number[] => [
      worker.inFlight,
      worker.activeKeys,
      worker.keyInFlight('k'),
      worker.keyInFlight('l'),
    ];
    for (const key of ['k', 'k', 'l', undefined]) worker.countBegin(key);
    expect(counts()).toEqual([4, 2, 2, 1]);
    worker.countEnd('k');
    expect(counts()).toEqual([3, 2, 1, 1]);
    worker.countEnd(undefined);
    worker.countEnd('l');
    expect(counts()).toEqual([1, 1, 1, 0]);
    worker.countEnd('k');
    expect(counts()).toEqual([0, 0, 0, 0]);
  });

  it('LR-30, OV-9: a report and the veto it led to count until it expires, whether or not anybody cleared them', () => {
    const time = manualTime();
    const elapsed = new ElapsedTime(time.clock);
    const worker = workerState({ id: 'a' }, {}, elapsed);
    const load = summarizeReport({ waitingRequests: 9 }, 0, 100);
    if (typeof load === 'string') throw new Error(load);
    const verdict = { signal: 'waiting_requests', value: 9, threshold: 8 } as const;
    worker.load = load;
    expect([worker.report, worker.overload, worker.available]).toEqual([{ waitingRequests: 9 }, undefined, true]);
    worker.verdict = verdict;
    time.advance(99);
    elapsed.advance();
    expect([worker.report, worker.overload, worker.available]).toEqual([{ waitingRequests: 9 }, verdict, false]);
    time.advance(1);
    elapsed.advance();
    expect([worker.report, worker.overload, worker.available]).toEqual([undefined, undefined, true]);
  });
});
