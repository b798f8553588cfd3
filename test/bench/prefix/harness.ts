/** What the prefix benchmarks share: contestants in processes of their own, in alternation, and tables of medians. */
import { execFileSync } from 'node:child_process';

/** What one run of a contestant measured. */
export type Measurement = Readonly<Record<string, number | string>>;

/** A program that prints one JSON line. */
export interface Contestant {
  readonly name: string;
  /** Arguments for node, the program first. */
  readonly args: readonly string[];
}

/** A named part of the benchmark. Returns what is wrong with its results: an empty list is a success. */
export interface Workload {
  readonly name: string;
  run(): readonly string[];
}

/** Runs every contestant once a round, so that what else the machine does meets all alike. */
export function alternate(contestants: readonly Contestant[], rounds: number): Map<string, Measurement[]> {
  const results = new Map<string, Measurement[]>(contestants.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const { name, args } of contestants) {
      const options = ['--expose-gc', '--max-old-space-size=12000'];
      const output = execFileSync(process.execPath, [...options, ...args], { encoding: 'utf8', maxBuffer: 1 << 24 });
      results.get(name)?.push(JSON.parse(output) as Measurement);
    }
  }
  return results;
}

export function median(measurements: readonly Measurement[] | undefined, field: string): number {
  const values = (measurements ?? []).map((one) => Number(one[field])).sort((a, b) => a - b);
  return values[values.length >> 1] ?? Number.NaN;
}

/** The smallest: what the machine can do when nothing disturbs it. */
export function least(measurements: readonly Measurement[] | undefined, field: string): number {
  return (measurements ?? []).reduce((min, one) => Math.min(min, Number(one[field])), Number.POSITIVE_INFINITY);
}

/** Columns aligned to the right, the first to the left. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  }
  const align = (cell: string, i: number): string =>
    i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0);
  return rows.map((row) => row.map(align).join('  ')).join('\n');
}

export const microseconds = (ns: number): string => (ns / 1000).toFixed(2);
