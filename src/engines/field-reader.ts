/**
 * Checked reading of numeric fields (LR-11a). The first field that is not what it must be is remembered in `problem`,
 * so a reader states the fields it wants and asks once at the end whether the entry was sound.
 */
import { show } from '../errors.js';
import type { JsonRecord } from './payload.js';

/** `count`: an integer ≥ 0 that a double holds exactly. `amount`: a finite number ≥ 0. */
export type NumberKind = 'count' | 'amount';

export class FieldReader {
  /** What is wrong with the first bad field; undefined while all are sound. */
  problem: string | undefined;
  readonly #scopes: readonly JsonRecord[];
  readonly #path: string;

  /** Fields are looked up in `scopes` in order: the first that has the name wins (LR-14). */
  constructor(path: string, ...scopes: readonly JsonRecord[]) {
    this.#path = path;
    this.#scopes = scopes;
  }

  /** The raw value; undefined when no scope has the field. */
  value(name: string): unknown {
    for (const scope of this.#scopes) if (Object.hasOwn(scope, name)) return scope[name];
    return undefined;
  }

  /** A number of the given kind; undefined when absent or refused. */
  number(name: string, kind: NumberKind): number | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    const sound = kind === 'count' ? Number.isSafeInteger(value) : Number.isFinite(value);
    if (sound && (value as number) >= 0) return value as number;
    this.#refuse(name, kind === 'count' ? 'an integer ≥ 0' : 'a finite number ≥ 0', value);
    return undefined;
  }

  /** As `number`, for fields that an engine may send as null for "not told" (the optional ones of LR-1 and LR-2). */
  optionalNumber(name: string, kind: NumberKind): number | undefined {
    return this.value(name) === null ? undefined : this.number(name, kind);
  }

  /** A string; null counts as absent. */
  optionalString(name: string): string | undefined {
    const value = this.value(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value === 'string') return value;
    this.#refuse(name, 'a string', value);
    return undefined;
  }

  #refuse(name: string, expected: string, value: unknown): void {
    this.problem ??= `${this.#path}${name}: expected ${expected}, got ${show(value)}`;
  }
}
