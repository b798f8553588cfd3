/** A short run of the fuzz program; `npm run fuzz` runs it for as long as asked. */
import fc from 'fast-check';
import * as core from 'kvroute';
import * as engines from 'kvroute/engines';
import * as metrics from 'kvroute/metrics';
import * as testing from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { hostileNames } from './hostile.js';
import { Tally } from './judge.js';
import { callFunction, functions, properties } from './properties.js';

/** Exports that nothing calls here, and why. */
const notCalled: ReadonlyMap<string, string> = new Map([
  ['kvroute: neverQualified', 'a constant'],
  ['kvroute/engines: unknownLoadRoutes', 'a constant'],
  ['kvroute/metrics: metricTable', 'a constant'],
  ['kvroute/testing: seededRandom', 'the one of kvroute'],
]);

const modules = {
  kvroute: core,
  'kvroute/engines': engines,
  'kvroute/metrics': metrics,
  'kvroute/testing': testing,
};
const exported = Object.entries(modules).flatMap(([entry, module]) =>
  Object.keys(module).map((name) => `${entry}: ${name}`),
);

const tally = new Tally();

describe('LB-42: hostile values', () => {
  it.each(functions)('$name: every hostile value in the place of every argument', async (fuzzed) => {
    const sound = fuzzed.args.map((arg) => fc.sample(arg, { seed: 1, numRuns: 1 })[0]);
    for (const at of sound.keys()) {
      if (fuzzed.trusted?.includes(at)) continue;
      for (const $ of hostileNames) await callFunction(fuzzed, sound.with(at, { $ }), tally);
    }
  });

  it.each(properties)('$name', async ({ run }) => {
    tally.add(await run(6, 1));
  });
});

describe('LB-42: the fuzz program', () => {
  it('calls every export of the four entry points', () => {
    const uncalled = exported.filter((name) => !tally.callsOf.has(name));
    expect(uncalled.toSorted()).toEqual([...notCalled.keys()].toSorted());
    for (const name of tally.callsOf.keys()) expect(exported).toContain(name);
  });

  it('calls with values that are refused and with values that are not', () => {
    expect(tally.refusals).toBeGreaterThan(2000);
    expect(tally.calls - tally.refusals).toBeGreaterThan(3000);
  });
});
