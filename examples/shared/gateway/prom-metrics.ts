/** The router's metrics through prom-client: an adapter of the three methods kvroute asks for. */
import { type MetricsAdapter, metricTable } from 'kvroute/metrics';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Registers every metric of kvroute's table and returns the adapter for `bindMetrics` and `hostMetrics`. */
export function promAdapter(registry: Registry): MetricsAdapter {
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  for (const { name, type, help, labels, buckets = [] } of metricTable) {
    const configuration = { name, help, labelNames: [...labels], registers: [registry] };
    if (type === 'counter') counters.set(name, new Counter(configuration));
    else if (type === 'gauge') gauges.set(name, new Gauge(configuration));
    else histograms.set(name, new Histogram({ ...configuration, buckets: [...buckets] }));
  }
  return {
    counter: (name, labels, value) => counters.get(name)?.inc(labels, value),
    gauge: (name, labels, value) => gauges.get(name)?.set(labels, value),
    histogram: (name, labels, value) => histograms.get(name)?.observe(labels, value),
  };
}
