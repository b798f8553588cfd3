import { afterEach, describe, expect, it } from 'vitest';
import { Words } from '../../src/runtime/words.js';
import { fc } from '../support/property.js';

const scope = globalThis as { Buffer?: unknown };
const { Buffer } = scope;

afterEach(() => {
  scope.Buffer = Buffer;
});

describe.each([
  ['with Buffer', true],
  ['without Buffer', false],
])('Words %s', (_title, hasBuffer) => {
  it('LB-1: find the first difference and copy, at any offset and length', () => {
    fc.assert(
      fc.property(fc.nat(400), fc.nat(700), fc.nat(50), fc.nat(50), (difference, count, from, otherFrom) => {
        scope.Buffer = hasBuffer ? Buffer : undefined;
        const words = Uint32Array.from({ length: count + from }, (_, i) => (i * 2654435761) >>> 0);
        // A view into larger memory, as a request may be.
        const memory = new Uint32Array(count + otherFrom + 7).subarray(7);
        const one = new Words(words);
        const other = new Words(memory);
        other.copyFrom(otherFrom, one, from, count);
        expect(memory.subarray(otherFrom)).toEqual(words.subarray(from));
        expect(one.agreement(from, other, otherFrom, count)).toBe(count);
        if (difference < count) {
          memory[otherFrom + difference] = (memory[otherFrom + difference] as number) ^ 0x80000000;
          expect(one.agreement(from, other, otherFrom, count)).toBe(difference);
        }
        scope.Buffer = Buffer;
      }),
      { numRuns: 100 },
    );
  });
});
