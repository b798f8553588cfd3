/**
 * The 64-bit hash that places keys and workers on rings. It never decides anything outside this process, so any
 * stable 64-bit hash may stand in for XXH64 (WK-63, PH-11).
 */
import xxhash from 'xxhash-wasm';

/**
 * Hashes a string (as UTF-8) or bytes to an unsigned 64-bit integer. Must be pure: same input, same output.
 *
 * All 64 bits must be well mixed, for inputs too that differ in a digit only, as the nodes of a worker do: what places
 * keys is the size of the number, so high bits that hardly differ give some workers most of the ring. XXH64, MurmurHash3
 * and SipHash are such hashes; FNV, CRC and a 32-bit hash that is widened are not.
 */
export type Hash64 = (data: string | Uint8Array) => bigint;

// The one piece of module state: compiling the WebAssembly once is the point of it, and every caller would get an
// equal function anyway (LB-4, B89: one shared instance, no result depends on when it was made).
let shared: Promise<Hash64> | undefined;

/**
 * Prepares XXH64 (seed 0). `createRouter` does this by itself; policies that hash and are used without a router take
 * the result as their `hash` option (LB-4). Where a runtime refuses to compile WebAssembly, pass a hash of your own.
 */
export function loadHash(): Promise<Hash64> {
  shared ??= xxhash().then(
    ({ h64, h64Raw }) =>
      (data) =>
        typeof data === 'string' ? h64(data) : h64Raw(data),
  );
  return shared;
}
