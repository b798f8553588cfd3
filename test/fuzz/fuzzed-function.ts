/** What a function under test is, and arguments that many of them take. */
import { fc } from '../support/property.js';
import { mostly } from './hostile.js';
import { id } from './inputs.js';

/** A function under test. */
export interface FuzzedFunction {
  /** The entry point and the export. */
  readonly name: string;
  readonly call: (...args: never[]) => unknown;
  /** What each argument is mostly; any of them may be hostile. */
  readonly args: readonly fc.Arbitrary<unknown>[];
  /** Positions of arguments that only the library makes: they are always sound. */
  readonly trusted?: readonly number[];
  /** Data of clients and engines: refuses nothing, whatever it is given. */
  readonly refusesNothing?: boolean;
  /** Looks at a result. @throws when it is none of the function's */
  readonly check?: (result: never) => void;
}

export const count = fc.constantFrom(0, 1, 3, 100);
/** Work is proportional to them: what is asked for is done, so that enormous ones would be waited for. */
export const sizes = fc.oneof(
  count,
  fc.constantFrom('minusOne', 'half', 'nan', 'bigint', 'symbol', 'null', 'numbers', 'revoked').map(($) => ({ $ })),
);
export const names = fc.array(mostly(id), { maxLength: 3 });
export const bytes = fc.uint8Array({ maxLength: 64 });
export const number = fc.oneof(fc.nat(9), fc.double());
