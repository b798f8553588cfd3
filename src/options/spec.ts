/**
 * How an option is described. One table (`table.ts`) is made of these; validation, the option types and the option
 * tables of the documentation all come from it (LB-40). An entry's doc comment is its documentation.
 */

/** A number: `min`/`max` are inclusive, `above` is an exclusive lower bound. `Infinity` only where `infinite` says so. */
export interface NumberSpec {
  readonly kind: 'number' | 'integer';
  readonly default?: number;
  readonly min?: number;
  readonly max?: number;
  readonly above?: number;
  readonly infinite?: true;
  readonly unit?:
    | 'ms'
    | 's'
    | 'tokens'
    | 'tokens/s'
    | 'requests'
    | 'attempts'
    | 'probes'
    | 'ratio'
    | 'entries'
    | 'units';
  /** The statement that defines it. */
  readonly id: string;
}

export interface BooleanSpec {
  readonly kind: 'boolean';
  readonly default: boolean;
  readonly id: string;
}

export interface ChoiceSpec {
  readonly kind: 'choice';
  readonly values: readonly string[];
  readonly default?: string;
  readonly id: string;
}

/**
 * Reads a list, or throws `wrong(reason)`. A list brings its reader along, so that a bundle with the options of one
 * policy carries no reader they do not use (LB-62).
 */
export type ListReader<T> = (value: unknown, wrong: (reason: string) => Error) => readonly T[];

/** Positive integers in strictly ascending order. */
export interface AscendingSpec {
  readonly kind: 'ascending';
  readonly read: ListReader<number>;
  readonly default: readonly number[];
  readonly unit: 'tokens';
  readonly id: string;
}

/** Legal HTTP header names, lower-cased on resolution; order counts. */
export interface HeaderNamesSpec {
  readonly kind: 'headerNames';
  readonly read: ListReader<string>;
  readonly default: readonly string[];
  readonly id: string;
}

/** HTTP status codes, 100–599; an empty list is allowed. */
export interface StatusCodesSpec {
  readonly kind: 'statusCodes';
  readonly read: ListReader<number>;
  readonly default?: readonly number[];
  readonly id: string;
}

/** Options of their own under one name. */
export interface SectionSpec {
  readonly kind: 'section';
  readonly options: OptionTable;
  readonly id: string;
}

/** Checked by hand where it is used: functions, policies. Any value but `null` passes the table. */
export interface OpaqueSpec {
  readonly kind: 'opaque';
  readonly id: string;
}

export type OptionSpec =
  | NumberSpec
  | BooleanSpec
  | ChoiceSpec
  | AscendingSpec
  | HeaderNamesSpec
  | StatusCodesSpec
  | SectionSpec
  | OpaqueSpec;

export interface OptionTable {
  readonly [name: string]: OptionSpec;
}

/** The type of an option's value, from its description. */
export type ValueOf<S> = S extends { readonly kind: 'number' | 'integer' }
  ? number
  : S extends { readonly kind: 'boolean' }
    ? boolean
    : S extends { readonly kind: 'choice'; readonly values: readonly (infer V)[] }
      ? V
      : S extends { readonly kind: 'ascending' | 'statusCodes' }
        ? readonly number[]
        : S extends { readonly kind: 'headerNames' }
          ? readonly string[]
          : S extends { readonly kind: 'section'; readonly options: infer O }
            ? OptionsOf<O>
            : unknown;

/** The options a user may give: every one is optional, `undefined` means the default. */
export type OptionsOf<T> = { readonly [K in keyof T]?: ValueOf<T[K]> | undefined };

/** The options after validation: defaults filled in; those without a default may be undefined. */
export type Resolved<T> = {
  readonly [K in keyof T]: T[K] extends { readonly kind: 'section'; readonly options: infer O }
    ? Resolved<O>
    : T[K] extends { readonly default: unknown }
      ? ValueOf<T[K]>
      : ValueOf<T[K]> | undefined;
};
