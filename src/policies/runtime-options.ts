/**
 * What a policy needs from its surroundings when it is used without a router: time, randomness, and for the policies
 * that hash, a hash or a ring (LB-2, LB-4, CC-10).
 */
import { RoutingConfigError } from '../errors.js';
import type { Resolved } from '../options/spec.js';
import { type Clock, monotonicClock } from '../runtime/clock.js';
import type { Hash64 } from '../runtime/hash.js';
import { type RandomSource, seededRandom, systemRandom } from '../runtime/random.js';
import type { RingLookup } from './policy.js';

/** Options every policy takes beside its own when it is used alone. */
export interface RuntimeOptions {
  /** Monotonic milliseconds. Default: `performance.now()`. */
  readonly clock?: Clock | undefined;
  /** Uniform numbers in [0, 1). Default: unseeded. */
  readonly random?: RandomSource | undefined;
  /** Seed of the built-in generator, an integer or a string. Not together with `random`. */
  readonly seed?: number | string | undefined;
  /** Age in milliseconds, above 0, at which a report stops counting; `Infinity` = never. Default 30 000 (LR-30). */
  readonly loadReportMaxAgeMs?: number | undefined;
  /** Made by `await loadHash()`, or the host's own, well mixed in all 64 bits; required by the policies that hash (LB-4). */
  readonly hash?: Hash64 | undefined;
  /** Replaces the ring that a hashing policy would build over the ids it is given. */
  readonly ring?: RingLookup | undefined;
}

/** The rows of `RuntimeOptions` in the table of options. */
export const runtimeTable = {
  clock: { kind: 'opaque', id: 'CF-109' },
  random: { kind: 'opaque', id: 'CF-109' },
  seed: { kind: 'opaque', id: 'CF-109' },
  loadReportMaxAgeMs: { kind: 'number', default: 30_000, above: 0, infinite: true, unit: 'ms', id: 'CF-106' },
  hash: { kind: 'opaque', id: 'CF-109' },
  ring: { kind: 'opaque', id: 'CC-10' },
} as const;

/** Runtime options as the table leaves them: functions unchecked. */
export type GivenRuntime = Resolved<typeof runtimeTable>;

/** The injected clock, checked. @throws RoutingConfigError */
export function clockOf(given: { readonly clock?: unknown }): Clock {
  return checkedFunction<Clock>('clock', given.clock) ?? monotonicClock;
}

/** The injected hash, checked. @throws RoutingConfigError */
export function hashOf(given: { readonly hash?: unknown }): Hash64 | undefined {
  return checkedFunction<Hash64>('hash', given.hash);
}

/** The injected ring, checked. @throws RoutingConfigError */
export function ringOf(given: { readonly ring?: unknown }): RingLookup | undefined {
  const ring = given.ring as RingLookup | undefined;
  if (ring !== undefined && typeof ring?.lookup !== 'function') {
    throw new RoutingConfigError('ring', ring, 'must be an object with a function lookup(hash, isEligible)');
  }
  return ring;
}

/** The injected generator, or one made from the seed, or the unseeded default. @throws RoutingConfigError */
export function randomOf(given: { readonly random?: unknown; readonly seed?: unknown }): RandomSource {
  const { seed } = given;
  const random = checkedFunction<RandomSource>('random', given.random);
  if (seed === undefined) return random ?? systemRandom;
  if (random !== undefined) throw new RoutingConfigError('seed', seed, 'must not be given together with random');
  if (typeof seed !== 'string' && !Number.isInteger(seed)) {
    throw new RoutingConfigError('seed', seed, 'must be an integer or a string');
  }
  return seededRandom(seed as number | string);
}

function checkedFunction<F>(field: string, value: unknown): F | undefined {
  if (value !== undefined && typeof value !== 'function') {
    throw new RoutingConfigError(field, value, 'must be a function');
  }
  return value as F | undefined;
}
