/**
 * A small synchronous 64-bit string hash in two 32-bit lanes (multiply, xor-shift and a murmur3 finaliser in each).
 * It fingerprints ids, namespaces and routing keys where no ring is involved, so that those parts need no WebAssembly
 * and nothing to wait for. It is not cryptographic.
 */

/** Hashes the UTF-16 units of `text`; the result is 16 lower-case hex digits. Equal text and seed, equal result. */
export function hashText(text: string, seed = 0): string {
  let high = seed ^ 0x9e3779b1;
  let low = seed ^ 0x85ebca77;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    high = Math.imul((high ^ unit) + low, 0xcc9e2d51);
    high = (high << 13) | (high >>> 19);
    low = Math.imul((low ^ unit) + (high >>> 7), 0x1b873593);
    low = (low << 17) | (low >>> 15);
  }
  high = avalanche(high ^ text.length);
  low = avalanche(low ^ high);
  return hex32(avalanche(high + low)) + hex32(low);
}

/** The murmur3 32-bit finaliser: every input bit reaches every output bit. */
export function avalanche(value: number): number {
  let h = value ^ (value >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}

function hex32(lane: number): string {
  return (lane >>> 0).toString(16).padStart(8, '0');
}
