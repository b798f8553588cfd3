/**
 * Translates an SMG command line into options of ours (CF-2): `createRouter(fromFlags(argv).router)` routes like the
 * gateway that was started with it.
 *
 * Pure. Unknown flags are listed, never guessed and never an error, since most flags of a gateway do not concern
 * routing; a flag of ours whose value cannot be read is one. Ranges are checked where options always are.
 */
import { RoutingConfigError } from '../errors.js';
import type { Resolved } from '../options/spec.js';
import { resolveOptions } from '../options/validate.js';
import type { RouterOptions } from '../router-options.js';
import type { WorkerKind, WorkerSpec } from '../workers/worker-spec.js';
import { type Flag, flagAliases, flagTable, hostTable } from './flag-table.js';

/** The value of a flag in a parsed command line or a configuration file. */
export type FlagValue = string | number | boolean | readonly (string | number)[] | null | undefined;

/** Settings of the gateway that the host applies itself, defaults filled in. */
export type HostSettings = Resolved<typeof hostTable>;

/** What a command line says. */
export interface TranslatedFlags {
  /** For `createRouter`, which checks it. */
  readonly router: RouterOptions;
  readonly host: HostSettings;
  /** Workers named on the command line, for `addWorker`: `--worker-urls`, `--prefill`, `--decode`, `--encode`. */
  readonly workers: readonly WorkerSpec[];
  /** Flags that are not about routing, or misspelt, and words that belong to no flag; as given. */
  readonly unknown: readonly string[];
  /** Flags that tune a policy which was not chosen: without effect, as in the gateway (LM-22). */
  readonly unused: readonly string[];
}

/** Flags that name workers, and the kind of those. `--encode` makes a pair an encode/prefill/decode deployment. */
const workerFlags: { readonly [flag: string]: WorkerKind } = {
  'worker-urls': 'regular',
  prefill: 'prefill',
  decode: 'decode',
  encode: 'encode',
};

const policyOptionNames = ['policy', 'prefillPolicy', 'decodePolicy', 'encodePolicy'] as const;

type Values = (string | number | boolean)[];

/**
 * Reads the command line of an SMG gateway, or its flags as an object, into options (CF-2).
 *
 * @param flags the arguments after the program's name (words before the first flag, such as a subcommand, are skipped),
 * or flags by name. Names may be written as flags, with underscores, in camel case, or with the launcher's `router-`
 * in front. Lists may be given by commas, repetition or as arrays.
 * @throws RoutingConfigError when a value cannot be read; the field is the flag
 */
export function fromFlags(flags: readonly string[] | Readonly<Record<string, FlagValue>>): TranslatedFlags {
  if (typeof flags !== 'object' || flags === null) {
    throw new RoutingConfigError('flags', flags, 'must be an array of words or an object of flags');
  }
  const unknown: string[] = [];
  const given = Array.isArray(flags)
    ? parseArguments(flags as readonly string[], unknown)
    : parseRecord(flags as Readonly<Record<string, FlagValue>>, unknown);
  const router: Record<string, unknown> & { mode?: unknown } = {};
  const host: Record<string, unknown> = {};
  const tunables: { readonly flag: string; readonly rule: Flag; readonly value: unknown }[] = [];
  for (const [flag, rule] of Object.entries(flagTable)) {
    const values = given.get(flag);
    if (values === undefined) continue;
    const value = readValue(flag, rule, values);
    if (value === undefined) continue;
    if (rule.policies !== undefined) tunables.push({ flag, rule, value });
    else if (rule.section === 'host') host[rule.option] = value;
    else if (rule.section === undefined) router[rule.option] = value;
    else router[rule.section] = { ...(router[rule.section] as object | undefined), [rule.option]: value };
  }
  const workers = Object.entries(workerFlags).flatMap(([flag, kind]) => readWorkers(flag, kind, given.get(flag) ?? []));
  if (router.mode === 'pd' && workers.some((worker) => worker.kind === 'encode')) router.mode = 'epd';

  const used = new Set<string>();
  for (const option of policyOptionNames) {
    const name = router[option] ?? (option === 'policy' ? 'cache_aware' : undefined);
    const own = tunables.filter(({ rule }) => rule.policies?.some((policy) => policy === name));
    if (own.length === 0) continue;
    for (const { flag } of own) used.add(flag);
    router[option] = { name, ...Object.fromEntries(own.map(({ rule, value }) => [rule.option, value])) };
  }
  return {
    router: router as RouterOptions,
    host: resolveOptions(hostTable, host, 'host.'),
    workers,
    unknown,
    unused: tunables.filter(({ flag }) => !used.has(flag)).map(({ flag }) => `--${flag}`),
  };
}

/** The canonical name of a flag however it is spelt, or undefined when it is none of ours. */
function canonicalName(spelling: string): string | undefined {
  const name = spelling
    .replace(/^--/, '')
    .replaceAll('_', '-')
    .replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  for (const candidate of [name, name.replace(/^router-/, '')]) {
    const known = Object.hasOwn(flagAliases, candidate) ? (flagAliases[candidate] as string) : candidate;
    if (Object.hasOwn(flagTable, known) || Object.hasOwn(workerFlags, known)) return known;
  }
  return undefined;
}

function parseArguments(argv: readonly string[], unknown: string[]): Map<string, Values> {
  const given = new Map<string, Values>();
  for (const [i, word] of argv.entries()) {
    if (typeof word !== 'string') throw new RoutingConfigError(`flags[${i}]`, word, 'must be a string');
  }
  const isFlag = (word: string): boolean => word.startsWith('--');
  let i = argv.findIndex(isFlag);
  while (i >= 0 && i < argv.length) {
    const word = argv[i++] as string;
    if (!isFlag(word)) {
      unknown.push(word);
      continue;
    }
    const equals = word.indexOf('=');
    const spelling = equals < 0 ? word : word.slice(0, equals);
    const name = canonicalName(spelling);
    let wanted = name === undefined ? Infinity : valueCount(name);
    const values: Values = [];
    if (equals >= 0) {
      values.push(word.slice(equals + 1));
      wanted = 0;
    }
    while (values.length < wanted && i < argv.length && !isFlag(argv[i] as string)) values.push(argv[i++] as string);
    if (name === undefined) unknown.push(spelling);
    else addValues(given, name, values);
  }
  return given;
}

/** How many words may follow a flag. */
function valueCount(name: string): number {
  const rule = flagTable[name];
  if (rule === undefined || rule.as === 'texts' || rule.as === 'numbers') return Infinity;
  return rule.as === 'switch' ? 0 : 1;
}

function parseRecord(flags: Readonly<Record<string, FlagValue>>, unknown: string[]): Map<string, Values> {
  const given = new Map<string, Values>();
  for (const [spelling, value] of Object.entries(flags)) {
    if (value === undefined || value === null) continue;
    const name = canonicalName(spelling);
    if (name === undefined) {
      unknown.push(spelling);
      continue;
    }
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    for (const item of values) {
      if (!['string', 'number', 'boolean'].includes(typeof item)) {
        throw new RoutingConfigError(`--${name}`, item, 'must be text, a number, true or false');
      }
    }
    addValues(given, name, values as Values);
  }
  return given;
}

function addValues(given: Map<string, Values>, name: string, values: Values): void {
  given.set(name, [...(given.get(name) ?? []), ...values]);
}

/** The value of a flag; of a repeated one that takes a single value the last counts. Undefined = as if not given. */
function readValue(flag: string, rule: Flag, values: Values): unknown {
  const last = values.at(-1);
  switch (rule.as) {
    case 'switch': {
      const on = last === undefined || readSwitch(flag, last);
      return rule.sets === undefined ? on : on ? rule.sets : undefined;
    }
    case 'texts':
      return listed(values);
    case 'numbers':
      return listed(values).map((item) => readNumber(flag, item));
    case 'seconds':
      return readNumber(flag, last) * 1000;
    case 'number':
      return readNumber(flag, last);
    case 'text':
      if (typeof last !== 'string' || last === '') throw new RoutingConfigError(`--${flag}`, last, 'needs a value');
      return last;
  }
}

function listed(values: Values): string[] {
  return values.flatMap((value) => String(value).split(',')).filter((item) => item !== '');
}

function readSwitch(flag: string, value: string | number | boolean): boolean {
  if (value === true || value === 'true') return true;
  if (value === false || value === 'false') return false;
  throw new RoutingConfigError(`--${flag}`, value, 'must be true or false');
}

// Decimal only: Number() would also read '', ' ' and '0x10'.
const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

function readNumber(flag: string, value: string | number | boolean | undefined): number {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || !decimal.test(value)) {
    throw new RoutingConfigError(`--${flag}`, value, 'must be a number');
  }
  return Number(value);
}

/** URLs, each optionally followed by its bootstrap port or the word `none`. */
function readWorkers(flag: string, kind: WorkerKind, values: Values): WorkerSpec[] {
  const workers: { url: string; kind: WorkerKind; bootstrapPort?: number }[] = [];
  for (const word of values.flatMap((value) => String(value).split(/[\s,]+/)).filter((part) => part !== '')) {
    const previous = workers.at(-1);
    if (/^\d+$/.test(word)) {
      if (previous === undefined) throw new RoutingConfigError(`--${flag}`, word, 'must start with a URL');
      previous.bootstrapPort = Number(word);
    } else if (word !== 'none') workers.push({ url: word, kind });
  }
  return workers;
}
