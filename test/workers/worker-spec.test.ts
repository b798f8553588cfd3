/** The check of what a host says about a worker, by itself. What a router does with it: test/router/workers.test.ts. */
import { RoutingConfigError } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { checkWorkerSpec, type WorkerSpec } from '../../src/workers/worker-spec.js';

/** The field and the value a spec is refused for. */
function refusedFor(spec: unknown): [string, unknown] | undefined {
  try {
    checkWorkerSpec(spec as WorkerSpec);
  } catch (error) {
    expect(error).toBeInstanceOf(RoutingConfigError);
    const { field, value } = error as RoutingConfigError;
    return [field, value];
  }
  return undefined;
}

describe('checkWorkerSpec', () => {
  it.each([undefined, null, 'http://h', 5, () => ({ id: 'a' })])('CF-1: %s is no worker', (spec) => {
    expect(refusedFor(spec)).toEqual(['worker', spec]);
  });

  it.each([
    ['id', 5],
    // What only reads like a url when it is made text.
    ['url', ['http://h']],
    ['kind', 'main'],
    ['connectionMode', 'tcp'],
    ['runtime', 'llama'],
    ['status', 'up'],
    ['models', [5]],
    ['models', new Array(1)],
    ['models', 'm'],
    ['labels', null],
    ['labels', 'zone'],
    ['labels', ['zone']],
    ['kvBlockSize', 1.5],
    ['kvBlockSize', -1],
    ['kvBlockSize', 2 ** 53],
    ['loadMonitorIntervalMs', '1000'],
    ['loadMonitorIntervalMs', 0],
    ['loadMonitorIntervalMs', Infinity],
    ['bootstrapPort', 0],
    ['bootstrapPort', 65_536],
    ['bootstrapPort', '80'],
  ])('CF-1, WK-2, WK-18, LM-15: refuses %s %j by name', (field, value) => {
    expect(refusedFor({ id: 'a', [field]: value })).toEqual([`worker.${field}`, value]);
  });

  it('CF-1, WK-7: refuses a label whose name or value is no string', () => {
    expect(refusedFor({ id: 'a', labels: new Map([[5, 'x']]) })).toEqual(['worker.labels', 5]);
    expect(refusedFor({ id: 'a', labels: new Map([['zone', 5]]) })).toEqual(['worker.labels.zone', 5]);
    expect(refusedFor({ id: 'a', labels: { zone: undefined } })).toEqual(['worker.labels.zone', undefined]);
  });

  it('CF-1: a refusal says what was possible', () => {
    expect(() => checkWorkerSpec({ id: 'a', bootstrapPort: 0 })).toThrow(/between 1 and 65535, got 0$/);
    expect(() => checkWorkerSpec({ id: 'a', connectionMode: 'tcp' as never })).toThrow(/http, grpc, zmq, got "tcp"$/);
  });

  it('LM-15, CA-91, LR-20: takes the ends of each range; block size 0 counts as unset, intervals as at least 1 000', () => {
    const numbers = (spec: Partial<WorkerSpec>): unknown[] => {
      const { bootstrapPort, kvBlockSize, loadMonitorIntervalMs } = checkWorkerSpec({ id: 'a', ...spec });
      return [bootstrapPort, kvBlockSize, loadMonitorIntervalMs];
    };
    expect(numbers({})).toEqual([undefined, undefined, undefined]);
    expect(numbers({ bootstrapPort: 1, kvBlockSize: 0, loadMonitorIntervalMs: 0.5 })).toEqual([1, undefined, 1000]);
    const largest = { bootstrapPort: 65_535, kvBlockSize: 2 ** 53 - 1, loadMonitorIntervalMs: 1001 };
    expect(numbers(largest)).toEqual([65_535, 2 ** 53 - 1, 1001]);
  });

  it('WK-13a: a worker is registered without a model when `unknown` is all it serves', () => {
    const named = (...models: string[]): [readonly string[], boolean] => {
      const checked = checkWorkerSpec({ id: 'a', models });
      return [checked.models, checked.unnamed];
    };
    expect([named(), named('')]).toEqual([
      [['unknown'], true],
      [['unknown'], true],
    ]);
    expect(named('', 'm', 'unknown')).toEqual([['unknown', 'm'], false]);
    expect(named('m', '')).toEqual([['m', 'unknown'], false]);
  });

  it('WK-7, WK-10: keeps copies, the host may go on changing its own', () => {
    const spec = { id: 'a', models: ['m'], labels: { zone: 'x' }, resilience: { retryableStatusCodes: [500] } };
    const checked = checkWorkerSpec(spec);
    spec.models.push('n');
    spec.labels.zone = 'y';
    spec.resilience.retryableStatusCodes.push(503);
    expect([checked.models, checked.labels.get('zone'), checked.resilience]).toEqual([
      ['m'],
      'x',
      { retryableStatusCodes: [500] },
    ]);
  });
});
