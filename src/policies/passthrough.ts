/**
 * `passthrough`: the first candidate in registration order, whatever its load (PT-1). Meant for one worker: with more
 * it warns, once an instance, and goes on (PT-2). O(1).
 */
import { resolveOptions } from '../options/validate.js';
import type { CandidateSet } from '../workers/candidate-set.js';
import { Decision, noEvents, type Policy, type PolicyEvents, type PolicyNeeds } from './policy.js';
import { type RuntimeOptions, runtimeTable } from './runtime-options.js';
import { type StandalonePolicy, standalone } from './standalone.js';

/** The policy of one pool (PT-1). @param events where the one warning goes (PT-2) */
export function createPassthrough(events: PolicyEvents = noEvents): Policy {
  return new Passthrough(events);
}

/**
 * `passthrough` without a router: the first candidate of the list (PT-1).
 *
 * @throws RoutingConfigError for an unknown or invalid option
 */
export function passthrough(options?: RuntimeOptions): StandalonePolicy {
  return standalone(createPassthrough(), resolveOptions(runtimeTable, options));
}

class Passthrough implements Policy {
  readonly name = 'passthrough';
  readonly needs: PolicyNeeds = {};
  readonly #events: PolicyEvents;
  #registered = 0;
  #warned = false;

  constructor(events: PolicyEvents) {
    this.#events = events;
  }

  decide(_request: unknown, candidates: CandidateSet): Decision {
    return new Decision(candidates.at(0));
  }

  /** Nothing to replace; the instance stays, and with it that it has warned. */
  configure(): void {}

  workerAdded(): void {
    this.#registered += 1;
    if (this.#registered < 2 || this.#warned) return;
    this.#warned = true;
    this.#events.warning?.({
      code: 'passthroughManyWorkers',
      message: 'passthrough sends every request to the first available worker',
      fields: ['policy'],
    });
  }

  workerRemoved(): void {
    this.#registered -= 1;
  }
}
