/** The properties: each makes calls with hostile values and checks what may have become of them. */
import { deepStrictEqual } from 'node:assert/strict';
import { type Candidate, createRouter, type RouterOptions } from 'kvroute';
import { manualClock } from 'kvroute/testing';
import { fc } from '../support/property.js';
import { coreFunctions } from './core-functions.js';
import { engineFunctions } from './engine-functions.js';
import type { FuzzedFunction } from './fuzzed-function.js';
import { type Call, made, mostly } from './hostile.js';
import { isOwn, judge, judgeLater, Tally } from './judge.js';
import { soundRouterOptions } from './options.js';
import { anyCall } from './router-calls.js';
import { RouterGame } from './router-game.js';
import { RouterModel } from './router-model.js';
import { type Subject, subjects } from './subjects.js';
import { toolFunctions } from './tool-functions.js';

/** The exported functions of all entry points. */
export const functions: readonly FuzzedFunction[] = [...coreFunctions, ...engineFunctions, ...toolFunctions];

/** One property. `run` throws what fast-check found, with the seed and the calls that lead there. */
export interface FuzzProperty {
  readonly name: string;
  run(numRuns: number, seed: number): Promise<Tally>;
}

/** @param share runs it has beside the others: 1 = as many as asked for */
function property<T>(
  name: string,
  share: number,
  arbitrary: fc.Arbitrary<T>,
  check: (input: T, tally: Tally) => Promise<void> | void,
): FuzzProperty {
  return {
    name,
    async run(runs, seed) {
      const tally = new Tally();
      const numRuns = Math.max(1, Math.round(runs * share));
      await fc.assert(
        fc.asyncProperty(arbitrary, async (input) => check(input, tally)),
        { numRuns, seed },
      );
      return tally;
    },
  };
}

async function playRouter([options, calls]: readonly [RouterOptions, readonly Call[]], tally: Tally): Promise<void> {
  const clock = manualClock(1000);
  const router = await createRouter({ ...options, clock: clock.clock });
  const game = new RouterGame(router, clock, new RouterModel(router), tally);
  for (const call of calls) await game.play(call);
}

/** Two of a kind: one takes all calls, the other those alone that the first one accepted. They stay equal. */
function playTwins(subject: Subject, options: unknown, calls: readonly Call[], tally: Tally): void {
  const make = (): unknown => subject.make(made(options) as never);
  const attacked = judge(subject.name, make, tally);
  if (attacked.refused) return;
  const spared = make();
  const stateOf = subject.state as (object: unknown) => unknown;
  for (const call of calls) {
    const before = stateOf(attacked.result);
    const verdict = judge(subject.name, () => invoke(attacked.result, call), tally);
    if (verdict.refused) deepStrictEqual(stateOf(attacked.result), before, `a refused ${call[0]} changed something`);
    else deepStrictEqual(plain(verdict.result), plain(invoke(spared, call)), `${call[0]} after a refused call`);
    deepStrictEqual(stateOf(attacked.result), stateOf(spared));
  }
}

/** Calls a method; what it lists piece by piece is listed. */
function invoke(object: unknown, [method, ...args]: Call): unknown {
  const result: unknown = Reflect.apply(Reflect.get(object as object, method), object, args.map(made));
  const { next } = (result ?? {}) as Partial<Iterator<unknown>>;
  return typeof next === 'function' ? [...(result as Iterable<unknown>)] : result;
}

/** A comparable copy: without methods, and with ids in place of the caller's own literals, which may fail when read. */
function plain(value: unknown): unknown {
  const known = (key: string, part: unknown): unknown =>
    key === 'worker' && typeof part === 'object' ? (part as Candidate).id : part;
  return JSON.parse(
    JSON.stringify(value, (key, part) => (typeof part === 'bigint' ? `${part}n` : known(key, part))) ?? '0',
  );
}

/** Calls a function with what the descriptions stand for. @throws unless it refuses by name or gives a result of its own */
export async function callFunction(
  { name, call, refusesNothing = false, check }: FuzzedFunction,
  given: readonly unknown[],
  tally: Tally,
): Promise<void> {
  const invoked = async (): Promise<unknown> => Reflect.apply(call, undefined, given.map(made));
  const verdict = await judgeLater(name, invoked, tally);
  if (!verdict.refused) check?.(verdict.result as never);
  else if (refusesNothing && !isOwn(verdict.error)) throw verdict.error;
}

export const properties: readonly FuzzProperty[] = [
  property(
    'LB-42: a router is what the calls it accepted made of it, and no other call leaves a trace',
    1,
    fc.tuple(soundRouterOptions, fc.array(anyCall, { maxLength: 60 })),
    playRouter,
  ),
  ...subjects.map((subject) =>
    property(
      `LB-42: ${subject.name} is what the calls it accepted made of it`,
      0.3,
      fc.tuple(subject.options, fc.array(subject.calls, { maxLength: 40 })),
      ([options, calls], tally) => playTwins(subject, options, calls, tally),
    ),
  ),
  ...functions.map((fuzzed) => {
    const { args, trusted = [] } = fuzzed;
    return property(
      `LB-42: ${fuzzed.name} refuses by name or gives a result`,
      2,
      fc.tuple(...args.map((sound, at) => (trusted.includes(at) ? sound : mostly(sound, 4)))),
      (given, tally) => callFunction(fuzzed, given, tally),
    );
  }),
];
