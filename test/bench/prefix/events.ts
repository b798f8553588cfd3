/**
 * The KV-event index against the prototype of ../shared/bench: alternating runs in processes of their own, each checked
 * against the oracle, and the ratio of the medians. Times are CPU times; above 1 the package is faster, or smaller.
 *
 * tsx test/bench/prefix/events.ts FILE.evt PROTOTYPE.mjs [rounds]
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

type Measures = Readonly<Record<string, number>>;

const [file = '', prototype = '', rounds = '5'] = process.argv.slice(2);
const program = fileURLToPath(new URL('measure-events.ts', import.meta.url));

function measure(subject: 'package' | 'prototype'): Measures {
  const args = ['--expose-gc', '--import', 'tsx', program, subject, file, prototype];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1 << 24 })) as Measures;
}

function median(runs: readonly Measures[], field: string): number {
  const values = runs.map((run) => run[field] as number).sort((a, b) => a - b);
  return values[values.length >> 1] as number;
}

const rows = [
  ['apply a stored block (names and hashing included)', 'apply_ns_per_block', 'ns'],
  ['hash a block of 16 tokens', 'hash_ns_per_block', 'ns'],
  ['query of 64 to 512 blocks (hashing included)', 'query_ns', 'ns'],
  ['remove a block', 'remove_ns_per_block', 'ns'],
  ['remove a worker of 57 000 blocks', 'remove_worker_ms', 'ms'],
  ['its longest pause', 'remove_worker_longest_ms', 'ms'],
  ['longest pause while applying', 'apply_longest_ms', 'ms'],
  ['memory', 'memory_mb', 'MB'],
] as const;

if (!existsSync(file) || !existsSync(prototype)) {
  console.log('events: not run, the workload or the prototype is absent');
} else {
  const runs: Record<'package' | 'prototype', Measures[]> = { package: [], prototype: [] };
  for (let round = 0; round < Number(rounds); round++) {
    runs.package.push(measure('package'));
    runs.prototype.push(measure('prototype'));
  }
  for (const [title, field, unit] of rows) {
    const ours = median(runs.package, field);
    const theirs = median(runs.prototype, field);
    const ratio = (theirs / ours).toFixed(2);
    console.log(`${ratio.padStart(6)}×  ${title}: ${ours.toFixed(1)} ${unit}, prototype ${theirs.toFixed(1)} ${unit}`);
  }
}
