/** An adapter that keeps every sample and checks it against the table: name, type, labels and closed label values. */
import { createRouter, type Router, type RouterOptions } from 'kvroute';
import { bindMetrics, type MetricLabels, type MetricsAdapter, metricTable } from 'kvroute/metrics';
import { expect, onTestFinished } from 'vitest';

const rows = new Map(metricTable.map((row) => [row.name, row]));

export class RecordingAdapter implements MetricsAdapter {
  /** Current value by series, written `name{label="value",…}`; histograms are the list of observations. */
  readonly series: Map<string, number | number[]> = new Map();
  samples = 0;
  /** What was wrong with samples. */
  readonly objections: string[] = [];

  counter(name: string, labels: MetricLabels, value: number): void {
    const key = this.#check('counter', name, labels);
    this.series.set(key, ((this.series.get(key) as number | undefined) ?? 0) + value);
  }

  gauge(name: string, labels: MetricLabels, value: number): void {
    this.series.set(this.#check('gauge', name, labels), value);
  }

  histogram(name: string, labels: MetricLabels, value: number): void {
    const key = this.#check('histogram', name, labels);
    this.series.set(key, [...((this.series.get(key) as number[] | undefined) ?? []), value]);
  }

  /** Series of one metric by their labels alone: `model=m,tree=string` → value. */
  of(name: string): Record<string, number | number[]> {
    const found: Record<string, number | number[]> = {};
    for (const [key, value] of this.series) {
      if (key.startsWith(`${name}{`)) found[key.slice(name.length + 1, -1)] = value;
    }
    return found;
  }

  /** Drops what was recorded, to look at one step alone. */
  clear(): void {
    this.series.clear();
    this.samples = 0;
  }

  #check(type: string, name: string, labels: MetricLabels): string {
    this.samples += 1;
    const row = rows.get(name);
    const names = Object.keys(labels);
    if (row?.type !== type) this.objections.push(`${name} is ${row?.type ?? 'unknown'}, not a ${type}`);
    if (names.join() !== row?.labels.join()) this.objections.push(`${name} has labels ${row?.labels}, not ${names}`);
    for (const [label, value] of Object.entries(labels)) {
      if (typeof value !== 'string') this.objections.push(`${name}: ${label} is no string`);
      if (row?.values?.[label]?.includes(value) === false) this.objections.push(`${name}: no ${label} is ${value}`);
    }
    return `${name}{${names.map((label) => `${label}=${labels[label]}`).join()}}`;
  }
}

/** A router with metrics bound, its clock at a standstill. Whatever the adapter objects to fails the test. */
export async function boundRouter(options: RouterOptions): Promise<{ router: Router; metrics: RecordingAdapter }> {
  const router = await createRouter({ seed: 1, clock: () => 0, ...options });
  const metrics = new RecordingAdapter();
  onTestFinished(() => expect(metrics.objections).toEqual([]));
  bindMetrics(router, metrics);
  return { router, metrics };
}
