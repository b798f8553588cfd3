import { classifyUpstream, type UpstreamEvidence } from 'kvroute/engines';
import { describe, expect, it } from 'vitest';

const fetchFailed = (code: string) =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
const circular: Error & { cause?: unknown } = new Error('circle');
circular.cause = circular;
const throwing = {
  get name(): string {
    throw new Error('no name');
  },
};

const cases: [string, UpstreamEvidence, unknown][] = [
  ['a status', { status: 200 }, { status: 200 }],
  ['an error status', { status: 503 }, { status: 503 }],
  ['nothing', {}, { error: 'connect' }],
  ['a status that is none', { status: 0 }, { error: 'connect' }],
  ['a status that is no number', { status: Number.NaN, error: fetchFailed('ECONNREFUSED') }, { error: 'connect' }],
  ['a refused connection', { error: fetchFailed('ECONNREFUSED') }, { error: 'connect' }],
  ['a reset before the answer', { error: fetchFailed('UND_ERR_SOCKET') }, { error: 'connect' }],
  ['a thrown string', { error: 'boom' }, { error: 'connect' }],
  ['a circle of causes', { error: circular }, { error: 'connect' }],
  ['an error that throws', { error: throwing }, { error: 'connect' }],
  ['AbortSignal.timeout', { error: new DOMException('late', 'TimeoutError') }, { error: 'timeout' }],
  ['a headers time-out', { error: fetchFailed('UND_ERR_HEADERS_TIMEOUT') }, { error: 'timeout' }],
  ['ETIMEDOUT', { error: fetchFailed('ETIMEDOUT') }, { error: 'timeout' }],
  ['an abort', { error: new DOMException('gone', 'AbortError') }, { aborted: true }],
  ['an abort by code', { error: Object.assign(new Error('x'), { code: 'ABORT_ERR' }) }, { aborted: true }],
  ['the aborted signal over all else', { status: 500, signal: { aborted: true } }, { aborted: true }],
  ['a live signal', { status: 500, signal: { aborted: false } }, { status: 500 }],
  ['a body that broke off', { status: 200, error: fetchFailed('ECONNRESET') }, { error: 'body' }],
  ['a body that timed out', { status: 200, error: fetchFailed('UND_ERR_BODY_TIMEOUT') }, { error: 'body' }],
  ['a body aborted by the host', { status: 200, error: new DOMException('x', 'AbortError') }, { aborted: true }],
  ['a broken body of an error answer', { status: 500, error: new Error('x') }, { status: 500 }],
  ['a client error with status', { error: Object.assign(new Error('x'), { status: 429 }) }, { status: 429 }],
  ['a client error with statusCode', { error: Object.assign(new Error('x'), { statusCode: 404 }) }, { status: 404 }],
  ['a client error with a response', { error: { response: { status: 502 } } }, { status: 502 }],
  ['a thrown gRPC error', { error: Object.assign(new Error('x'), { code: 14 }) }, { status: 503 }],
  ['a thrown gRPC cancellation', { error: { code: 1 } }, { aborted: true }],
  ['an error code that is no gRPC status', { error: { code: 99 } }, { error: 'connect' }],
];

describe('classifyUpstream', () => {
  it.each(cases)('CB-20, CB-23, CB-25: %s', (_, evidence, outcome) => {
    expect(classifyUpstream(evidence)).toStrictEqual(outcome);
  });

  it.each([
    ['OK', 0, 200],
    ['UNKNOWN', 2, 500],
    ['INVALID_ARGUMENT', 3, 400],
    ['DEADLINE_EXCEEDED', 4, 504],
    ['NOT_FOUND', 5, 404],
    ['ALREADY_EXISTS', 6, 409],
    ['PERMISSION_DENIED', 7, 403],
    ['RESOURCE_EXHAUSTED', 8, 429],
    ['FAILED_PRECONDITION', 9, 400],
    ['ABORTED', 10, 409],
    ['OUT_OF_RANGE', 11, 400],
    ['UNIMPLEMENTED', 12, 501],
    ['INTERNAL', 13, 500],
    ['UNAVAILABLE', 14, 503],
    ['DATA_LOSS', 15, 500],
    ['UNAUTHENTICATED', 16, 401],
    ['NO_SUCH_STATUS', 17, 500],
  ])('CB-20: gRPC %s (%i) counts as %i', (name, code, status) => {
    expect(classifyUpstream({ grpcStatus: name })).toStrictEqual({ status });
    expect(classifyUpstream({ grpcStatus: code })).toStrictEqual({ status });
  });

  it('CB-23: gRPC CANCELLED is an abort', () => {
    expect(classifyUpstream({ grpcStatus: 'CANCELLED' })).toStrictEqual({ aborted: true });
    expect(classifyUpstream({ grpcStatus: 1 })).toStrictEqual({ aborted: true });
  });
});
