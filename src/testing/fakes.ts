/**
 * Workers, candidates and reports for tests, as plain literals: everything has a sensible value, a test names only what
 * it is about. Nothing here is shared between two calls.
 */
import type { RankLoad, ReportStamp, SingleLoadReport } from '../load/report.js';
import type { Candidate } from '../workers/candidate.js';
import type { Worker } from '../workers/worker.js';

/** An idle candidate `w1` without a report, for a policy used alone. */
export function fakeCandidate(overrides: Partial<Candidate> = {}): Candidate {
  return { id: 'w1', inFlight: 0, ...overrides };
}

/**
 * Candidates `w1` to `w<size>`, idle and without reports.
 *
 * @param each what differs; called with the position, from 0
 */
export function fakeFleet(size: number, each?: (index: number) => Partial<Candidate>): Candidate[] {
  return Array.from({ length: size }, (_, index) => fakeCandidate({ id: `w${index + 1}`, ...each?.(index) }));
}

/** The report of an idle engine that generates 2 000 tokens per second. */
export function fakeReport(overrides: RankLoad & ReportStamp = {}): SingleLoadReport {
  return {
    runningRequests: 0,
    waitingRequests: 0,
    waitingTokens: 0,
    kvCacheUsage: 0,
    tokensPerSecond: 2000,
    ...overrides,
  };
}

/**
 * A registered worker as a host is given it, for tests of code that takes a `Worker`: ready, idle, `http://w1:8000` unless
 * it is given another URL, or an id alone. It follows no router: its properties are what the test says.
 *
 * @param overrides `connectionMode` follows from the URL and `available` from status, breaker and veto, unless given
 */
export function fakeWorker(overrides: Partial<Worker> = {}): Worker {
  const url = 'url' in overrides || overrides.id !== undefined ? overrides.url : 'http://w1:8000';
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
