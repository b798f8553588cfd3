/**
 * The bridge to a metrics library: three methods that every library has in some form (LB-51). Names and labels are those
 * of `metricTable`; each call is one sample.
 */
import { refuse } from '../errors.js';
import type { LabelsOf, MetricName, NameOf } from './metric-table.js';

/** Label values by name; the names are those of the metric's row. */
export type MetricLabels = Readonly<Record<string, string>>;

/** What a host writes for its metrics library. An error thrown here never changes a routing result (LB-15). */
export interface MetricsAdapter {
  /** Adds `value` (1 or more) to a counter. */
  counter(name: MetricName, labels: MetricLabels, value: number): void;
  /** Sets a gauge. */
  gauge(name: MetricName, labels: MetricLabels, value: number): void;
  /** Observes one value; the buckets are in the row. */
  histogram(name: MetricName, labels: MetricLabels, value: number): void;
}

/** @throws TypeError when the adapter lacks one of its three methods */
export function checkAdapter(adapter: MetricsAdapter): void {
  for (const method of ['counter', 'gauge', 'histogram'] as const) {
    if (typeof adapter?.[method] !== 'function') throw refuse(`adapter.${method}`, 'a function', adapter?.[method]);
  }
}

/**
 * The adapter with typed labels and its errors held back: one sample that fails must not cost the others of the same
 * event. `settle` gives out the first error once everything was told.
 */
export class MetricSink {
  readonly #adapter: MetricsAdapter;
  #failure: { readonly error: unknown } | undefined;

  constructor(adapter: MetricsAdapter) {
    this.#adapter = adapter;
  }

  count<N extends NameOf<'counter'>>(name: N, labels: LabelsOf<N>): void {
    this.#send('counter', name, labels, 1);
  }

  set<N extends NameOf<'gauge'>>(name: N, labels: LabelsOf<N>, value: number): void {
    this.#send('gauge', name, labels, value);
  }

  observe<N extends NameOf<'histogram'>>(name: N, labels: LabelsOf<N>, value: number): void {
    this.#send('histogram', name, labels, value);
  }

  /** @throws what the adapter threw first since the last call */
  settle(): void {
    const failure = this.#failure;
    if (failure === undefined) return;
    this.#failure = undefined;
    throw failure.error;
  }

  #send(method: keyof MetricsAdapter, name: MetricName, labels: MetricLabels, value: number): void {
    try {
      this.#adapter[method](name, labels, value);
    } catch (error) {
      this.#failure ??= { error };
    }
  }
}
