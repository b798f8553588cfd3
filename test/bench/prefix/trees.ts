/** The prefix trees beside the fastest prototype of ../shared/bench for each workload. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  alternate,
  type Contestant,
  least,
  type Measurement,
  median,
  microseconds,
  table,
  type Workload,
} from './harness.js';
import { compactTrace } from './tree-requests.js';

/** What any correct tree matches, without eviction (performance.md of ../shared/design). */
const oracles: Readonly<Record<string, { readonly matched?: number; readonly fp: number }>> = {
  'chat.str': { matched: 166_783_063, fp: 3958895088 },
  'rag.str': { matched: 224_796_331, fp: 2925897588 },
  'unique.str': { matched: 51_755, fp: 2256202300 },
  'chat.tok': { matched: 41_509_904, fp: 2199182421 },
  'rag.tok': { matched: 56_184_000, fp: 3687048549 },
  'unique.tok': { matched: 0, fp: 918668165 },
  'mooncake.mck': { matched: 54_097_552, fp: 828804311 },
};

/** Pairs of workload and prototype; S5 is the fastest on unique prompts, S3 on all other text. */
const pairs = [
  ['chat.str', 'S3'],
  ['rag.str', 'S3'],
  ['unique.str', 'S5'],
  ['chat.tok', 'T4'],
  ['rag.tok', 'T4'],
  ['unique.tok', 'T4'],
] as const;

const traces = ['mooncake.mck', 'mooncake-synthetic.mck'] as const;

export interface TreeBenchOptions {
  readonly shared: string;
  readonly workloads: string;
  readonly rounds: number;
}

const measureTrees = fileURLToPath(new URL('measure-trees.ts', import.meta.url));

function contestants(mode: string, file: string, prototype: string, shared: string): Contestant[] {
  return [
    { name: 'package', args: ['--import', 'tsx', measureTrees, mode, file] },
    { name: prototype, args: [path.join(shared, 'bench', 'measure.mjs'), mode, prototype, file] },
  ];
}

function check(name: string, measurements: readonly Measurement[] | undefined): string[] {
  const oracle = oracles[name];
  if (oracle === undefined) return [];
  return (measurements ?? []).flatMap(({ fp, matched_storage_units: matched }) =>
    fp === oracle.fp && matched === oracle.matched
      ? []
      : [`${name}: matched ${matched}, fingerprint ${fp}; expected ${oracle.matched}, ${oracle.fp}`],
  );
}

const megabytes = (of: readonly Measurement[] | undefined): number => median(of, 'heap_mb') + median(of, 'external_mb');

/** Text and token workloads, each as throughput and as memory. */
function pairWorkload([name, prototype]: readonly [string, string], options: TreeBenchOptions): Workload {
  const file = path.join(options.workloads, name);
  return {
    name,
    run: () => {
      const speed = alternate(contestants('thr', file, prototype, options.shared), options.rounds);
      const memory = alternate(contestants('mem', file, prototype, options.shared), 1);
      const [ours, theirs] = [speed.get('package'), speed.get(prototype)];
      const [ourMemory, theirMemory] = [megabytes(memory.get('package')), megabytes(memory.get(prototype))];
      const row = (who: string, of: readonly Measurement[] | undefined, mb: number): string[] => [
        `${name} ${who}`,
        microseconds(median(of, 'mi_ns')),
        microseconds(least(of, 'mi_ns')),
        microseconds(median(of, 'mi_cpu_ns')),
        microseconds(median(of, 'mi_p50')),
        microseconds(median(of, 'mi_p99')),
        microseconds(median(of, 'match_ns')),
        median(of, 'evict50_ms').toFixed(1),
        median(of, 'remove_ms').toFixed(1),
        mb.toFixed(1),
      ];
      const ratio = (field: string, statistic = median): string =>
        (statistic(theirs, field) / statistic(ours, field)).toFixed(2);
      console.log(
        table([
          ['µs a request', 'm+i', 'best', 'CPU', 'p50', 'p99', 'match', 'evict½ ms', 'remove ms', 'MB'],
          row('package', ours, ourMemory),
          row(prototype, theirs, theirMemory),
          [
            'ratio (above 1: package ahead)',
            ratio('mi_ns'),
            ratio('mi_ns', least),
            ratio('mi_cpu_ns'),
            ratio('mi_p50'),
            ratio('mi_p99'),
            ratio('match_ns'),
            ratio('evict50_ms'),
            ratio('remove_ms'),
            (theirMemory / ourMemory).toFixed(2),
          ],
        ]),
      );
      const ms = (field: string): string => least(ours, field).toFixed(2);
      console.log(
        `longest pause of the package, ms (of that CPU): eviction ${ms('evict50_pause_ms')} (${ms('evict50_pause_cpu_ms')}), ` +
          `removal ${ms('remove_pause_ms')} (${ms('remove_pause_cpu_ms')}); the prototype does either in one go. ` +
          `In a full tree m+i takes ${microseconds(median(ours, 'full_mi_ns'))} µs, p99 ${microseconds(median(ours, 'full_mi_p99'))} µs.\n`,
      );
      return [...check(name, ours), ...check(name, memory.get('package'))];
    },
  };
}

/** A Mooncake trace, replayed end to end. */
function traceWorkload(name: string, options: TreeBenchOptions): Workload {
  const file = path.join(options.workloads, name);
  return {
    name,
    run: () => {
      if (!existsSync(file)) compactTrace(path.join(options.shared, 'data', 'mooncake_synthetic_trace.jsonl'), file);
      const results = alternate(contestants('mck', file, 'T4', options.shared), options.rounds);
      const [ours, theirs] = [results.get('package'), results.get('T4')];
      const row = (who: string, of: readonly Measurement[] | undefined): string[] => [
        `${name} ${who}`,
        microseconds(median(of, 'mi_ns')),
        microseconds(least(of, 'mi_ns')),
        microseconds(median(of, 'mi_p50')),
        microseconds(median(of, 'mi_p99')),
        megabytes(of).toFixed(1),
      ];
      const ratio = (field: string, statistic = median): string =>
        (statistic(theirs, field) / statistic(ours, field)).toFixed(2);
      console.log(
        `${table([
          ['µs a request', 'm+i', 'best', 'p50', 'p99', 'MB'],
          row('package', ours),
          row('T4', theirs),
          [
            'ratio (above 1: package ahead)',
            ratio('mi_ns'),
            ratio('mi_ns', least),
            ratio('mi_p50'),
            ratio('mi_p99'),
            (megabytes(theirs) / megabytes(ours)).toFixed(2),
          ],
        ])}\n`,
      );
      const [mine, other] = [ours?.[0], theirs?.[0]];
      const differs = mine?.fp !== other?.fp || mine?.matched !== other?.matched;
      return [...check(name, ours), ...(differs ? [`${name}: ${mine?.fp} here, ${other?.fp} in the prototype`] : [])];
    },
  };
}

export function treeWorkloads(options: TreeBenchOptions): Workload[] {
  return [...pairs.map((pair) => pairWorkload(pair, options)), ...traces.map((name) => traceWorkload(name, options))];
}
