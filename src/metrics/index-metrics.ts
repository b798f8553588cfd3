/**
 * Metrics of what `cache_aware` has learned: OB-22 to OB-24, told by each pool at the end of its passes and summed over
 * the pools of a model. A pool that is gone takes its share along, and so does a policy that another one replaced.
 */
import type { MetricSink } from './adapter.js';
import type { MetricsSource, Subscribe } from './metrics-source.js';
import type { ModelLabels } from './model-labels.js';
import { SummedGauge } from './summed-gauge.js';

export function bindIndexMetrics(router: MetricsSource, on: Subscribe, sink: MetricSink, models: ModelLabels): void {
  const chars = new SummedGauge('smg_cache_tree_chars', sink);
  const tokens = new SummedGauge('smg_cache_tree_tokens', sink);
  const stringTenants = new SummedGauge('smg_cache_tree_tenants', sink);
  const tokenTenants = new SummedGauge('smg_cache_tree_tenants', sink);
  const heads = new SummedGauge('smg_cache_placement_entries', sink);
  const all = [chars, tokens, stringTenants, tokenTenants, heads];

  on('treeEvicted', (pass) => {
    const model = models.of(pass.model);
    const pool = poolKey(pass);
    if (pass.tree === 'hash') {
      heads.put(pool, [[{ model }, pass.size]]);
    } else if (pass.tree === 'string') {
      chars.put(pool, [[{ model }, pass.size]]);
      stringTenants.put(pool, [[{ model, tree: 'string' }, pass.tenants]]);
    } else {
      tokens.put(pool, [[{ model }, pass.size]]);
      tokenTenants.put(pool, [[{ model, tree: 'token' }, pass.tenants]]);
    }
  });
  const dropClosed = (): void => {
    if (all.every((gauge) => gauge.contributors().length === 0)) return;
    const open = new Set(router.pools().map(poolKey));
    for (const gauge of all) {
      for (const pool of gauge.contributors()) if (!open.has(pool)) gauge.put(pool, []);
    }
  };
  on('policyReplaced', (replaced) => {
    for (const gauge of all) gauge.put(poolKey(replaced), []);
  });
  // The only events after which a pool may be missing (LM-24).
  on('workerRemoved', dropClosed);
  on('workerReplaced', dropClosed);
}

function poolKey({ model, leg }: { readonly model: string; readonly leg: string }): string {
  return `${leg} ${model}`;
}
