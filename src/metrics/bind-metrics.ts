/**
 * Drives the metrics of spec 09 from a router's events (LB-51). The router knows nothing of it: without a binding no
 * event is built, with one each event costs its samples. Handlers call nothing of the router that reads its clock, so
 * decisions are the same with and without metrics (LB-3).
 */
import { refuse } from '../errors.js';
import { checkAdapter, MetricSink, type MetricsAdapter } from './adapter.js';
import { bindEngineMetrics } from './engine-metrics.js';
import { bindIndexMetrics } from './index-metrics.js';
import type { MetricsSource, Subscribe } from './metrics-source.js';
import { ModelLabels } from './model-labels.js';
import { bindSelectionMetrics } from './selection-metrics.js';
import { bindWorkerMetrics } from './worker-metrics.js';

/**
 * Keeps every metric whose row in `metricTable` says `library` up to date through an adapter, from now on (OB-1).
 * Gauges are set at once for the workers, reports and pins that are there.
 *
 * Labels are bounded: the first 1 024 models keep their name, later ones are `other`; branches are closed sets; workers
 * are not bounded (OB-80). A removed worker's gauges take the values of OB-81.
 *
 * An adapter that throws changes no result, no count and no other sample (LB-15): its error comes as the router's event
 * `warning` with code `listenerFailed`; one thrown during this call comes with the next event.
 *
 * @returns unbinds: no listener is left, samples keep their last values. Calling it again does nothing
 * @throws TypeError when the adapter lacks one of its three methods, or the router is none; nothing is bound then
 */
export function bindMetrics(router: MetricsSource, adapter: MetricsAdapter): () => void {
  checkAdapter(adapter);
  for (const method of ['on', 'workers'] as const) {
    if (typeof router?.[method] !== 'function') throw refuse(`router.${method}`, 'a function', router?.[method]);
  }
  const sink = new MetricSink(adapter);
  const models = new ModelLabels();
  const subscriptions: (() => void)[] = [];
  const on: Subscribe = (event, listener) => {
    const unsubscribe = router.on(event, (payload) => {
      listener(payload);
      sink.settle();
    });
    subscriptions.push(unsubscribe);
  };
  const workers = router.workers();
  const isCurrent = bindWorkerMetrics(workers, on, sink, models);
  bindEngineMetrics(workers, on, sink, models, isCurrent);
  bindIndexMetrics(router, on, sink, models);
  bindSelectionMetrics(router, on, sink, models);
  return () => {
    for (const unsubscribe of subscriptions.splice(0)) unsubscribe();
  };
}
