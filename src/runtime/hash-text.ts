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
  return hexOf(avalanche(high + low), low);
}

/** The murmur3 32-bit finaliser: every input bit reaches every output bit. */
export function avalanche(value: number): number {
  let h = value ^ (value >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/** Two lanes as 16 digits. Character by character: `toString(16)` with padding takes six times as long. */
function hexOf(high: number, low: number): string {
  return String.fromCharCode(
    digit(high >>> 28),
    digit(high >>> 24),
    digit(high >>> 20),
    digit(high >>> 16),
    digit(high >>> 12),
    digit(high >>> 8),
    digit(high >>> 4),
    digit(high),
    digit(low >>> 28),
    digit(low >>> 24),
    digit(low >>> 20),
    digit(low >>> 16),
    digit(low >>> 12),
    digit(low >>> 8),
    digit(low >>> 4),
    digit(low),
  );
}

/** Character code of the hex digit for the lowest four bits. */
function digit(bits: number): number {
  const value = bits & 15;
  return value < 10 ? 48 + value : 87 + value;
}
