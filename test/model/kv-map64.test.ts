import { deepStrictEqual as check } from 'node:assert/strict';
import { it } from 'vitest';
import { Map64 } from '../../src/prefix/map64.js';
import { fc } from '../support/property.js';
import { modelTimeoutMs, runsFor } from './kv-model-ops.js';

// A few lanes with much in common, so that keys collide in one lane, in both orders, and in the top and low bits.
const lane = fc.oneof(
  fc.integer({ min: 0, max: 40 }),
  fc.integer({ min: 0, max: 15 }).map((top) => top << 28),
  fc.integer(),
);
const operation = fc.record({
  kind: fc.constantFrom('set', 'set', 'set', 'get', 'delete', 'delete', 'sweep'),
  low: lane,
  high: fc.integer({ min: -2, max: 2 }),
  value: fc.nat({ max: 9 }),
});

it('LB-5: Map64 answers like a Map, through growth, shrinking and sweeps', { timeout: modelTimeoutMs }, () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 400 }), (operations) => {
      const map = new Map64();
      const model = new Map<string, number>();
      for (const { kind, low, high, value } of operations) {
        const key = `${low},${high}`;
        if (kind === 'set') {
          check(map.set(low, high, value), model.get(key) ?? -1);
          model.set(key, value);
        } else if (kind === 'get') {
          check(map.get(low, high), model.get(key) ?? -1);
        } else if (kind === 'delete') {
          check(map.delete(low, high), model.get(key) ?? -1);
          model.delete(key);
        } else {
          for (let cursor = 0; cursor < Map64.end; ) cursor = map.sweep(cursor, (held) => held !== value);
          for (const [held, heldValue] of model) if (heldValue === value) model.delete(held);
        }
        check(map.size, model.size);
      }
      check([...map.values()].sort(), [...model.values()].sort());
      for (const [key, value] of model) {
        const [low, high] = key.split(',').map(Number) as [number, number];
        check(map.get(low, high), value);
      }
    }),
    { numRuns: runsFor(200) },
  );
});
