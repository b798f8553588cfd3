/**
 * One request through the router's loop: it selects a worker, this file sends the request there. Every dispatch holds a
 * lease, and the first of these ends it: the end of the relayed body, an error, or the client's leaving.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lease, RouteRequest, RouteResult, Router, Worker } from 'kvroute';
import { classifyUpstream } from 'kvroute/engines';
import { type Dispatcher, request } from 'undici';
import { type Answer, forwardedHeaders } from './relay.js';

export interface DispatchContext {
  readonly router: Router;
  readonly dispatcher: Dispatcher;
}

/** What a worker is sent. */
export interface ForwardedRequest {
  readonly path: string;
  /** The client's; those that concern its connection are left out. */
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * Dispatches a described request and returns a worker's answer, or why no worker could be selected.
 *
 * @param signal aborts when the client leaves: the lease ends at once and the worker's connection with it
 * @throws (rejects with) what the last attempt threw when no worker answered; `noAnswer` says what to tell the client
 */
export function dispatch(
  { router, dispatcher }: DispatchContext,
  described: RouteRequest,
  { path, headers, body }: ForwardedRequest,
  signal: AbortSignal,
): Promise<RouteResult<Answer>> {
  const attempt = async (worker: Worker, { lease }: { lease: Lease }): Promise<Answer> => {
    const answer = await request(`${worker.url}${path}`, {
      method: 'POST',
      headers: forwardedHeaders(headers),
      body,
      dispatcher,
      signal,
    });
    const { statusCode } = answer;
    if (statusCode >= 400) {
      return { statusCode, headers: answer.headers, body: Buffer.from(await answer.body.arrayBuffer()) };
    }
    // From here on the worker is busy until its body has ended, long after this function returned.
    return { statusCode, headers: answer.headers, body: lease.follow(answer.body, { status: statusCode }) };
  };
  return router.route(described, attempt, {
    signal,
    sleep: (ms) => sleep(ms, undefined, { signal }),
    outcomeOfError: (error) => classifyUpstream({ error, signal }),
  });
}

/** What a client is told when no worker answered. */
export interface NoAnswer {
  readonly status: 502 | 504;
  readonly code: 'service_unavailable';
  readonly message: string;
}

/** Silence is a 504, anything else a 502. */
export function noAnswer(error: unknown): NoAnswer {
  const outcome = classifyUpstream({ error });
  const isTimeout = 'error' in outcome && outcome.error === 'timeout';
  return { status: isTimeout ? 504 : 502, code: 'service_unavailable', message: 'no worker answered' };
}
