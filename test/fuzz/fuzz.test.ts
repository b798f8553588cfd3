/** A short run of the fuzz program; `npm run fuzz` runs it for as long as asked. */

import * as core from 'kvroute';
import * as engines from 'kvroute/engines';
import * as metrics from 'kvroute/metrics';
import * as testing from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { fc } from '../support/property.js';
import { hostileNames, made } from './hostile.js';
import { judge, Tally } from './judge.js';
import { callFunction, functions, properties } from './properties.js';
import { subjects } from './subjects.js';

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

const policySubjects = subjects.filter(({ make }) => make.length === 0 && 'selectWorker' in make(undefined as never));
const requestFields = ['model', 'leg', 'text', 'tokens', 'headers', 'rid', 'routingKey', 'namespace', 'exclude'];
const candidateFields = ['id', 'inFlight', 'report', 'activeKeys', 'keysInFlight'];

const tally = new Tally();

describe('LB-42: hostile values', () => {
  it.each(functions)('$name: every hostile value in the place of every argument', async (fuzzed) => {
    const sound = fuzzed.args.map((arg) => fc.sample(arg, { seed: 1, numRuns: 1 })[0]);
    for (const at of sound.keys()) {
      if (fuzzed.trusted?.includes(at)) continue;
      for (const $ of hostileNames) await callFunction(fuzzed, sound.with(at, { $ }), tally);
    }
  });

  it.each(policySubjects)('$name: every hostile value in every field of a request and of a candidate', (subject) => {
    const policy = subject.make(undefined as never) as core.StandalonePolicy;
    const sound = { id: 'w1', inFlight: 0 };
    const select = (request: object, candidate: object): unknown =>
      judge(subject.name, () => policy.selectWorker(made(request) as never, [made(candidate)] as never), tally);
    for (const $ of hostileNames) {
      for (const field of requestFields) select({ [field]: { $ } }, sound);
      for (const field of candidateFields) select({}, { ...sound, [field]: { $ } });
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
