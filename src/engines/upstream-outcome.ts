/**
 * From what a host saw of a dispatch to a `LeaseOutcome`: HTTP status, gRPC status, thrown error, aborted body. The
 * breaker's rules are the router's (CB-20 to CB-25); this only names what happened. Never throws.
 */
import type { LeaseOutcome } from '../lease-outcome.js';
import { asRecord, type JsonRecord } from './payload.js';

/** What the host knows when a dispatch is over. Everything is optional; nothing at all counts as "no answer". */
export interface UpstreamEvidence {
  /** HTTP status of the worker's answer, when there was one. */
  readonly status?: number | undefined;
  /** gRPC status by name (`'UNAVAILABLE'`) or number (`14`). */
  readonly grpcStatus?: string | number | undefined;
  /** What the transport threw, before the answer or (with a `status`) while its body was read. */
  readonly error?: unknown;
  /** The client's abort signal, or anything with its `aborted`. When it is aborted nothing else counts (CB-23). */
  readonly signal?: { readonly aborted: boolean } | undefined;
}

/**
 * Classifies how a dispatch ended, for `lease.end(outcome)`.
 *
 * 1. the client's signal is aborted → `aborted`;
 * 2. a gRPC status → its HTTP status (CB-20); `CANCELLED` → `aborted`; an unknown one counts as `UNKNOWN`, 500;
 * 3. an HTTP status → that status, but an error after a 2xx means the body broke off: `body` (CB-25);
 * 4. only an error → the status it carries (`status`, `statusCode`, `response.status`, a gRPC `code`), else `aborted`
 *    for an abort, `timeout` for a time-out, and `connect` for the rest. Causes are followed;
 * 5. nothing → `connect`.
 */
export function classifyUpstream(evidence: UpstreamEvidence): LeaseOutcome {
  const { status, grpcStatus, error, signal } = (evidence ?? {}) as UpstreamEvidence;
  if (signal?.aborted === true) return { aborted: true };
  if (grpcStatus !== undefined) return fromGrpc(grpcStatus);
  if (!isHttpStatus(status)) return fromError(error);
  if (error === undefined || status < 200 || status > 299) return { status };
  return kindOfError(error) === 'aborted' ? { aborted: true } : { error: 'body' };
}

/** The gRPC statuses in the order of their numbers, with the HTTP status each stands for. */
const grpcStatuses: readonly (readonly [name: string, httpStatus: number])[] = [
  ['OK', 200],
  ['CANCELLED', 499],
  ['UNKNOWN', 500],
  ['INVALID_ARGUMENT', 400],
  ['DEADLINE_EXCEEDED', 504],
  ['NOT_FOUND', 404],
  ['ALREADY_EXISTS', 409],
  ['PERMISSION_DENIED', 403],
  ['RESOURCE_EXHAUSTED', 429],
  ['FAILED_PRECONDITION', 400],
  ['ABORTED', 409],
  ['OUT_OF_RANGE', 400],
  ['UNIMPLEMENTED', 501],
  ['INTERNAL', 500],
  ['UNAVAILABLE', 503],
  ['DATA_LOSS', 500],
  ['UNAUTHENTICATED', 401],
];

const cancelled = 1;

function fromGrpc(grpcStatus: string | number): LeaseOutcome {
  const code = typeof grpcStatus === 'number' ? grpcStatus : grpcStatuses.findIndex(([name]) => name === grpcStatus);
  if (code === cancelled) return { aborted: true };
  return { status: grpcStatuses[code]?.[1] ?? 500 };
}

function fromError(error: unknown): LeaseOutcome {
  for (const link of causes(error)) {
    const kind = kindOf(link);
    if (kind === 'aborted') return { aborted: true };
    if (kind !== undefined) return { error: kind };
    const status = read(link, 'status') ?? read(link, 'statusCode') ?? read(asRecord(read(link, 'response')), 'status');
    if (isHttpStatus(status)) return { status };
    const code = read(link, 'code');
    if (typeof code === 'number' && code > 0 && code < grpcStatuses.length) return fromGrpc(code);
  }
  return { error: 'connect' };
}

function kindOfError(error: unknown): 'aborted' | 'timeout' | undefined {
  for (const link of causes(error)) {
    const kind = kindOf(link);
    if (kind !== undefined) return kind;
  }
  return undefined;
}

const abortCodes: readonly unknown[] = ['ABORT_ERR', 'ERR_CANCELED', 'UND_ERR_ABORTED'];
const timeoutCodes: readonly unknown[] = [
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
];

/** What the names and codes of fetch, undici and Node say about an error. */
function kindOf(error: JsonRecord): 'aborted' | 'timeout' | undefined {
  const name = read(error, 'name');
  const code = read(error, 'code');
  if (name === 'TimeoutError' || timeoutCodes.includes(code)) return 'timeout';
  return name === 'AbortError' || abortCodes.includes(code) ? 'aborted' : undefined;
}

const maxCauses = 8;

/** The error and its causes, outermost first; bounded, as a chain may be a circle. */
function causes(error: unknown): readonly JsonRecord[] {
  const chain: JsonRecord[] = [];
  let link = asRecord(error);
  while (link !== undefined && chain.length < maxCauses) {
    chain.push(link);
    link = asRecord(read(link, 'cause'));
  }
  return chain;
}

/** A property of an error, inherited ones included: names and codes of DOM exceptions are getters. */
function read(value: JsonRecord | undefined, name: string): unknown {
  try {
    return value?.[name];
  } catch {
    return undefined;
  }
}

function isHttpStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 100 && (status as number) <= 599;
}
