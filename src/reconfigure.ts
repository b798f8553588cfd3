/** Replacing the options at run time (LB-35): checked and prepared whole before anything changes, then done in one step. */
import type { RouterCore } from './core.js';
import { RoutingConfigError } from './errors.js';
import { applySettings } from './fleet.js';
import { warnAboutOptions } from './option-warnings.js';
import { reviewReport } from './reports.js';
import { planRouter, type RouterOptions } from './router-options.js';

/** What a running router is made of and cannot change. */
const fixed = ['mode', 'clock', 'random', 'seed', 'hash'] as const;

/** @throws RoutingConfigError, or what a host's own policy factory throws; nothing changed then */
export function reconfigure(core: RouterCore, options: RouterOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw new RoutingConfigError('options', options, 'must be an object');
  }
  const given = { ...options } as Record<string, unknown>;
  for (const name of fixed) {
    const running = core.plan.options[name];
    if (given[name] !== undefined && given[name] !== running) {
      throw new RoutingConfigError(name, given[name], 'cannot change at run time');
    }
    if (running !== undefined) given[name] = running;
  }
  const plan = planRouter(given as RouterOptions);
  const { now } = core.time;
  core.hub.afterwards(() => {
    const change = core.pools.reconfiguring(plan, now);
    core.plan = plan;
    core.pins.configure(plan.pinLimits, now);
    change();
    for (const worker of core.workers.values()) {
      applySettings(core, worker);
      reviewReport(core, worker);
    }
    warnAboutOptions(core);
  });
}
