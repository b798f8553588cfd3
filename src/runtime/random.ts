/**
 * Randomness. Every draw comes from one injected generator, so the same seed and the same call sequence give the
 * same decisions (LB-3).
 */

/**
 * A generator of uniform numbers in [0, 1).
 *
 * `fork()`, when offered, returns an independent generator and leaves this one's sequence untouched; `explain` and
 * `rank` draw from a fork so that asking changes nothing (LB-12).
 */
export interface RandomSource {
  (): number;
  /** An independent generator; this one's sequence stays as it is. */
  fork?: (() => RandomSource) | undefined;
}

/** The part of the global scope the default generator needs. */
interface RandomScope {
  readonly Math: { random(): number };
}

/** The default generator, unseeded. The only ambient randomness in the package. */
export const systemRandom: RandomSource = () => (globalThis as unknown as RandomScope).Math.random();

/**
 * A seeded generator (sfc32 by Chris Doty-Humphrey: 128 bits of state, passes PractRand).
 *
 * @param seed any 32-bit integer, or a string (all of it counts)
 * @throws TypeError when the seed is neither
 */
export function seededRandom(seed: number | string): RandomSource {
  if (typeof seed === 'number' ? !Number.isInteger(seed) : typeof seed !== 'string') {
    throw new TypeError(`seed: expected an integer or a string, got ${typeof seed === 'number' ? seed : typeof seed}`);
  }
  const text = typeof seed === 'string' ? seed : `#${seed | 0}`;
  let [a, b, c] = [0x9e3779b9, 0x243f6a88, 0xb7e15162];
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x85ebca6b);
    b = Math.imul(b ^ (a >>> 13) ^ unit, 0xc2b2ae35);
    c = (c + Math.imul(a ^ b, 0x27d4eb2f)) | 0;
  }
  const random = sfc32(a, b, c, 1);
  for (let i = 0; i < 12; i++) random();
  return random;
}

function sfc32(a0: number, b0: number, c0: number, counter0: number): RandomSource {
  let a = a0 | 0;
  let b = b0 | 0;
  let c = c0 | 0;
  let counter = counter0 | 0;
  const random: RandomSource = () => {
    const t = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + t;
    c |= 0;
    return (t >>> 0) / 4294967296;
  };
  // A fork must neither repeat nor disturb this sequence: it starts from the same state with its lanes exchanged.
  random.fork = () => sfc32(b ^ 0x5bd1e995, c, a, counter);
  return random;
}

/** A generator to draw from without moving `random` on: its fork, or `spare` when it offers none (LB-12). */
export function forkOf(random: RandomSource, spare: RandomSource): RandomSource {
  return random.fork === undefined ? spare : random.fork();
}

/** A uniform index in [0, length). A host's generator may return 1 by mistake: the result stays in range. */
export function randomIndex(random: RandomSource, length: number): number {
  const index = Math.floor(random() * length);
  return index < length ? index : length - 1;
}
