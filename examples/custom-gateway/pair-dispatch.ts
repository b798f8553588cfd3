/**
 * One request through a prefill and a decode worker: selecting both, waiting for a place on the decode worker, and another
 * pair when something failed before the client got a byte (LM-35).
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type LegsSelection,
  type NotSelected,
  RequestScope,
  type RouteRequest,
  type Router,
  responseHeaders,
  type SelectedLegs,
  type WorkerId,
} from 'kvroute';
import type { HostMetrics } from 'kvroute/metrics';
import type { Dispatcher } from 'undici';
import { noAnswer } from '../shared/gateway/dispatch.js';
import { sendError } from '../shared/gateway/error-response.js';
import { relay } from '../shared/gateway/relay.js';
import type { DecodeAdmission } from './decode-admission.js';
import { type LegFailure, type PairRequest, sendToBoth } from './pair-exchange.js';

export interface PairContext {
  readonly router: Router;
  readonly dispatcher: Dispatcher;
  readonly admission: DecodeAdmission;
  readonly metrics: HostMetrics;
  /** What a shed answers as `Retry-After`. */
  readonly loadPollIntervalMs: number;
}

const maxAttempts = 3;
const backoffMs = 50;
const retryableStatus = new Set([408, 429, 500, 502, 503, 504]);

/** Of the client's request, for each of its leases. */
interface BeginOptions {
  readonly signal: AbortSignal;
  readonly scope: RequestScope;
}

/** Answers a request; resolves when the answer was relayed or the client is gone, whose `signal` then aborts. */
export async function answerWithPair(
  context: PairContext,
  described: RouteRequest,
  forwarded: PairRequest,
  res: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  // However often a worker fails one request, it is one failure (CB-30).
  const scope = new RequestScope();
  const failed: WorkerId[] = [];
  for (let attempt = 1; ; attempt++) {
    const legs = selectAvoiding(context.router, described, failed);
    if (!legs.ok) return refuse(res, legs);
    const failure = await tryPair(context, legs, forwarded, res, { signal, scope });
    if (failure === undefined || signal.aborted) return;
    const isRetryable = failure.answer === undefined || retryableStatus.has(failure.answer.statusCode);
    if (!isRetryable) return tell(res, failure);
    if (attempt === maxAttempts) {
      context.metrics.retriesExhausted(failure.worker.kind, forwarded.path);
      return tell(res, failure);
    }
    failed.push(failure.worker.id);
    context.metrics.retry(failure.worker.kind, forwarded.path);
    await sleep(backoffMs * attempt, undefined, { signal }).catch(() => {});
  }
}

/** Without the workers that failed already; when that leaves no pair, with them. */
function selectAvoiding(router: Router, described: RouteRequest, failed: readonly WorkerId[]): LegsSelection {
  const legs = router.selectLegs({ ...described, exclude: failed });
  return legs.ok || legs.excluded === 0 ? legs : router.selectLegs(described);
}

/** One attempt: waits for a place on the decode worker, then holds it until the answer was relayed. */
async function tryPair(
  context: PairContext,
  legs: SelectedLegs,
  forwarded: PairRequest,
  res: ServerResponse,
  client: BeginOptions,
): Promise<LegFailure | undefined> {
  // Counted before anything is waited for, so that requests of the same moment see each other (B19).
  const prefill = legs.prefill.begin(client);
  const decode = legs.decode.begin(client);
  const place = await context.admission.admit(decode.worker, forwarded.width, client.signal);
  if (typeof place === 'string') {
    // Neither worker has seen the request: nothing is recorded.
    prefill.end();
    decode.end();
    if (place === 'shed') refuse(res, admissionShed(legs, context.loadPollIntervalMs));
    return undefined;
  }
  try {
    const answered = await sendToBoth(context.dispatcher, prefill, decode, forwarded, client.signal);
    if ('worker' in answered) return answered;
    for (const [name, value] of Object.entries(responseHeaders(legs))) res.setHeader(name, value);
    await relay(answered, res);
    return undefined;
  } finally {
    place.release();
  }
}

/** Nobody may serve the request: why, and when to come back. */
function refuse(res: ServerResponse, refusal: NotSelected): void {
  for (const [name, value] of Object.entries(responseHeaders(refusal))) res.setHeader(name, value);
  sendError(res, 503, refusal.code, `no worker could be selected: ${refusal.reason} (${refusal.leg})`);
}

/** A shed like any other, of a stage that only the host knows (OV-24). */
function admissionShed({ decode: { record } }: SelectedLegs, loadPollIntervalMs: number): NotSelected {
  return {
    ok: false,
    reason: 'overloaded',
    code: 'worker_overload_protection_shed',
    retryable: false,
    leg: 'decode',
    excluded: 0,
    stage: 'pd_admission',
    retryAfterMs: Math.max(1_000, loadPollIntervalMs),
    record,
  };
}

/** The worker's own words when it had any. */
async function tell(res: ServerResponse, failure: LegFailure): Promise<void> {
  if (failure.answer !== undefined) return relay(failure.answer, res);
  const { status, code, message } = noAnswer(failure.error);
  sendError(res, status, code, message);
}
