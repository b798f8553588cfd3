/**
 * Workers, candidates and reports for tests, as plain literals: everything has a sensible value, a test names only what
 * it is about. Nothing here is shared between two calls.
 */
import { checkObject, refuse } from '../errors.js';
import type { RankLoad, ReportStamp, SingleLoadReport } from '../load/report.js';
import type { Candidate } from '../workers/candidate.js';
import type { Worker } from '../workers/worker.js';

/** An idle candidate `w1` without a report, for a policy used alone. @throws TypeError for overrides that are no object */
export function fakeCandidate(overrides: Partial<Candidate> = {}): Candidate {
  return { id: 'w1', inFlight: 0, ...checkObject(overrides, 'overrides') };
}

/**
 * Candidates `w1` to `w<size>`, idle and without reports.
 *
 * @param each what differs; called with the position, from 0
 * @throws TypeError for a size that is no integer ≥ 0
 */
export function fakeFleet(size: number, each?: (index: number) => Partial<Candidate>): Candidate[] {
  if (!Number.isSafeInteger(size) || size < 0) throw refuse('size', 'an integer ≥ 0', size);
  if (each !== undefined && typeof each !== 'function') throw refuse('each', 'a function', each);
  return Array.from({ length: size }, (_, index) => fakeCandidate({ id: `w${index + 1}`, ...each?.(index) }));
}

/** The report of an idle engine that generates 2 000 tokens per second. @throws TypeError for overrides that are no object */
export function fakeReport(overrides: RankLoad & ReportStamp = {}): SingleLoadReport {
  return {
    runningRequests: 0,
    waitingRequests: 0,
    waitingTokens: 0,
    kvCacheUsage: 0,
    tokensPerSecond: 2000,
    ...checkObject(overrides, 'overrides'),
  };
}

/**
 * A registered worker as a host is given it, for tests of code that takes a `Worker`: ready, idle, `http://w1:8000` unless
 * it is given another URL, or an id alone. It follows no router: its properties are what the test says.
 *
 * @param overrides `connectionMode` follows from the URL and `available` from status, breaker and veto, unless given
 * @throws TypeError for overrides that are no object, and a URL that is no string
 */
export function fakeWorker(overrides: Partial<Worker> = {}): Worker {
  checkObject(overrides, 'overrides');
  const url = 'url' in overrides || overrides.id !== undefined ? overrides.url : 'http://w1:8000';
  if (url !== undefined && typeof url !== 'string') throw refuse('url', 'a string', url);
  const { status = 'ready', breakerState = 'closed', overload } = overrides;
  return {
    id: url ?? 'w1',
    url,
    kind: 'regular',
    connectionMode: url?.startsWith('grpc') ? 'grpc' : url?.startsWith('ipc:') ? 'zmq' : 'http',
    runtime: undefined,
    models: ['unknown'],
    labels: new Map(),
    status,
    available: status === 'ready' && breakerState !== 'open' && overload === undefined,
    inFlight: 0,
    activeKeys: 0,
    report: undefined,
    creditTokens: 0,
    creditRequests: 0,
    breakerState,
    consecutiveFailures: 0,
    consecutiveSuccesses: 0,
    overload,
    loadMonitorIntervalMs: undefined,
    bootstrapPort: undefined,
    selections: 0,
    revision: 0,
    ...overrides,
  };
}
