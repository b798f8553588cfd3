/**
 * `config` of a row, in the flat camelCase names of the reference with durations in seconds, as the package's own
 * options, and the way back for error fields (CC-11, CC-17).
 *
 * A duration `…Secs` becomes `…Ms`; options of one policy go to that policy; everything else is a router option.
 */
import type { PolicyName, RouterOptions } from 'kvroute';
import { UnmappableRow, type Values } from './row.js';

/** Flat options of `cache_aware`; two of them are also read by `bucket`, one by `prefix_hash`. */
const cacheAwareNames = [
  'cacheThreshold',
  'balanceAbsThreshold',
  'balanceRelThreshold',
  'balanceTokenUsageThreshold',
  'overloadTokenUsageThreshold',
  'overlapDecay',
  'selectionTemperature',
  'maxTreeSize',
  'blockSize',
  'cacheIndex',
  'cacheBoundaries',
  'cacheTtlSecs',
  'kvIndexerTtlSecs',
  'kvIndexerMaxEntries',
];

/** Flat sections and the policy each belongs to. */
const policySections: Readonly<Record<string, string>> = {
  leastLoad: 'least_load',
  powerOfTwo: 'power_of_two',
  prefixHash: 'prefix_hash',
  bucket: 'bucket',
};

/** Options that pins are governed by, and those that say where keys come from. */
const pinNames = ['maxIdleSecs', 'evictionIntervalSecs', 'maxPins', 'assignmentMode'];
const sharedByPolicy: Readonly<Record<string, readonly string[]>> = {
  cache_aware: ['evictionIntervalSecs'],
  manual: [...pinNames, 'routingKeyOverride'],
  consistent_hashing: ['routingKeyHeaders', 'routingKeyOverride'],
  prefix_hash: ['routingKeyHeaders', 'routingKeyOverride'],
};

const legPolicies = ['prefillPolicy', 'decodePolicy', 'encodePolicy'];

/** The options of one policy in its own words, as far as the row gives them. */
function policyOptions(config: Values, policy: string): Record<string, unknown> {
  const own: Record<string, unknown> = {};
  const take = (names: readonly string[]): void => {
    for (const name of names) if (config[name] !== undefined) own[rename(name)] = inMs(name, config[name]);
  };
  if (policy === 'cache_aware') take(cacheAwareNames);
  if (policy === 'bucket') take(['balanceAbsThreshold', 'balanceRelThreshold']);
  if (policy === 'prefix_hash') take(['cacheBoundaries']);
  for (const [section, owner] of Object.entries(policySections)) {
    if (owner === policy && config[section] !== undefined) Object.assign(own, renamed(config[section]));
  }
  return own;
}

/** The options of a policy used alone: its own and what it shares with the override (CC-14). */
export function aloneOptions(config: Values, policy: string): Record<string, unknown> {
  const own = policyOptions(config, policy);
  for (const name of sharedByPolicy[policy] ?? []) {
    if (config[name] !== undefined) own[rename(name)] = inMs(name, config[name]);
  }
  return own;
}

/** The options of the override around a policy used alone, or undefined when it is off or the policy has its own. */
export function overrideOptions(config: Values, policy: string): Record<string, unknown> | undefined {
  if (config.routingKeyOverride !== true || policy === 'manual' || policy === 'consistent_hashing') return undefined;
  const own: Record<string, unknown> = {};
  for (const name of [...pinNames, 'routingKeyHeaders']) {
    if (config[name] !== undefined) own[rename(name)] = inMs(name, config[name]);
  }
  return own;
}

/**
 * The options of a router. Names nobody knows are passed on, so that the router can refuse them.
 *
 * @param unused also hand over, by policy name, options of policies that are not in use: they are checked all the same.
 * Without, they have no effect, as flags of a policy that was not chosen have none (LM-22)
 */
export function routerOptions(config: Values, unused = false): RouterOptions {
  const policy = config.policy ?? 'cache_aware';
  const router: Record<string, unknown> = { policy: withOptions(config, policy) };
  const used = new Set<unknown>([policy]);
  for (const leg of legPolicies) {
    if (config[leg] === undefined) continue;
    router[leg] = withOptions(config, config[leg]);
    used.add(config[leg]);
  }
  for (const [name, value] of Object.entries(config)) {
    const elsewhere = name === 'policy' || legPolicies.includes(name) || name in policySections;
    if (elsewhere || cacheAwareNames.includes(name)) continue;
    router[rename(name)] = isSection(value) ? renamed(value) : inMs(name, value);
  }
  if (!unused) return router as RouterOptions;
  const others: Record<string, unknown> = {};
  for (const other of ['cache_aware', 'least_load', 'power_of_two', 'prefix_hash', 'bucket']) {
    const own = used.has(other) ? {} : policyOptions(config, other);
    if (Object.keys(own).length > 0) others[other] = own;
  }
  if (Object.keys(others).length > 0) router.policyOptions = others;
  return router as RouterOptions;
}

function withOptions(config: Values, policy: unknown): unknown {
  if (typeof policy !== 'string') return policy;
  const own = policyOptions(config, policy);
  return Object.keys(own).length > 0 ? { name: policy as PolicyName, ...own } : policy;
}

/** The field of a configuration error in the row's own words, for example `leastLoad.meanPrefillTokens`. */
export function flatField(field: string, config: Values): string {
  const path = field.split('.');
  if (path.at(-1) === 'name') path.pop();
  if (path[0] === 'worker') {
    const last = path.pop() as string;
    const given = path.reduce<unknown>((section, name) => (isSection(section) ? section[name] : undefined), config);
    return [...path, unrename(last, given)].join('.');
  }
  const last = path.pop() as string;
  const owner = path[0] === 'policyOptions' ? path[1] : config[path[0] ?? ''];
  const section = Object.keys(policySections).find(
    (name) => policySections[name] === owner && holds(config[name], last),
  );
  if (section !== undefined) return `${section}.${unrename(last, config[section])}`;
  const holder = path.at(-1);
  if (holder !== undefined && isSection(config[holder])) return `${holder}.${unrename(last, config[holder])}`;
  return unrename(last, config);
}

/** A worker block of a row: its sections and durations in our words. */
export function workerOptions(worker: Values): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(worker).map(([name, value]) => [
      rename(name),
      isSection(value) ? renamed(value) : inMs(name, value),
    ]),
  );
}

/** Our name and value of an option, back in flat words. */
export function flatOption(name: string, value: unknown): [string, unknown] {
  return name.endsWith('Ms') && typeof value === 'number' ? [`${name.slice(0, -2)}Secs`, value / 1000] : [name, value];
}

function holds(section: unknown, name: string): boolean {
  return isSection(section) && Object.keys(section).some((known) => rename(known) === name);
}

function isSection(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function renamed(section: unknown): Record<string, unknown> {
  if (!isSection(section)) throw new UnmappableRow('an option section is no object');
  return Object.fromEntries(Object.entries(section).map(([name, value]) => [rename(name), inMs(name, value)]));
}

function rename(name: string): string {
  return name.endsWith('Secs') ? `${name.slice(0, -4)}Ms` : name;
}

function unrename(name: string, given: unknown): string {
  const flat = name.endsWith('Ms') ? `${name.slice(0, -2)}Secs` : name;
  return isSection(given) && flat in given ? flat : name;
}

function inMs(name: string, value: unknown): unknown {
  return name.endsWith('Secs') && typeof value === 'number' ? value * 1000 : value;
}
