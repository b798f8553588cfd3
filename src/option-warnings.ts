/** Warnings about options that have no effect: by themselves, with this fleet, or with these requests (LB-41). */
import type { RouterCore } from './core.js';
import type { Warning } from './events.js';
import { cacheAwareTable } from './options/table.js';
import type { Pool } from './pool.js';
import type { RequestView } from './request.js';
import type { RouterOptions, RouterPlan } from './router-options.js';

/** Tells about options that cannot have an effect, as far as the options alone show it. */
export function warnAboutOptions(core: RouterCore): void {
  for (const warning of optionWarnings(core.plan)) core.warn(warning);
  for (const warning of pinLimitWarnings(core.plan)) core.warn(warning);
}

function* optionWarnings({ options, policies, legs }: RouterPlan): IterableIterator<Warning> {
  const running = new Set(legs.map((leg) => policies[leg]));
  for (const { name, options: own } of running) {
    const { cacheThreshold, cacheIndex, cacheBoundaries } = own as {
      readonly cacheThreshold?: number;
      readonly cacheIndex?: string;
      readonly cacheBoundaries?: readonly number[];
    };
    if (cacheThreshold === 1) {
      yield noEffect(`${name} never finds enough of a prefix at cacheThreshold 1`, 'cacheThreshold');
    }
    if (cacheIndex === 'tree' && cacheBoundaries !== undefined && cacheBoundaries.length > 0) {
      yield noEffect("cacheBoundaries are read with cacheIndex 'hash' only", 'cacheBoundaries', 'cacheIndex');
    }
  }
  const { loadReportMaxAgeMs: maxAge, loadMonitorIntervalMs: interval } = options;
  if (maxAge !== undefined && maxAge < interval) {
    yield {
      code: 'reportMaxAgeBelowInterval',
      message: `reports age out after ${maxAge} ms, before the next one comes after ${interval} ms`,
      fields: ['loadReportMaxAgeMs', 'loadMonitorIntervalMs'],
    };
  }
}

/** All pins are in one map (ST-60a): limits that `manual` states elsewhere, and differently, have no effect. */
function* pinLimitWarnings({ options, policies, legs, pinLimits }: RouterPlan): IterableIterator<Warning> {
  const named = (options.policyOptions as RouterOptions['policyOptions'])?.manual ?? {};
  const running = legs.map((leg) => policies[leg]).filter(({ name }) => name === 'manual');
  const stated = [named, ...running.map((plan) => plan.options)] as readonly Partial<typeof pinLimits>[];
  for (const limit of ['maxPins', 'maxIdleMs', 'evictionIntervalMs'] as const) {
    if (stated.some((own) => own[limit] !== undefined && own[limit] !== pinLimits[limit])) {
      yield noEffect(`all pins are in one map, whose ${limit} is ${pinLimits[limit]}`, limit);
    }
  }
}

/** Tells what a request shows about the options of its pool. Called for each; O(1) while the pool keeps its size. */
export function warnAboutUse(core: RouterCore, pool: Pool, view: RequestView): void {
  if (pool.needsTokens && view.routingTokens === undefined) warnAboutMissingTokens(core, pool);
  if (pool.inspectedSize === pool.all.size) return;
  pool.inspectedSize = pool.all.size;
  warnAboutFleet(core, pool);
}

/**
 * Tells what a fleet makes of the options, once for each finding: a pool too small for what its policy is meant to do,
 * and options by policy name that no pool has a use for (LM-16, LB-41).
 */
function warnAboutFleet(core: RouterCore, pool: Pool): void {
  const { model } = pool;
  const { name, options } = pool.plan;
  if (pool.all.size < 2 && name === 'power_of_two') {
    core.warnOnce({
      code: 'tooFewWorkers',
      message: 'power_of_two has fewer than two workers',
      fields: ['policy'],
      model,
    });
  }
  if (pool.all.size < 2 && name === 'cache_aware' && asksForSpill(options)) {
    const message = 'a single worker is never busier than the mean of its fleet';
    core.warnOnce({ code: 'balanceThresholdUnreachable', message, fields: ['balanceAbsThreshold'], model });
  }
  if (core.plan.namedOptions.length === 0) return;
  const used = new Set([...core.pools].map((any) => any.plan.name));
  for (const named of core.plan.namedOptions) {
    if (used.has(named)) continue;
    core.warnOnce({
      code: 'unusedPolicyOptions',
      message: `no pool runs ${named}`,
      fields: [`policyOptions.${named}`],
    });
  }
}

/** Boundaries are counted in token ids: without them there is nothing to look up (CA-71). */
function warnAboutMissingTokens(core: RouterCore, { model }: Pool): void {
  const message = 'requests without token ids find nothing at cacheBoundaries: they are placed by expected wait';
  core.warnOnce({ code: 'boundariesWithoutTokens', message, fields: ['cacheBoundaries'], model });
}

/** The default thresholds are nobody's mistake: only values that were chosen are worth a warning. */
function asksForSpill(options: object): boolean {
  return (
    (options as { readonly balanceAbsThreshold?: number }).balanceAbsThreshold !==
    cacheAwareTable.balanceAbsThreshold.default
  );
}

function noEffect(message: string, ...fields: string[]): Warning {
  return { code: 'optionWithoutEffect', message, fields };
}
