/**
 * Checks given options against a table and fills in the defaults (LB-40, CF-1). An unknown name, a wrong type, a value
 * out of range, NaN or an unwanted infinity throws a `RoutingConfigError` that gives field, value and reason; nothing
 * is replaced silently. `undefined` means the default, 0 means 0 (B56).
 */
import { RoutingConfigError } from '../errors.js';
import type { NumberSpec, OptionSpec, OptionTable, Resolved } from './spec.js';

/**
 * @param path prefix of the field names in errors: '' at the top, 'policy.' in a section
 * @throws RoutingConfigError
 */
export function resolveOptions<T extends OptionTable>(table: T, given: unknown, path = ''): Resolved<T> {
  if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given))) {
    throw new RoutingConfigError(path.slice(0, -1) || 'options', given, 'must be an object');
  }
  const values = (given ?? {}) as Readonly<Record<string, unknown>>;
  const known = Object.keys(table);
  for (const name of Object.keys(values)) {
    if (known.includes(name)) continue;
    const nearest = nearestName(name, known);
    const hint = nearest === undefined ? '' : ` (${nearest} is)`;
    throw new RoutingConfigError(path + name, values[name], `is not an option${hint}`);
  }
  const resolved: Record<string, unknown> = {};
  for (const name of known) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    resolved[name] = resolveOption(table[name] as OptionSpec, path + name, value);
  }
  return resolved as Resolved<T>;
}

function resolveOption(spec: OptionSpec, field: string, value: unknown): unknown {
  if (spec.kind === 'section') return resolveOptions(spec.options, value, `${field}.`);
  if (value === undefined) return 'default' in spec ? spec.default : undefined;
  const wrong = (reason: string): Error => new RoutingConfigError(field, value, reason);
  if (value === null) throw wrong('must not be null; leave it out for the default');
  if ('read' in spec) return spec.read(value, wrong);
  switch (spec.kind) {
    case 'boolean':
      if (typeof value !== 'boolean') throw wrong('must be true or false');
      break;
    case 'choice':
      if (!spec.values.includes(value as string)) throw wrong(`must be one of ${spec.values.join(', ')}`);
      break;
    case 'number':
    case 'integer':
      if (!isWithin(spec, value)) throw wrong(`must be ${rangeText(spec)}`);
  }
  return value;
}

function isWithin(
  { kind, min = -Infinity, max = Infinity, above = -Infinity, infinite }: NumberSpec,
  value: unknown,
): boolean {
  if (value === Infinity) return infinite === true;
  const isNumber = kind === 'integer' ? Number.isInteger(value) : Number.isFinite(value);
  return isNumber && (value as number) >= min && (value as number) <= max && (value as number) > above;
}

/** The accepted range in words. */
function rangeText({ kind, min, max, above, infinite, unit }: NumberSpec): string {
  const noun = kind === 'integer' ? 'an integer' : 'a finite number';
  const low = above === undefined ? ` ≥ ${min}` : ` above ${above}`;
  const high = max === undefined ? '' : ` and ≤ ${max}`;
  return noun + low + high + (infinite ? ' or Infinity' : '') + (unit === undefined ? '' : ` (${unit})`);
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
  const row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 0; i < a.length; i++) {
    let diagonal = i;
    row[0] = i + 1;
    for (let j = 0; j < b.length; j++) {
      const above = row[j + 1] as number;
      const change = diagonal + (a[i] === b[j] ? 0 : 1);
      row[j + 1] = Math.min(change, above + 1, (row[j] as number) + 1);
      diagonal = above;
    }
  }
  return row[b.length] as number;
}
