import { describe, expect, it } from 'vitest';
import { HealthState, type WorkerStatus, workerStatuses } from '../../src/workers/health.js';

const config = { failureThreshold: 3, successThreshold: 2 };

/** Applies probes written as a string, `+` ok and `-` failed; returns the changes with the number of the probe. */
function probe(health: HealthState, results: string): [number, WorkerStatus][] {
  const changes: [number, WorkerStatus][] = [];
  for (let i = 0; i < results.length; i++) {
    const changed = health.recordProbe(results[i] === '+');
    if (changed !== undefined) changes.push([i + 1, changed]);
  }
  return changes;
}

describe('HealthState', () => {
  it('WK-18: five states, numbered on the wire from 0', () => {
    expect(workerStatuses.map((status, wire) => `${wire} ${status}`)).toEqual([
      '0 pending',
      '1 ready',
      '2 not_ready',
      '3 failed',
      '4 draining',
    ]);
  });

  // From, probes, the changes they make.
  const rows: readonly [WorkerStatus, string, [number, WorkerStatus][]][] = [
    ['pending', '++', [[2, 'ready']]],
    ['pending', '+-+-++', [[6, 'ready']]],
    ['pending', '-'.repeat(29), []],
    ['pending', '-'.repeat(30), [[30, 'failed']]],
    ['pending', '+-'.repeat(15), [[30, 'failed']]],
    ['pending', `${'-'.repeat(28)}++`, [[30, 'ready']]],
    ['ready', '--+--+--', []],
    ['ready', '---', [[3, 'not_ready']]],
    ['not_ready', '+-++', [[4, 'ready']]],
    ['not_ready', '-'.repeat(8), []],
    ['not_ready', '-'.repeat(9), [[9, 'failed']]],
    ['not_ready', `${'-'.repeat(8)}+${'-'.repeat(9)}`, [[18, 'failed']]],
    // What a pending worker would fail by, probes in all, says nothing of one that was ready.
    ['not_ready', '+-'.repeat(20), []],
    ['failed', '-'.repeat(50), []],
    ['failed', '--+-++', [[6, 'ready']]],
    ['draining', '+++---++', []],
  ];
  for (const [from, probes, changes] of rows) {
    it(`WK-19: ${from}, ${probes} → ${JSON.stringify(changes)}`, () => {
      const health = new HealthState(config, from);
      expect(probe(health, probes)).toEqual(changes);
      expect(health.status).toBe(changes.at(-1)?.[1] ?? from);
    });
  }

  it('WK-19: ready to failed takes 4 × F failures, since the counter restarts on the way', () => {
    expect(probe(new HealthState(config, 'ready'), '-'.repeat(20))).toEqual([
      [3, 'not_ready'],
      [12, 'failed'],
    ]);
  });

  it('WK-19: a status set by the host starts the counters anew, the same status again does not', () => {
    const health = new HealthState(config, 'ready');
    probe(health, '--');
    expect(health.setStatus('ready')).toBe(false);
    expect(probe(health, '-')).toEqual([[1, 'not_ready']]);
    expect(health.setStatus('ready')).toBe(true);
    expect(probe(health, '--')).toEqual([]);
    expect(health.setStatus('draining')).toBe(true);
    expect(probe(health, '---')).toEqual([]);
  });

  it('LB-35: other thresholds apply from the next probe, counters stay', () => {
    const health = new HealthState(config, 'ready');
    probe(health, '--');
    health.configure({ failureThreshold: 5, successThreshold: 1 });
    expect(probe(health, '---+')).toEqual([
      [3, 'not_ready'],
      [4, 'ready'],
    ]);
  });
});
