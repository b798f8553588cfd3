/** The router's metrics through the OpenTelemetry API: an adapter of the three methods kvroute asks for. */
import type { Counter, Gauge, Histogram, Meter } from '@opentelemetry/api';
import { type MetricsAdapter, metricTable } from 'kvroute/metrics';

/** What is used of a meter; `metrics.getMeter('kvroute')` of `@opentelemetry/api` is one. */
export type InstrumentFactory = Pick<Meter, 'createCounter' | 'createGauge' | 'createHistogram'>;

/** Makes an instrument for every metric of kvroute's table and returns the adapter for `bindMetrics` and `hostMetrics`. */
export function otelAdapter(meter: InstrumentFactory): MetricsAdapter {
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  for (const { name, type, help: description, buckets = [] } of metricTable) {
    if (type === 'counter') counters.set(name, meter.createCounter(name, { description }));
    else if (type === 'gauge') gauges.set(name, meter.createGauge(name, { description }));
    else {
      const advice = { explicitBucketBoundaries: [...buckets] };
      histograms.set(name, meter.createHistogram(name, { description, advice }));
    }
  }
  return {
    counter: (name, labels, value) => counters.get(name)?.add(value, labels),
    gauge: (name, labels, value) => gauges.get(name)?.record(value, labels),
    histogram: (name, labels, value) => histograms.get(name)?.record(value, labels),
  };
}
