/**
 * Selections per second of each policy at 4, 64, 1 024 and 10 000 workers, through the router: `npm run bench`.
 *
 * Every cell runs in rounds that alternate with all others, and the median counts, because machines are noisy; compare
 * columns and rows of one run, not runs. A policy that is O(1) by design must not get slower with the fleet by more than
 * what a larger working set costs the processor's caches: the last column shows the growth from 64 to 10 000 workers.
 * A second table shows what `exclude` adds in the largest fleet, as retries and hedges use it.
 */
import { performance } from 'node:perf_hooks';
import { createRouter, type PolicyConfig, type RouteRequest, type Router } from 'kvroute';

const fleetSizes = [4, 64, 1024, 10_000];
const exclusions = [0, 1, 3];
const rounds = Number(process.env.KVROUTE_BENCH_ROUNDS ?? 5);
const roundMs = 60;

interface Subject {
  readonly label: string;
  readonly policy: PolicyConfig;
  /** Does not depend on the fleet's size, or as log n. */
  readonly flat: boolean;
  readonly requests: readonly RouteRequest[];
}

const plain: readonly RouteRequest[] = [{ model: 'm' }];
const keyed: readonly RouteRequest[] = Array.from({ length: 1000 }, (_, i) => ({
  model: 'm',
  headers: { 'x-smg-routing-key': `session-${i}` },
}));
const opening = 'You are a helpful assistant. '.repeat(30);
const chats: readonly RouteRequest[] = Array.from({ length: 1000 }, (_, i) => ({
  model: 'm',
  text: `${opening}conversation ${i % 100} turn ${i}`,
}));
const long: readonly RouteRequest[] = Array.from({ length: 8 }, (_, i) => {
  const tokens = new Uint32Array(128_000);
  for (let t = 0; t < tokens.length; t++) tokens[t] = (t * 2654435761 + (t < 120_000 ? 0 : i)) >>> 0;
  return { model: 'm', tokens };
});

const subjects: readonly Subject[] = [
  { label: 'random', policy: 'random', flat: true, requests: plain },
  { label: 'passthrough', policy: 'passthrough', flat: true, requests: plain },
  { label: 'round_robin', policy: 'round_robin', flat: true, requests: plain },
  { label: 'power_of_two', policy: 'power_of_two', flat: true, requests: plain },
  { label: 'manual (pinned keys)', policy: 'manual', flat: true, requests: keyed },
  { label: 'consistent_hashing', policy: 'consistent_hashing', flat: true, requests: keyed },
  { label: 'prefix_hash', policy: 'prefix_hash', flat: true, requests: chats },
  { label: 'cache_aware, 1 kB chats', policy: 'cache_aware', flat: true, requests: chats },
  { label: 'cache_aware, 128 k tokens', policy: 'cache_aware', flat: true, requests: long },
  { label: 'bucket', policy: { name: 'bucket', legs: 'any' }, flat: false, requests: chats },
  { label: 'least_load', policy: 'least_load', flat: false, requests: plain },
];

interface Cell {
  readonly router: Router;
  readonly requests: readonly RouteRequest[];
  readonly nsPerSelection: number[];
  next: number;
}

const idOf = (worker: number): string => `http://10.0.${worker >> 8}.${worker & 255}:8000`;

/** @param excluded how many workers each request excludes: others from request to request */
async function prepare(subject: Subject, workers: number, excluded = 0): Promise<Cell> {
  const router = await createRouter({ policy: subject.policy, seed: 7 });
  for (let i = 0; i < workers; i++) router.addWorker({ id: idOf(i), models: ['m'] });
  router.reportLoads(
    router
      .workers()
      .map((worker, i) => [
        worker.id,
        { waitingRequests: i % 7, waitingTokens: (i % 7) * 512, kvCacheUsage: (i % 90) / 100, tokensPerSecond: 2000 },
      ]),
  );
  const requests = Array.from({ length: Math.max(64, subject.requests.length) }, (_, i): RouteRequest => {
    const request = subject.requests[i % subject.requests.length] as RouteRequest;
    if (excluded === 0) return request;
    return { ...request, exclude: Array.from({ length: excluded }, (_, k) => idOf((i * 7919 + k * 613) % workers)) };
  });
  const cell: Cell = { router, requests, nsPerSelection: [], next: 0 };
  measure(cell, 30);
  cell.nsPerSelection.length = 0;
  return cell;
}

/** Selects for `ms` milliseconds and notes the mean time of one selection. */
function measure(cell: Cell, ms: number): void {
  const { router, requests } = cell;
  const start = performance.now();
  let selections = 0;
  let elapsed = 0;
  do {
    for (let i = 0; i < 16; i++) {
      router.selectWorker(requests[cell.next] as RouteRequest);
      cell.next = (cell.next + 1) % requests.length;
    }
    selections += 16;
    elapsed = performance.now() - start;
  } while (elapsed < ms);
  cell.nsPerSelection.push((elapsed * 1e6) / selections);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

interface Row {
  readonly subject: Subject;
  readonly cells: readonly Cell[];
}

async function prepareRows(
  columns: readonly number[],
  cellOf: (s: Subject, c: number) => Promise<Cell>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const subject of subjects) {
    const cells: Cell[] = [];
    for (const column of columns) cells.push(await cellOf(subject, column));
    rows.push({ subject, cells });
  }
  for (let round = 0; round < rounds; round++)
    for (const { cells } of rows) for (const cell of cells) measure(cell, roundMs);
  return rows;
}

const rows = await prepareRows(fleetSizes, prepare);
const heads = fleetSizes.map((size) => `${size} workers`.padStart(22)).join('');
console.log(`Selections per second (ns each), median of ${rounds} rounds; Node ${process.version}\n`);
console.log(`${'policy'.padEnd(28)}${heads}${'10 000 : 64'.padStart(14)}`);
for (const { subject, cells } of rows) {
  const times = cells.map((cell) => median(cell.nsPerSelection));
  const columns = times
    .map((ns) => `${Math.round(1e9 / ns).toLocaleString('en')} (${Math.round(ns)})`.padStart(22))
    .join('');
  const growth = ((times[3] as number) / (times[1] as number)).toFixed(2);
  console.log(`${subject.label.padEnd(28)}${columns}${growth.padStart(14)}${subject.flat ? '' : '  linear'}`);
}

const largest = fleetSizes.at(-1) as number;
console.log(`\nNanoseconds a selection among ${largest} workers, by the number of workers that the request excludes\n`);
console.log(`${'policy'.padEnd(28)}${exclusions.map((excluded) => `${excluded} excluded`.padStart(16)).join('')}`);
for (const { subject, cells } of await prepareRows(exclusions, (s, excluded) => prepare(s, largest, excluded))) {
  const columns = cells.map((cell) => Math.round(median(cell.nsPerSelection)).toLocaleString('en').padStart(16));
  console.log(`${subject.label.padEnd(28)}${columns.join('')}`);
}
