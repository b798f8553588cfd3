/**
 * Request headers of any shape (LB-43): names are matched whatever their case, arrays yield their elements in order.
 * Nothing here throws; a value of the wrong type counts as absent (LB-42).
 */

/** The part of the web `Headers` class that is read. */
export interface HeadersLike {
  /** A header's value; null or undefined when absent. Names are matched whatever their case. */
  get(name: string): string | null | undefined;
}

/**
 * `Headers`, a `Map`, a plain object (`IncomingMessage.headers`), or a function from lower-case name to value.
 * Array values yield their first usable element (ST-22a).
 */
export type RequestHeaders =
  | HeadersLike
  | ReadonlyMap<string, string | readonly string[]>
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | ((name: string) => string | readonly string[] | null | undefined);

/** A header's raw value: undefined when absent. `name` must be lower case. */
export function headerValue(headers: RequestHeaders | undefined, name: string): string | readonly string[] | undefined {
  if (headers === undefined || headers === null) return undefined;
  try {
    return usable(lookUp(headers, name));
  } catch {
    // A host's lookup function or a hostile proxy may throw: an unreadable header is an absent one.
    return undefined;
  }
}

/** The first string of a header value; of an array the first that is not empty. */
export function firstValue(value: string | readonly string[] | undefined): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  for (const element of value) if (typeof element === 'string' && element !== '') return element;
  return undefined;
}

function lookUp(headers: RequestHeaders, name: string): unknown {
  if (typeof headers === 'function') return headers(name);
  if (typeof headers !== 'object') return undefined;
  if (headers instanceof Map) return headers.get(name) ?? scan(headers, name);
  if (typeof (headers as HeadersLike).get === 'function') return (headers as HeadersLike).get(name);
  const record = headers as Readonly<Record<string, unknown>>;
  if (Object.hasOwn(record, name)) return record[name];
  for (const key in record) {
    if (key.length === name.length && key.toLowerCase() === name && Object.hasOwn(record, key)) return record[key];
  }
  return undefined;
}

function scan(headers: ReadonlyMap<unknown, unknown>, name: string): unknown {
  for (const [key, value] of headers) {
    if (typeof key === 'string' && key.length === name.length && key.toLowerCase() === name) return value;
  }
  return undefined;
}

function usable(value: unknown): string | readonly string[] | undefined {
  if (typeof value === 'string') return value;
  // A copy of the few that are arrays: one that fails when it is read does so here.
  return Array.isArray(value) ? [...value] : undefined;
}
