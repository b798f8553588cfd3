/**
 * Tools for testing routing decisions: time and chance under control, plain workers, matchers, and the contract that every
 * policy has to pass. Independent of any test framework.
 *
 * @packageDocumentation
 */
export type { RandomSource } from '../runtime/random.js';
export { seededRandom } from '../runtime/random.js';
export type { DecisionRecorder } from './decision-recorder.js';
export { recordDecisions } from './decision-recorder.js';
export type { Distribution, DistributionOptions } from './distribution.js';
export { distribution } from './distribution.js';
export { fakeCandidate, fakeFleet, fakeReport, fakeWorker } from './fakes.js';
export type { ManualClock } from './manual-clock.js';
export { manualClock } from './manual-clock.js';
export type { KvrouteMatchers, MatcherResult } from './matchers.js';
export { kvrouteMatchers } from './matchers.js';
export type { ContractCase, ContractRuntime, PolicyCapabilities } from './policy-contract.js';
export { policyContract } from './policy-contract.js';
export type { ScriptedRandom } from './scripted-random.js';
export { scriptedRandom } from './scripted-random.js';
