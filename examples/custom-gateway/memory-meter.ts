/** A meter that keeps what it is told, for the example and its tests; a real host has the one of its OpenTelemetry SDK. */
import type { Attributes } from '@opentelemetry/api';
import type { InstrumentFactory } from './otel-metrics.js';

export interface MemoryMeter extends InstrumentFactory {
  /** The sum of a counter, the last value of a gauge, the number of values in a histogram; 0 for what was never told. */
  read(name: string, attributes?: Attributes): number;
}

export function memoryMeter(): MemoryMeter {
  const values = new Map<string, number>();
  const keyOf = (name: string, attributes: Attributes = {}) =>
    JSON.stringify([name, Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1))]);
  const read = (name: string, attributes?: Attributes) => values.get(keyOf(name, attributes)) ?? 0;
  const set = (name: string, attributes: Attributes | undefined, value: number) => {
    values.set(keyOf(name, attributes), value);
  };
  return {
    read,
    createCounter: (name) => ({ add: (value, attributes) => set(name, attributes, read(name, attributes) + value) }),
    createGauge: (name) => ({ record: (value, attributes) => set(name, attributes, value) }),
    createHistogram: (name) => ({ record: (_value, attributes) => set(name, attributes, read(name, attributes) + 1) }),
  };
}
