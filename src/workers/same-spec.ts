/**
 * Whether two specs say the same: what reconciling compares (WK-66). Nothing is built, a fleet is compared at every
 * poll.
 */
import type { CheckedWorkerSpec } from './worker-spec.js';

type Same<T> = (a: T, b: T) => boolean;

/** How each field compares. The starting status says nothing about the worker that runs. */
const sameField: { readonly [K in Exclude<keyof CheckedWorkerSpec, 'status'>]: Same<CheckedWorkerSpec[K]> } = {
  id: Object.is,
  url: Object.is,
  kind: Object.is,
  connectionMode: Object.is,
  runtime: Object.is,
  models: sameList,
  unnamed: Object.is,
  labels: sameEntries,
  kvBlockSize: Object.is,
  loadMonitorIntervalMs: Object.is,
  overload: sameOptions,
  resilience: sameOptions,
  bootstrapPort: Object.is,
};
const compared = Object.entries(sameField) as [keyof CheckedWorkerSpec, Same<unknown>][];

/** Whether two specs say the same, the starting status aside. The order of models counts, that of labels does not. */
export function sameSpec(a: CheckedWorkerSpec, b: CheckedWorkerSpec): boolean {
  return compared.every(([field, same]) => same(a[field], b[field]));
}

/** Whether two lists hold the same in the same order. */
export function sameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i]);
}

function sameEntries(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  if (a.size !== b.size) return false;
  for (const [name, value] of a) if (b.get(name) !== value) return false;
  return true;
}

/** Options as they were given: values that are set, or lists of them. No options are like none that is set. */
function sameOptions(a: object = {}, b: object = {}): boolean {
  const given = Object.entries(a);
  if (given.length !== Object.keys(b).length) return false;
  return given.every(([name, value]) => {
    const other: unknown = Reflect.get(b, name);
    return Array.isArray(value) && Array.isArray(other) ? sameList(value, other) : value === other;
  });
}
