/**
 * Gauges that are sums of what several contributors add, by label values: workers to the size of their pools, pools to
 * the size of the trees of a model. Models that share the label `other` add up like any other contributors.
 *
 * Invariant: a total is the sum of the shares given last by each contributor; one without contributors is told as 0 and
 * forgotten. Setting is O(shares of the contributor).
 */
import type { MetricSink } from './adapter.js';
import type { LabelsOf, NameOf } from './metric-table.js';

/** A share of the series with these labels. */
export type Share<N extends NameOf<'gauge'>> = readonly [labels: LabelsOf<N>, value: number];

export class SummedGauge<N extends NameOf<'gauge'>> {
  readonly #name: N;
  readonly #sink: MetricSink;
  readonly #totals = new Map<string, { readonly labels: LabelsOf<N>; sum: number; contributors: number }>();
  readonly #shares = new Map<string, ReadonlyMap<string, number>>();

  constructor(name: N, sink: MetricSink) {
    this.#name = name;
    this.#sink = sink;
  }

  /** Replaces what a contributor adds; two shares of one series count once. No shares: it contributes nothing more. */
  put(contributor: string, shares: readonly Share<N>[]): void {
    const before = this.#shares.get(contributor);
    const after = new Map<string, number>();
    for (const [labels, value] of shares) {
      const series = JSON.stringify(labels);
      after.set(series, value);
      if (!this.#totals.has(series)) this.#totals.set(series, { labels, sum: 0, contributors: 0 });
    }
    if (after.size === 0) this.#shares.delete(contributor);
    else this.#shares.set(contributor, after);
    for (const series of new Set([...(before?.keys() ?? []), ...after.keys()])) {
      this.#change(series, before?.get(series), after.get(series));
    }
  }

  /** All who contribute. */
  contributors(): string[] {
    return [...this.#shares.keys()];
  }

  #change(series: string, before: number | undefined, after: number | undefined): void {
    const total = this.#totals.get(series);
    if (total === undefined) return;
    total.sum += (after ?? 0) - (before ?? 0);
    total.contributors += Number(after !== undefined) - Number(before !== undefined);
    if (total.contributors === 0) this.#totals.delete(series);
    if (before !== after) this.#sink.set(this.#name, total.labels, total.sum);
  }
}
