/**
 * What every policy promises, whatever it decides by: a list of cases for any test framework. A policy of your own passes
 * them before it is trusted with traffic:
 *
 *     const make = (runtime: ContractRuntime) => standalone(createZoneFirst(), runtime);
 *     for (const { name, run } of policyContract(make, { reachesAll: true })) it(name, run);
 *
 * A case makes fresh policies, is synchronous, takes below a second, and throws an `Error` that says what it saw. What
 * only some policies promise is declared as a capability; a promise that is not declared is not checked.
 */
import { checkObject, refuse } from '../errors.js';
import type { StandalonePolicy } from '../policies/standalone.js';
import {
  avoidsQueue,
  badCandidates,
  builtInIds,
  deterministic,
  everybody,
  excludes,
  explains,
  forgets,
  hostile,
  keepsKey,
  keepsPrompt,
  keepsSecrets,
  large,
  nobody,
  onlyCandidates,
  single,
} from './contract-checks.js';

/** What a case asks of the policy it makes: the runtime options that decide everything else about it (LB-3). */
export interface ContractRuntime {
  /** Of the built-in generator. */
  readonly seed: number;
  /** Stands still within a case. */
  readonly clock: () => number;
}

/** Promises of some policies only. */
export interface PolicyCapabilities {
  /** A request that says nothing may go to any worker of an idle fleet. */
  readonly reachesAll?: boolean | undefined;
  /** A worker with a hopeless queue is left alone while another one is idle. */
  readonly loadAware?: boolean | undefined;
  /** Requests with one routing key stay together, and stay together elsewhere while their worker is away. */
  readonly keepsKeys?: boolean | undefined;
  /** Requests with one prompt stay together in an idle fleet. */
  readonly keepsPrompts?: boolean | undefined;
}

/** One promise, as a test. */
export interface ContractCase {
  /** Cites the statement. */
  readonly name: string;
  /**
   * Checks the promise.
   *
   * @throws Error saying what it saw, when the promise is broken
   */
  run(): void;
}

/**
 * The contract as cases.
 *
 * @param make a fresh policy each time; it passes `seed` and `clock` on, as `leastLoad` itself and `standalone` do
 * @param capabilities what this policy promises beyond the contract; default nothing
 * @throws TypeError naming the argument of the wrong type
 */
export function policyContract(
  make: (runtime: ContractRuntime) => StandalonePolicy,
  capabilities: PolicyCapabilities = {},
): readonly ContractCase[] {
  if (typeof make !== 'function') throw refuse('make', 'a function', make);
  const { reachesAll, loadAware, keepsKeys, keepsPrompts } = checkObject(capabilities, 'capabilities');
  const fresh = (seed = 1): StandalonePolicy => make({ seed, clock: () => 0 });
  const cases: ContractCase[] = [
    { name: 'LB-11: no candidate, nothing selected, and no exception', run: () => nobody(fresh()) },
    { name: 'LB-10a: selects one of the literals it was given', run: () => onlyCandidates(fresh()) },
    { name: 'PO-1: a single candidate is selected', run: () => single(fresh()) },
    { name: 'LB-3: the same seed and calls give the same decisions', run: () => deterministic(fresh) },
    { name: 'LB-12: explain changes nothing and foretells the decision', run: () => explains(fresh) },
    { name: 'LB-14a: excluded workers are never selected', run: () => excludes(fresh()) },
    { name: 'LB-42: hostile requests are read as absent or refused at once', run: () => hostile(fresh) },
    { name: 'LB-42: bad candidates are refused before anything changed', run: () => badCandidates(fresh) },
    { name: 'LB-31, B91: ids of object built-ins are ordinary ids', run: () => builtInIds(fresh()) },
    { name: 'LB-30: a forgotten worker is gone, and welcome again', run: () => forgets(fresh()) },
    {
      name: 'LB-13, OB-93: neither prompts nor keys show in records and explanations',
      run: () => keepsSecrets(fresh()),
    },
    { name: 'PO-6: 10 000 candidates', run: () => large(fresh()) },
  ];
  if (reachesAll) cases.push({ name: 'reaches every worker of an idle fleet', run: () => everybody(fresh) });
  if (loadAware) cases.push({ name: 'LR-26: avoids a hopeless queue', run: () => avoidsQueue(fresh) });
  if (keepsKeys) cases.push({ name: 'CH-8, MA-5: keeps a routing key at its worker', run: () => keepsKey(fresh()) });
  if (keepsPrompts) cases.push({ name: 'B15: keeps a prompt at its worker', run: () => keepsPrompt(fresh()) });
  return cases;
}
