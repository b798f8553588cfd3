/**
 * Measures one KV-event index on events.evt and prints one JSON line: CPU time for each step, the longest calls, memory. It fails when the index does not find what the oracle says.
 *
 * node --expose-gc --import tsx measure-events.ts package FILE.evt | prototype FILE.evt PROTOTYPE.mjs
 */
import { PackageSubject, PrototypeSubject, type Subject } from './event-subjects.js';
import { oracle, readEventWorkload } from './event-workload.js';

const [name, file = '', prototype = ''] = process.argv.slice(2);
const workload = readEventWorkload(file);
const { eventCount, blocks, queries, queryBlocks } = workload;
const result: Record<string, number | string> = { impl: name as string };

function cpuNanoseconds(task: () => void): number {
  const before = process.cpuUsage();
  task();
  const { user, system } = process.cpuUsage(before);
  return (user + system) * 1000;
}

/**
 * CPU time of many calls, and the longest of them. CPU time counts the helper threads of the engine, wall time whatever
 * else runs on the machine: what a call itself takes is at most the smaller of the two.
 */
class Calls {
  totalMs = 0;
  longestMs = 0;

  run(call: () => void): void {
    const started = performance.now();
    const cpuMs = cpuNanoseconds(call) / 1e6;
    this.totalMs += cpuMs;
    this.longestMs = Math.max(this.longestMs, Math.min(cpuMs, performance.now() - started));
  }
}

/** Twice, with a pause: the memory of array buffers is given back in the background. */
async function collect(): Promise<void> {
  for (let i = 0; i < 2; i++) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const makeSubject = async (): Promise<Subject> =>
  name === 'package' ? new PackageSubject() : await PrototypeSubject.load(prototype);
{
  // Compiled code is what is measured.
  const warmUp = await makeSubject();
  for (let i = 0; i < eventCount / 4; i++) warmUp.store(workload.event(i));
  for (let i = 0; i < 1000; i++) warmUp.query(queries[i] as Uint32Array);
  for (let i = 0; i < 1000; i++) warmUp.remove(workload.event(i));
  while (warmUp.removeWorker(1));
}

await collect();
const before = process.memoryUsage();
const subject = await makeSubject();
const applying = new Calls();
for (let i = 0; i < eventCount; i++) {
  const event = workload.event(i);
  applying.run(() => subject.store(event));
}
result.apply_ns_per_block = (applying.totalMs * 1e6) / blocks;
result.apply_longest_ms = applying.longestMs;
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

const removing = new Calls();
let removed = 0;
for (let i = eventCount - 1; i >= 0 && removed <= 100_000; i--) {
  const event = workload.event(i);
  if (event.parent === undefined) continue;
  removing.run(() => subject.remove(event));
  removed += event.hashes.length;
}
result.remove_ns_per_block = (removing.totalMs * 1e6) / removed;
result.remove_longest_ms = removing.longestMs;

const leaving = new Calls();
for (let isLeft = true; isLeft; ) {
  leaving.run(() => {
    isLeft = subject.removeWorker(0);
  });
}
result.remove_worker_ms = leaving.totalMs;
result.remove_worker_longest_ms = leaving.longestMs;
result.file_words = workload.words.length;
console.log(JSON.stringify(result));
