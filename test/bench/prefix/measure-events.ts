/**
 * Measures one KV-event index on events.evt and prints one JSON line: CPU time for each step, the longest calls, memory. It fails when the index does not find what the oracle says.
 *
 * node --expose-gc --import tsx measure-events.ts package FILE.evt | prototype FILE.evt PROTOTYPE.mjs
 */
import { PackageSubject, PrototypeSubject, type Subject } from './event-subjects.js';
import { oracle, readEventWorkload, type StoredBlocks } from './event-workload.js';

const [name, file = '', prototype = ''] = process.argv.slice(2);
const workload = readEventWorkload(file);
const { events, blocks, queries, queryBlocks } = workload;
const result: Record<string, number | string> = { impl: name as string };

function cpuNanoseconds(task: () => void): number {
  const before = process.cpuUsage();
  task();
  const { user, system } = process.cpuUsage(before);
  return (user + system) * 1000;
}

/** The longest of the calls, in milliseconds of CPU time: what a request would have had to wait on a machine of its own. */
function longestCall(calls: Iterable<() => void>): number {
  let longest = 0;
  for (const call of calls) {
    longest = Math.max(longest, cpuNanoseconds(call) / 1e6);
  }
  return longest;
}

/** Twice, with a pause: the memory of array buffers is given back in the background. */
async function collect(): Promise<void> {
  for (let i = 0; i < 2; i++) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

await collect();
const before = process.memoryUsage();
const subject: Subject = name === 'package' ? new PackageSubject() : await PrototypeSubject.load(prototype);
result.apply_ns_per_block =
  cpuNanoseconds(() => {
    result.apply_longest_ms = longestCall(events.map((event) => () => subject.store(event)));
  }) / blocks;
await collect();
const after = process.memoryUsage();
result.rss_mb = (after.rss - before.rss) / 2 ** 20;
result.memory_mb = (after.heapUsed - before.heapUsed + after.arrayBuffers - before.arrayBuffers) / 2 ** 20;
result.bytes_per_block = ((result.memory_mb as number) * 2 ** 20) / subject.blocks;

let check = 0;
result.hash_ns_per_block =
  cpuNanoseconds(() => {
    for (const tokens of queries) check ^= subject.hash(tokens);
  }) / queryBlocks;
result.hash_check = check;

let scoreSum = 0;
for (const tokens of queries) scoreSum += subject.query(tokens);
result.query_ns =
  cpuNanoseconds(() => {
    for (const tokens of queries) subject.query(tokens);
  }) / queries.length;

result.score_sum = scoreSum;
result.memberships = subject.memberships;
result.blocks = subject.blocks;
if (subject.keys !== undefined) result.keys = subject.keys;
if (scoreSum !== oracle.scoreSum || subject.memberships !== oracle.memberships) throw new Error(JSON.stringify(result));
if (subject.keys !== undefined && subject.keys !== oracle.prototypeKeys) throw new Error(JSON.stringify(result));

const lastEvents: StoredBlocks[] = [];
let removed = 0;
for (let i = events.length - 1; i >= 0 && removed <= 100_000; i--) {
  const event = events[i] as StoredBlocks;
  if (event.parent === undefined) continue;
  lastEvents.push(event);
  removed += event.hashes.length;
}
result.remove_ns_per_block =
  cpuNanoseconds(() => {
    for (const event of lastEvents) subject.remove(event);
  }) / removed;

result.remove_worker_ms =
  cpuNanoseconds(() => {
    let isLeft = true;
    const steps = function* (): Generator<() => void> {
      while (isLeft) yield () => (isLeft = subject.removeWorker(0));
    };
    result.remove_worker_longest_ms = longestCall(steps());
  }) / 1e6;
result.file_words = workload.words.length;
console.log(JSON.stringify(result));
