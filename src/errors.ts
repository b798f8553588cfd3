/**
 * Errors. Each carries a stable `code` and a brand registered under a global symbol, so that `instanceof` holds across
 * the ESM and the CommonJS build of the package (LB-60).
 */

const brand: unique symbol = Symbol.for('kvroute.error') as never;

/** Base of every error the package throws on purpose, plain `TypeError`s for hostile request data aside (LB-42). */
export class KvRouteError extends Error {
  override readonly name: string = 'KvRouteError';
  /** Stable, machine-readable: compare this, not the message. */
  readonly code: string;
  readonly [brand]: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
    this[brand] = new.target.name;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    const name = (value as { [brand]?: string } | null | undefined)?.[brand];
    // The base accepts every branded error, a subclass those of its own name.
    return name !== undefined && (Object.hasOwn(this, 'isBase') || name === this.name);
  }

  /** Marks the base class for `instanceof`. @internal */
  static readonly isBase = true;
}
