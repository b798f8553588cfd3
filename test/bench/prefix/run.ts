/**
 * `npm run bench:prefix`: the prefix trees and the KV-event index beside the prototypes of ../shared/bench, each run in
 * a process of its own, in alternation. Every run of the package is checked against the oracle values; exit code 1 when
 * one differs. Without ../shared nothing is run, and it says so.
 *
 * npm run bench:prefix -- [--workloads DIR] [--rounds N] [--only NAME,NAME]
 *
 * DIR holds, or gets, about 1 GB of generated workloads; KVROUTE_BENCH_WORKLOADS names it too. Default: a folder in the
 * system's temporary directory.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Workload } from './harness.js';
import { treeWorkloads } from './trees.js';

const { values } = parseArgs({
  options: { workloads: { type: 'string' }, rounds: { type: 'string' }, only: { type: 'string' } },
});
const rounds = Number(values.rounds ?? 3);
const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const shared = here('../../../../shared');
const workloads =
  values.workloads ?? process.env.KVROUTE_BENCH_WORKLOADS ?? path.join(os.tmpdir(), 'kvroute-bench-workloads');

if (!existsSync(path.join(shared, 'bench', 'measure.mjs'))) {
  console.log('not run: ../shared/bench is absent, there is nothing to compare with');
  process.exit(0);
}
if (!existsSync(path.join(workloads, 'mooncake.mck'))) {
  console.log(`writing workloads to ${workloads}`);
  const trace = path.join(shared, 'data', 'mooncake_conversation_trace.jsonl');
  execFileSync(process.execPath, [path.join(shared, 'bench', 'workloads.mjs'), workloads], {
    env: { ...process.env, MOONCAKE: trace },
    stdio: 'inherit',
  });
}

const events: Workload = {
  name: 'events',
  run: () => {
    const files = [path.join(workloads, 'events.evt'), path.join(shared, 'bench', 'event-prototype.mjs')];
    try {
      execFileSync(process.execPath, ['--import', 'tsx', here('events.ts'), ...files, String(rounds)], {
        stdio: 'inherit',
      });
      return [];
    } catch {
      return ['events: the run failed'];
    }
  },
};

const chosen = values.only?.split(',');
const failures: string[] = [];
for (const workload of [...treeWorkloads({ shared, workloads, rounds }), events]) {
  if (chosen === undefined || chosen.includes(workload.name)) failures.push(...workload.run());
}
for (const failure of failures) console.log(`WRONG  ${failure}`);
if (failures.length === 0) console.log('all fingerprints are those of the oracle');
process.exitCode = failures.length === 0 ? 0 : 1;
