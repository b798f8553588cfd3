/** Token ids out of outside data: all sound, or none (LB-42). */

/** A copy of the ids as a `Uint32Array`; undefined when the value is no list of integers from 0 to 2³²−1. O(n). */
export function readTokenIds(value: unknown): Uint32Array | undefined {
  if (value instanceof Uint32Array) return value.slice();
  if (!Array.isArray(value)) return undefined;
  for (let i = 0; i < value.length; i++) {
    const id: unknown = value[i];
    if (!Number.isInteger(id) || (id as number) < 0 || (id as number) > 0xffffffff) return undefined;
  }
  return new Uint32Array(value as readonly number[]);
}
