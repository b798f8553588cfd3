/** Rotations against a naive model: a list of sets in order of use, each with its counter. */

import { describe, expect, it } from 'vitest';
import { roundRobin } from '../../src/policies/round-robin.js';
import { fc } from '../support/property.js';

describe('RR-1 to RR-4: round_robin against a naive model', () => {
  it('serves interleaved sets of any membership as the model does', () => {
    // Bit i set: worker i is available.
    const masks = fc.array(fc.integer({ min: 0, max: 31 }), { maxLength: 80 });
    fc.assert(
      fc.property(masks, (calls) => {
        const policy = roundRobin();
        const counters = new Map<string, number>();
        let sharedStart = 0;
        for (const mask of calls) {
          const set = ['a', 'b', 'c', 'd', 'e'].filter((_, i) => mask & (1 << i));
          const candidates = set.map((id) => ({ id, inFlight: 0 }));
          const selection = policy.selectWorker({}, candidates);
          if (set.length === 0) {
            expect(selection.ok).toBe(false);
            continue;
          }
          const key = set.join();
          const counter = counters.get(key) ?? sharedStart++;
          counters.set(key, counter + 1);
          expect(selection).toMatchObject({ ok: true, worker: { id: set[counter % set.length] } });
        }
      }),
      { numRuns: 300 },
    );
  });
});
