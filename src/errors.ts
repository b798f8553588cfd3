/**
 * Errors. Each carries a stable `code` and a brand registered under a global symbol, so that `instanceof` holds across
 * the ESM and the CommonJS build of the package (LB-60). Hostile request data is answered with a plain `TypeError`
 * that names the field (LB-42); the checks that every public call shares are at the end.
 */

const brandKey = Symbol.for('kvroute.error');

function brandsOf(value: unknown): readonly string[] {
  const brands = (value as Record<symbol, unknown> | null | undefined)?.[brandKey];
  return Array.isArray(brands) ? brands : [];
}

/** Base of every error class of the package. */
export class KvRouteError extends Error {
  /** Stable and machine-readable: compare this, not the message. */
  readonly code: string;

  /** @internal */
  constructor(code: string, message: string, brand: string) {
    super(message);
    this.name = brand;
    this.code = code;
    Object.defineProperty(this, brandKey, { value: ['KvRouteError', brand] });
  }

  /** Makes `instanceof` hold across the ESM and the CommonJS build (LB-60). */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return brandsOf(value).includes('KvRouteError');
  }
}

/**
 * An option or a worker spec that cannot be accepted (LB-40, CF-1). Thrown at construction, at registration and by
 * `reconfigure`, always before anything changed.
 */
export class RoutingConfigError extends KvRouteError {
  /** Dotted path of the option, for example `leastLoad.kvPressureWeight`. */
  readonly field: string;
  /** The refused value. */
  readonly value: unknown;
  /** What was expected instead. */
  readonly reason: string;

  constructor(field: string, value: unknown, reason: string) {
    super('KVROUTE_CONFIG', `${field}: ${reason}, got ${show(value)}`, 'RoutingConfigError');
    this.field = field;
    this.value = value;
    this.reason = reason;
  }

  /** Makes `instanceof` hold across the ESM and the CommonJS build (LB-60). */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return brandsOf(value).includes('RoutingConfigError');
  }
}

/** A snapshot that this version cannot restore (LB-33). The router stays as it was. */
export class SnapshotError extends KvRouteError {
  constructor(message: string) {
    super('KVROUTE_SNAPSHOT', message, 'SnapshotError');
  }

  /** Makes `instanceof` hold across the ESM and the CommonJS build (LB-60). */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return brandsOf(value).includes('SnapshotError');
  }
}

/** A short, safe rendering of any value for messages: never throws, never prints a whole object. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'symbol') return 'a symbol';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  return String(value);
}

/** What a call was given by name: its options, unless `field` says otherwise. @throws TypeError when it is no object */
export function checkObject<T>(value: T, field = 'options'): T {
  if (typeof value !== 'object' || value === null) throw refuse(field, 'an object', value);
  return value;
}

/** The list a call was given. @throws TypeError when it is none */
export function checkList<T>(list: readonly T[], field: string): readonly T[] {
  if (!Array.isArray(list)) throw refuse(field, 'an array', list);
  return list;
}

/** @throws TypeError when it is no number */
export function checkNumber(value: number, field: string): void {
  if (typeof value !== 'number') throw refuse(field, 'a number', value);
}

/** The error for request data of the wrong type (LB-42). */
export function refuse(field: string, expected: string, value: unknown): TypeError {
  return new TypeError(`${field}: expected ${expected}, got ${show(value)}`);
}
