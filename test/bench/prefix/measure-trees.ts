/**
 * Measures one prefix tree of the package on one workload file and prints one JSON line, with the field names of
 * ../shared/bench/measure.mjs so that both can be put side by side.
 *
 * tsx measure-trees.ts thr|mem FILE.str|FILE.tok, or mck FILE.mck
 */
import { performance } from 'node:perf_hooks';
import type { PrefixTree } from '../../../src/prefix/prefix-tree.js';
import { StringTree } from '../../../src/prefix/string-tree.js';
import { TokenTree } from '../../../src/prefix/token-tree.js';
import { threadCpuMs } from '../../support/thread-cpu.js';
import { mooncakeRequests, type Request, type Requests, readRequests } from './tree-requests.js';

const [mode = '', file = ''] = process.argv.slice(2);
const isText = file.endsWith('.str');
const result: Record<string, number | string> = { impl: 'package', kind: mode };
const workerIds = Array.from({ length: 16 }, (_, i) => `http://10.0.0.${i}:8000`);
const unlimited = Number.MAX_SAFE_INTEGER;
const threshold = 0.3;

function makeTree(maxTreeSize: number): PrefixTree<Request, unknown> {
  const tree = isText ? new StringTree({ maxTreeSize }) : new TokenTree({ maxTreeSize, blockSize: 16 });
  return tree as unknown as PrefixTree<Request, unknown>;
}

const collect = (): void => (globalThis as { gc?: () => void }).gc?.();
const nanoseconds = (): number => performance.now() * 1e6;
const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** What cache_aware does with a tree for each request: match, choose a tenant, insert. */
class Pass {
  readonly tree: PrefixTree<Request, unknown>;
  hits = 0;
  #next = 0;

  constructor(maxTreeSize: number = unlimited) {
    this.tree = makeTree(maxTreeSize);
  }

  /** Returns the matched units. */
  request(request: Request): number {
    const match = this.tree.match(request);
    let worker: string | undefined;
    if (match.matchedUnits > threshold * match.requestUnits) {
      this.hits++;
      worker = match.tenants[0];
    }
    this.tree.insert(request, worker ?? (workerIds[this.#next++ & 15] as string));
    return match.matchedUnits;
  }
}

function latencies(name: string, samples: Float64Array): void {
  samples.sort();
  result[`${name}_p50`] = samples[samples.length >> 1] as number;
  result[`${name}_p99`] = samples[Math.floor(samples.length * 0.99)] as number;
  result[`${name}_max`] = samples[samples.length - 1] as number;
}

function timedPass(pass: Pass, requests: readonly Request[]): Float64Array {
  const samples = new Float64Array(requests.length);
  for (const [i, request] of requests.entries()) {
    const before = nanoseconds();
    pass.request(request);
    samples[i] = nanoseconds() - before;
  }
  return samples;
}

/**
 * Maintenance in steps of half a millisecond until nothing is left. The longest step is what a caller would notice;
 * its CPU time leaves out what other programs, and the collector in the background, did meanwhile.
 */
function maintainInSteps(name: string, tree: PrefixTree<Request, unknown>, first: () => void): void {
  let total = 0;
  let longest = 0;
  let longestCpu = 0;
  let isLeft = true;
  for (let step = first; isLeft; step = () => undefined) {
    const started = performance.now();
    const cpu = threadCpuMs();
    step();
    isLeft = tree.maintain({ spent: () => performance.now() - started >= 0.5 });
    longestCpu = Math.max(longestCpu, threadCpuMs() - cpu);
    const took = performance.now() - started;
    longest = Math.max(longest, took);
    total += took;
  }
  result[`${name}_ms`] = total;
  result[`${name}_pause_ms`] = longest;
  result[`${name}_pause_cpu_ms`] = longestCpu;
}

/** UTF-16 length of the first `count` code points; for tokens the count itself. */
function storageUnits(request: Request, count: number): number {
  if (typeof request !== 'string') return count;
  let length = 0;
  for (let i = 0; i < count; i++) length += (request.codePointAt(length) as number) > 0xffff ? 2 : 1;
  return length;
}

function fingerprint(requests: Requests, matched: Float64Array): void {
  let hash = 0x811c9dc5;
  let sum = 0;
  for (let i = 0; i < requests.count; i++) {
    const units = storageUnits(requests.at(i), matched[i] as number);
    sum += units;
    hash = Math.imul(hash ^ units, 0x01000193);
  }
  result.matched_storage_units = sum;
  result.fp = hash >>> 0;
}

function throughput(): void {
  const source = readRequests(file);
  const requests = Array.from({ length: source.count }, (_, i) => source.at(i));
  const matched = new Float64Array(requests.length);
  collect();
  let pass = new Pass();
  const cpu = cpuMs();
  const started = nanoseconds();
  for (let i = 0; i < requests.length; i++) matched[i] = pass.request(requests[i] as Request);
  result.mi_ns = (nanoseconds() - started) / requests.length;
  result.mi_cpu_ns = ((cpuMs() - cpu) * 1e6) / requests.length;
  result.mi_matched = matched.reduce((sum, units) => sum + units, 0);
  result.nodes = pass.tree.nodeCount;
  const total = pass.tree.size;
  fingerprint(source, matched);

  const matching = nanoseconds();
  for (const request of requests) pass.tree.match(request);
  result.match_ns = (nanoseconds() - matching) / requests.length;

  const { tree } = pass;
  maintainInSteps('evict50', tree, () => {
    tree.maxTreeSize = Math.floor(total / 2);
  });

  pass = new Pass();
  latencies('mi', timedPass(pass, requests));
  maintainInSteps('remove', pass.tree, () => pass.tree.removeTenant(workerIds[3] as string));

  // A tree that is always full: every insert evicts.
  pass = new Pass(Math.floor(total / 2));
  const evicting = nanoseconds();
  const samples = timedPass(pass, requests);
  result.full_mi_ns = (nanoseconds() - evicting) / requests.length;
  latencies('full_mi', samples);
}

/** Requests are decoded one by one, untimed; memory is read after a full collection. */
function memory(source: Requests): void {
  collect();
  collect();
  const before = process.memoryUsage();
  const pass = new Pass();
  const samples = new Float64Array(source.count);
  const matched = new Float64Array(source.count);
  let total = 0;
  for (let i = 0; i < source.count; i++) {
    const request = source.at(i);
    const started = nanoseconds();
    matched[i] = pass.request(request);
    samples[i] = nanoseconds() - started;
    total += samples[i] as number;
  }
  result.mi_ns = total / source.count;
  latencies('mi', samples);
  collect();
  collect();
  const after = process.memoryUsage();
  result.heap_mb = (after.heapUsed - before.heapUsed) / 2 ** 20;
  result.external_mb = (after.external - before.external) / 2 ** 20;
  result.rss_mb = (after.rss - before.rss) / 2 ** 20;
  result.nodes = pass.tree.nodeCount;
  result.matched = matched.reduce((sum, units) => sum + units, 0);
  fingerprint(source, matched);
}

if (mode === 'thr') throughput();
else memory(mode === 'mck' ? mooncakeRequests(file) : readRequests(file));
process.stdout.write(`${JSON.stringify(result)}\n`);
