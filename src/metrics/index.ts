/**
 * The metrics of a routing layer under their established names, for any metrics library. `bindMetrics` turns a router's
 * events into samples of a three-method adapter; `metricTable` is what to register.
 *
 * @packageDocumentation
 */
export type { MetricLabels, MetricsAdapter } from './adapter.js';
export { bindMetrics } from './bind-metrics.js';
export type { HostMetrics } from './host-metrics.js';
export { hostMetrics } from './host-metrics.js';
export type { MetricName, MetricRow } from './metric-table.js';
export { metricTable } from './metric-table.js';
export type { MetricsSource } from './metrics-source.js';
