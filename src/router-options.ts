/**
 * The options of a router and their resolution into plans: which policy, with which options, serves each leg. All of
 * it is checked before anything is built or changed (LB-40, LM-16).
 */
import { RoutingConfigError } from './errors.js';
import { checkCacheAwareOptions, type PolicyOptionsByName, policyTables } from './options/policy-options.js';
import type { Resolved, ValueOf } from './options/spec.js';
import { type cacheAwareTable, routerTable } from './options/table.js';
import { resolveOptions } from './options/validate.js';
import { nearestPolicyName, policyNames } from './policies/names.js';
import type { Leg, Policy, PolicyName } from './policies/policy.js';
import { clockOf, hashOf, randomOf } from './policies/runtime-options.js';
import type { Clock } from './runtime/clock.js';
import type { Hash64 } from './runtime/hash.js';
import type { RandomSource } from './runtime/random.js';
import type { PinLimits } from './sticky/pins.js';

/**
 * Makes one instance of a policy of your own: it is called once for each (model, leg) pool. When it throws, or returns
 * what is no policy, the call that needed the pool throws and changes nothing.
 */
export type CustomPolicy = () => Policy;

/** A policy by name, by name with its options, or one of your own (CF-2). */
export type PolicyConfig =
  | PolicyName
  | { [N in PolicyName]: { readonly name: N } & PolicyOptionsByName[N] }[PolicyName]
  | CustomPolicy;

/** The types of the options that the table leaves open. */
interface OpaqueOptions {
  readonly policy: PolicyConfig;
  readonly prefillPolicy: PolicyConfig;
  readonly decodePolicy: PolicyConfig;
  readonly encodePolicy: PolicyConfig;
  readonly policyOptions: Partial<PolicyOptionsByName>;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly seed: number | string;
  readonly hash: Hash64;
  readonly modelAliases: Readonly<Record<string, string>> | ReadonlyMap<string, string>;
}

/** Options of `createRouter` and `reconfigure`. Every one is optional; see the table of options for the defaults. */
export type RouterOptions = {
  readonly [K in keyof typeof routerTable]?:
    | (K extends keyof OpaqueOptions ? OpaqueOptions[K] : ValueOf<(typeof routerTable)[K]>)
    | undefined;
};

/** How the policy of one pool is made. */
export type PolicyPlan =
  | {
      readonly name: PolicyName;
      readonly options: object;
      readonly create?: undefined;
      /** A worker label asked for it, and keeps it whatever the router is reconfigured to (LM-24). */
      readonly fromLabel?: true;
    }
  | {
      readonly name: 'custom';
      readonly options: object;
      readonly create: CustomPolicy;
      readonly fromLabel?: undefined;
    };

/** Checked options with the plan of every leg. */
export interface RouterPlan {
  readonly options: Resolved<typeof routerTable>;
  readonly legs: readonly Leg[];
  readonly policies: Readonly<Record<Leg, PolicyPlan>>;
  /** The plan of a policy that a worker label names (LM-21, LM-22). */
  labelled(name: PolicyName): PolicyPlan;
  /** Limits of the one pin map of all pools (ST-60a): those of the first leg that runs `manual`, else the router's own. */
  readonly pinLimits: PinLimits;
  /** Names in `policyOptions`. */
  readonly namedOptions: readonly PolicyName[];
  readonly modelAliases: ReadonlyMap<string, string>;
}

const legsOf: Readonly<Record<'regular' | 'pd' | 'epd', readonly Leg[]>> = {
  regular: ['single'],
  pd: ['prefill', 'decode'],
  epd: ['encode', 'prefill', 'decode'],
};

const encodePolicies: readonly string[] = ['random', 'round_robin', 'consistent_hashing'];

/** Options that say something about the whole router and that some policies read too. */
const sharedNames = [
  'routingKeyHeaders',
  'routingKeyOverride',
  'maxIdleMs',
  'evictionIntervalMs',
  'maxPins',
  'assignmentMode',
] as const;

/**
 * Checks the options and makes the plans.
 *
 * @throws RoutingConfigError naming the field, also for LM-10, LM-11, LM-13, LM-14
 */
export function planRouter(given: RouterOptions | undefined): RouterPlan {
  const options = resolveOptions(routerTable, given);
  clockOf(options);
  randomOf(options);
  hashOf(options);
  const policyOptions = checkPolicyOptions(options.policyOptions);
  const shared = sharedOptions(given);
  const main = ownOptions('policy', options.policy ?? 'cache_aware');

  const plan = (field: string, config: unknown): PolicyPlan => {
    const { name, own, create } = ownOptions(field, config);
    if (create !== undefined) return { name: 'custom', options: {}, create };
    // A leg that only names the router's policy runs it with the same values (LM-4).
    const inherited = name === main.name && main.own !== undefined ? main.own : policyOptions[name as PolicyName];
    return named(name as PolicyName, { ...inherited, ...own }, `${field}.`);
  };
  const named = (name: PolicyName, own: object | undefined, path: string): PolicyPlan => {
    const table = policyTables[name];
    const known = Object.entries(shared).filter(([option]) => Object.hasOwn(table, option));
    const resolved = resolveOptions(table, { ...Object.fromEntries(known), ...own }, path);
    if (name === 'cache_aware') checkCacheAwareOptions(resolved as Resolved<typeof cacheAwareTable>, path);
    return { name, options: resolved };
  };

  const legs = legsOf[options.mode];
  const single = plan('policy', options.policy ?? 'cache_aware');
  const policies = {
    single,
    prefill: options.prefillPolicy === undefined ? single : plan('prefillPolicy', options.prefillPolicy),
    decode: options.decodePolicy === undefined ? single : plan('decodePolicy', options.decodePolicy),
    encode: plan('encodePolicy', options.encodePolicy ?? 'consistent_hashing'),
  };
  checkLegs(options, policies);
  const namedOptions = Object.keys(policyOptions) as PolicyName[];
  const labelled = (name: PolicyName): PolicyPlan => {
    const made = name === single.name ? single : named(name, policyOptions[name], `policyOptions.${name}.`);
    return { name, options: made.options, fromLabel: true };
  };
  // What only a worker label would use is refused now, not when that worker comes.
  for (const name of namedOptions) labelled(name);
  const pinning = legs.map((leg) => policies[leg]).find(({ name }) => name === 'manual');
  return {
    options,
    legs,
    policies,
    labelled,
    pinLimits: (pinning?.options as PinLimits | undefined) ?? options,
    namedOptions,
    modelAliases: checkAliases(options.modelAliases),
  };
}

interface OwnOptions {
  readonly name: string;
  readonly own?: object | undefined;
  readonly create?: CustomPolicy | undefined;
}

/** A policy option as given: its name and the options beside it, checked. */
function ownOptions(field: string, config: unknown): OwnOptions {
  if (typeof config === 'function') return { name: 'custom', create: config as CustomPolicy };
  if (typeof config === 'string') return { name: checkedName(field, config) };
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw new RoutingConfigError(field, config, 'must be a policy name, { name, ...options } or a function');
  }
  const { name, ...own } = config as { readonly name?: unknown };
  const known = checkedName(`${field}.name`, name);
  resolveOptions(policyTables[known], own, `${field}.`);
  return { name: known, own };
}

function checkedName(field: string, name: unknown): PolicyName {
  if (policyNames.includes(name as PolicyName)) return name as PolicyName;
  const nearest = typeof name === 'string' ? nearestPolicyName(name) : undefined;
  const hint = nearest === undefined ? '' : ` (probably ${nearest})`;
  throw new RoutingConfigError(field, name, `must be one of ${policyNames.join(', ')}${hint}`);
}

function checkPolicyOptions(given: unknown): Partial<PolicyOptionsByName> {
  if (given === undefined) return {};
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new RoutingConfigError('policyOptions', given, 'must be an object of options by policy name');
  }
  for (const [name, own] of Object.entries(given)) {
    resolveOptions(policyTables[checkedName(`policyOptions.${name}`, name)], own, `policyOptions.${name}.`);
  }
  return given;
}

/** The shared options that were given; defaults are left to each policy's own table. */
function sharedOptions(given: RouterOptions | undefined): Record<string, unknown> {
  const shared: Record<string, unknown> = {};
  for (const name of sharedNames) if (given?.[name] !== undefined) shared[name] = given[name];
  return shared;
}

function checkLegs(options: Resolved<typeof routerTable>, policies: Readonly<Record<Leg, PolicyPlan>>): void {
  const legged = options.mode !== 'regular';
  const fieldOf = (leg: 'prefill' | 'decode'): string => {
    const own = leg === 'prefill' ? options.prefillPolicy : options.decodePolicy;
    return own === undefined ? 'policy' : `${leg}Policy`;
  };
  const forbid = (leg: 'prefill' | 'decode', name: string, reason: string): void => {
    const field = fieldOf(leg);
    // What a leg inherits matters only where legs exist (LM-10, LM-13).
    if (policies[leg].name === name && (legged || field !== 'policy'))
      throw new RoutingConfigError(field, name, reason);
  };
  forbid('prefill', 'passthrough', 'must not be passthrough on the prefill leg');
  forbid('decode', 'passthrough', 'must not be passthrough on the decode leg');
  forbid('decode', 'bucket', 'must not be bucket on the decode leg: give it a decodePolicy of its own');
  if (!encodePolicies.includes(policies.encode.name)) {
    throw new RoutingConfigError('encodePolicy', policies.encode.name, `must be one of ${encodePolicies.join(', ')}`);
  }
  const { name, options: own } = policies.single;
  if (!legged && name === 'bucket' && (own as { readonly legs: string }).legs !== 'any') {
    throw new RoutingConfigError(
      'policy',
      name,
      "bucket serves the prefill leg: use mode 'pd' with prefillPolicy 'bucket', or { name: 'bucket', legs: 'any' }",
    );
  }
}

function checkAliases(given: unknown): ReadonlyMap<string, string> {
  if (given === undefined) return new Map();
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new RoutingConfigError('modelAliases', given, 'must be an object or a Map of model ids');
  }
  const aliases = new Map<string, string>(given instanceof Map ? given : Object.entries(given));
  for (const [alias, model] of aliases) {
    if (typeof alias !== 'string')
      throw new RoutingConfigError('modelAliases', alias, 'must have names that are strings');
    if (typeof model !== 'string' || model === '') {
      throw new RoutingConfigError(`modelAliases.${alias}`, model, 'must be a model id');
    }
  }
  return aliases;
}
