/**
 * Checks given options against a table and fills in the defaults (LB-40, CF-1). An unknown name, a wrong type, a value
 * out of range, NaN or an unwanted infinity throws a `RoutingConfigError` that gives field, value and reason; nothing
 * is replaced silently. `undefined` means the default, 0 means 0 (B56).
 */
import { RoutingConfigError, show } from '../errors.js';
import type { NumberSpec, OptionSpec, OptionTable, Resolved } from './spec.js';

/**
 * @param path prefix of the field names in errors: '' at the top, 'policy.' in a section
 * @throws RoutingConfigError
 */
export function resolveOptions<T extends OptionTable>(table: T, given: unknown, path = ''): Resolved<T> {
  if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given))) {
    throw new RoutingConfigError(path === '' ? 'options' : path.slice(0, -1), given, 'must be an object');
  }
  const values = (given ?? {}) as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(values)) {
    if (!Object.hasOwn(table, name)) throw unknownOption(path + name, name, values[name], Object.keys(table));
  }
  const resolved: Record<string, unknown> = {};
  for (const name of Object.keys(table)) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    resolved[name] = resolveOption(table[name] as OptionSpec, path + name, value);
  }
  return resolved as Resolved<T>;
}

function resolveOption(spec: OptionSpec, field: string, value: unknown): unknown {
  if (spec.kind === 'section') return resolveOptions(spec.options, value, `${field}.`);
  if (value === undefined) return 'default' in spec ? spec.default : undefined;
  if (value === null) throw new RoutingConfigError(field, value, 'must not be null; leave it out for the default');
  switch (spec.kind) {
    case 'number':
    case 'integer':
      return checkedNumber(spec, field, value);
    case 'boolean':
      if (typeof value !== 'boolean') throw new RoutingConfigError(field, value, 'must be true or false');
      return value;
    case 'choice':
      if (!spec.values.includes(value as string)) {
        throw new RoutingConfigError(field, value, `must be one of ${spec.values.join(', ')}`);
      }
      return value;
    case 'ascending':
      return checkedAscending(field, value);
    case 'headerNames':
      return checkedHeaderNames(field, value);
    case 'statusCodes':
      return checkedStatusCodes(field, value);
    case 'opaque':
      return value;
  }
}

function checkedNumber(spec: NumberSpec, field: string, value: unknown): number {
  const { min, max, above } = spec;
  const fits =
    typeof value === 'number' &&
    (Number.isFinite(value) || (value === Infinity && spec.infinite === true)) &&
    (spec.kind === 'number' || Number.isInteger(value)) &&
    (min === undefined || value >= min) &&
    (max === undefined || value <= max) &&
    (above === undefined || value > above);
  if (!fits) throw new RoutingConfigError(field, value, `must be ${rangeText(spec)}`);
  return value;
}

/** The accepted range in words, for messages and for the documentation. */
function rangeText(spec: NumberSpec): string {
  const { min, max, above } = spec;
  const noun = spec.kind === 'integer' ? 'an integer' : 'a finite number';
  const unit = spec.unit === undefined ? '' : ` (${spec.unit})`;
  if (min !== undefined && max !== undefined) return `${noun} between ${min} and ${max}${unit}`;
  if (above !== undefined && max !== undefined) return `${noun} above ${above} and at most ${max}${unit}`;
  if (above !== undefined) return `${noun} above ${above}${spec.infinite ? ' or Infinity' : ''}${unit}`;
  return `${noun} ≥ ${min}${unit}`;
}

function checkedAscending(field: string, value: unknown): readonly number[] {
  const reason = 'must be an array of positive integers in strictly ascending order';
  if (!Array.isArray(value)) throw new RoutingConfigError(field, value, reason);
  let last = 0;
  for (const item of value) {
    if (!Number.isSafeInteger(item) || item <= last) throw new RoutingConfigError(field, value, reason);
    last = item;
  }
  return [...value];
}

// RFC 9110 token characters.
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function checkedHeaderNames(field: string, value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw new RoutingConfigError(field, value, 'must be an array of header names');
  return value.map((name) => {
    if (typeof name !== 'string' || !headerName.test(name)) {
      throw new RoutingConfigError(field, value, `must hold legal header names, ${show(name)} is none`);
    }
    return name.toLowerCase();
  });
}

function checkedStatusCodes(field: string, value: unknown): readonly number[] {
  const fits = Array.isArray(value) && value.every((code) => Number.isInteger(code) && code >= 100 && code <= 599);
  if (!fits) throw new RoutingConfigError(field, value, 'must be an array of HTTP status codes, 100–599');
  return [...value];
}

function unknownOption(field: string, name: string, value: unknown, known: readonly string[]): RoutingConfigError {
  const nearest = nearestName(name, known);
  return new RoutingConfigError(
    field,
    value,
    nearest === undefined ? 'is not an option' : `is not an option (${nearest} is)`,
  );
}

/** The known name within a third of its length in edits, or undefined. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let best = Infinity;
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest !== undefined && best <= Math.max(2, nearest.length / 3) ? nearest : undefined;
}

function editDistance(a: string, b: string): number {
  // Option names are short; anything longer is no typing mistake and not worth comparing.
  if (a.length > 64) return Infinity;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
