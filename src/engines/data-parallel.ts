/**
 * Data-parallel ranks as workers of their own (WK-15, WK-16): one engine of size N becomes N workers `<base>@<rank>`,
 * which share the base URL for transport and nothing else.
 */
import { checkObject, RoutingConfigError, refuse } from '../errors.js';
import type { WorkerSpec } from '../workers/worker-spec.js';

const maxRanks = 65_536;

/**
 * One spec for each rank, 0 to `size` − 1: `url` and, when given, `id` get the suffix `@<rank>`; every other field is
 * the same (WK-15). Register each with `addWorker`.
 *
 * @throws RoutingConfigError when `size` is no integer from 1 to 65 536, TypeError when `id` or `url` is no string
 */
export function dataParallelWorkers<Spec extends WorkerSpec>(spec: Spec, size: number): Spec[] {
  // The size may come from the engine: a wrong one must not exhaust the memory.
  if (!Number.isInteger(size) || size < 1 || size > maxRanks) {
    throw new RoutingConfigError('size', size, `must be an integer from 1 to ${maxRanks}`);
  }
  const { id, url } = checkObject(spec, 'spec');
  return Array.from({ length: size }, (_, rank) => {
    const ranked = { ...spec };
    return Object.assign(ranked, suffixed('id', id, rank), suffixed('url', url, rank));
  });
}

function suffixed(field: string, value: string | undefined, rank: number): Record<string, string> {
  if (value === undefined) return {};
  if (typeof value !== 'string') throw refuse(field, 'a string', value);
  return { [field]: `${value}@${rank}` };
}

/** Where a rank worker is reached. */
export interface RankAddress {
  /** The base URL, to send the request to. */
  readonly url: string;
  /** The rank, to put into the JSON body as `data_parallel_rank`; undefined for a worker that is no rank (WK-16). */
  readonly rank: number | undefined;
}

/**
 * Takes a worker's URL apart: `http://host:30000@1` → `{ url: 'http://host:30000', rank: 1 }`. A URL that does not end
 * in `@` and digits comes back as it is, without rank.
 *
 * @throws TypeError when it is no string
 */
export function splitRank(url: string): RankAddress {
  if (typeof url !== 'string') throw refuse('url', 'a string', url);
  const at = url.lastIndexOf('@');
  const suffix = url.slice(at + 1);
  const rank = /^[0-9]{1,9}$/.test(suffix) ? Number(suffix) : undefined;
  return at > 0 && rank !== undefined ? { url: url.slice(0, at), rank } : { url, rank: undefined };
}
