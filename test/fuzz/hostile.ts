/**
 * Hostile values by name. Arbitraries hold names instead of values, so that a counterexample can be read and replayed;
 * `made` turns a description into what is passed on, every value new.
 */
import { fc } from '../support/property.js';

/** What hostile values throw: a host's own error, told from any of ours. */
export class OwnError extends Error {}

const fail = (): never => {
  throw new OwnError('a getter of the host failed');
};

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** A circle of objects. */
function circle(): object {
  const loop: Record<string, unknown> = {};
  loop.self = loop;
  loop.cause = loop;
  loop.ranks = [loop];
  return loop;
}

const answers: readonly unknown[] = ['text', 7, undefined, null, [1], {}, Number.NaN, '__proto__'];

/** Answers every question, each time with another type. */
function flippingObject(): object {
  let turn = 0;
  return new Proxy({}, { get: (_, key) => (typeof key === 'symbol' ? undefined : answers[turn++ % answers.length]) });
}

/** A list that holds something else each time one looks. */
function flippingList(): readonly unknown[] {
  let turn = 0;
  return new Proxy(['w1', 'w2'], {
    get: (list, key) => (/^[01]$/.test(String(key)) ? answers[turn++ % answers.length] : Reflect.get(list, key)),
  });
}

const failingNames = ['text', 'id', 'url', 'tokens', 'headers', 'ranks', 'status', 'name', 'signal', 'type', 'version'];

const builders: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  true: () => true,
  zero: () => 0,
  negativeZero: () => -0,
  one: () => 1,
  minusOne: () => -1,
  half: () => 0.5,
  nan: () => Number.NaN,
  infinity: () => Infinity,
  negativeInfinity: () => -Infinity,
  beyondSafe: () => 2 ** 53,
  uint32Overflow: () => 2 ** 32,
  enormous: () => 1e308,
  smallest: () => Number.MIN_VALUE,
  bigint: () => 7n,
  negativeBigint: () => -1n,
  hugeBigint: () => 2n ** 70n,
  symbol: () => Symbol('hostile'),
  iterator: () => Symbol.iterator,
  emptyText: () => '',
  blank: () => ' \t',
  proto: () => '__proto__',
  constructorName: () => 'constructor',
  toStringName: () => 'toString',
  loneSurrogate: () => '\ud800',
  surrogatesReversed: () => '\ude00\ud83d',
  nul: () => '\u0000',
  newline: () => 'a\r\nb: c',
  numberText: () => '7',
  key128: () => 'k'.repeat(128),
  key129: () => 'k'.repeat(129),
  longText: () => 'x'.repeat(100_000),
  hugeText: () => 'x'.repeat(5_000_000),
  hugeHint: () => '9,'.repeat(3000),
  badHint: () => '1,,2',
  htmlText: () => '<html></html>',
  jsonText: () => '{"loads":[{"token_usage":-1}]}',
  brokenJson: () => '{"loads":',
  function: () => () => 7,
  failingFunction: () => fail,
  date: () => new Date(Number.NaN),
  regexp: () => /x/g,
  promise: () => Promise.resolve(7),
  thenable: () => Object.defineProperty({}, 'then', { value: (answer: (value: unknown) => void) => answer(7) }),
  emptyList: () => [],
  nestedList: () => [[[[]]]],
  sparse: () => new Array(5),
  enormousSparse: () => new Array(4_294_967_295),
  numbers: () => [1, 2, 3],
  badNumbers: () => [1.5, -1, Number.NaN],
  overflowNumbers: () => [2 ** 32],
  numberTexts: () => ['1', '2'],
  symbols: () => [Symbol('a')],
  bigints: () => [1n, 2n],
  mixed: () => [null, 3, {}, 'w1', undefined],
  frozenList: () => Object.freeze(['w1', 'w2']),
  emptyObject: () => ({}),
  nullPrototype: () => Object.create(null),
  frozenObject: () => Object.freeze({ id: 'w1', text: 'frozen', inFlight: 0 }),
  ownProto: () => JSON.parse('{"__proto__": {"id": "w9", "text": 5}, "constructor": 1, "toString": null}'),
  shadowed: () => ({ toString: null, valueOf: null, hasOwnProperty: 5, length: -1 }),
  manyKeys: () => Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`x-${i}`, 'v'])),
  symbolKeys: () => ({ [Symbol('key')]: 1, [Symbol.iterator]: 5 }),
  map: () => new Map(),
  oddMap: () =>
    new Map<unknown, unknown>([
      [Symbol('key'), 'v'],
      [{}, 1],
      [Object.create(null), 2],
      ['k', Symbol('v')],
    ]),
  set: () => new Set([1]),
  words: () => Uint32Array.of(1, 2, 3),
  bytes: () => new Uint8Array(3),
  malformedUtf8: () => Uint8Array.of(0xff, 0xfe, 0xc0, 0x80),
  eightBytes: () => new Uint8Array(8).fill(255),
  floats: () => Float64Array.of(0.5),
  buffer: () => new ArrayBuffer(8),
  dataView: () => new DataView(new ArrayBuffer(8)),
  error: () => Object.assign(new Error('x'), { code: 14, status: 'teapot' }),
  circle,
  revoked,
  failingProxy: () => new Proxy({}, { get: fail, has: fail, ownKeys: fail, getOwnPropertyDescriptor: fail }),
  failingList: () => new Proxy([1, 2, 3], { get: (target, key) => (key === 'length' ? target.length : fail()) }),
  failingLength: () => new Proxy([], { get: fail }),
  flippingObject,
  flippingList,
  failingIterable: () => ({ [Symbol.iterator]: fail }),
  failingSignal: () => ({ aborted: false, addEventListener: fail, removeEventListener: () => {} }),
  budget: () => {
    let looks = 2;
    return { spent: () => looks-- <= 0 };
  },
  generator: () =>
    (function* () {
      yield ['w1', { waitingRequests: 1 }];
      fail();
    })(),
  ...Object.fromEntries(
    failingNames.map((name) => [
      `failing:${name}`,
      () => Object.defineProperty({}, name, { get: fail, enumerable: true }),
    ]),
  ),
};

/** One call: the method and its arguments, hostile values by name. */
export type Call = readonly [method: string, ...args: unknown[]];

/** A hostile value, by its name. */
export interface Hostile {
  readonly $: string;
}

/** Values that take long wherever all of them is looked at, and one that fails only when a lease has begun. */
const special: readonly string[] = ['hugeText', 'enormousSparse', 'failingSignal', 'budget'];

/** The names of all but the special ones, which are asked for by name. */
export const hostileNames: readonly string[] = Object.keys(builders).filter((name) => !special.includes(name));

/** Any of them. */
export const hostile: fc.Arbitrary<Hostile> = fc.constantFrom(...hostileNames).map((name) => ({ $: name }));

/** Mostly a sound value. */
export function mostly<T>(sound: fc.Arbitrary<T>, weight = 14): fc.Arbitrary<T | Hostile> {
  return fc.oneof({ weight, arbitrary: sound }, { weight: 1, arbitrary: hostile });
}

/** A record of any of the fields, each mostly sound, at times with a field nobody knows; or no record at all. */
export function hostileRecord(fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<unknown> {
  const known = Object.fromEntries(Object.entries(fields).map(([name, sound]) => [name, mostly(sound)]));
  const odd = fc.constantFrom('__proto__', 'constructor', 'unknownField', 'TEXT');
  return fc.oneof(
    { weight: 30, arbitrary: fc.record(known, { requiredKeys: [] }) },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.record(known, { requiredKeys: [] }), odd, hostile).map(([record, name, value]) => {
        return Object.defineProperty({ ...record }, name, { value, enumerable: true });
      }),
    },
    { weight: 1, arbitrary: hostile },
  );
}

/** Objects of a class are no descriptions: they are passed on as they are. */
function isPlain(description: unknown): description is object {
  if (typeof description !== 'object' || description === null) return false;
  const prototype: unknown = Object.getPrototypeOf(description);
  return prototype === Object.prototype || prototype === null;
}

/** The value a description stands for. */
export function made(description: unknown): unknown {
  if (Array.isArray(description)) return description.map(made);
  if (!isPlain(description)) return description;
  const { $: name } = description as { readonly $?: unknown };
  if (typeof name === 'string' && Object.hasOwn(builders, name)) return (builders[name] as () => unknown)();
  const value = {};
  for (const [key, part] of Object.entries(description)) {
    Object.defineProperty(value, key, { value: made(part), enumerable: true, configurable: true, writable: true });
  }
  return value;
}
