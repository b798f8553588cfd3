/**
 * One request: the router's loop selects a worker, this file sends it there and relays the answer. Every dispatch holds
 * a lease, and the first of these ends it: the end of the relayed body, an error, or the client's leaving.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request, Response } from 'express';
import { type Lease, type RouteRequest, type RouteResult, type Router, responseHeaders, type Worker } from 'kvroute';
import { classifyUpstream } from 'kvroute/engines';
import { type Dispatcher, request } from 'undici';
import { sendError } from './error-response.js';

export interface DispatchContext {
  readonly router: Router;
  readonly dispatcher: Dispatcher;
}

/** A worker's answer: a body to relay, or an error's bytes, read so that a retry leaves nothing open. */
interface Answer {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable | Buffer;
}

/** Dispatches a described request and answers it; resolves when the answer has been relayed or the client is gone. */
export async function dispatch(
  { router, dispatcher }: DispatchContext,
  described: RouteRequest,
  req: Request,
  res: Response,
): Promise<void> {
  const signal = res.locals.signal as AbortSignal;

  const attempt = async (worker: Worker, { lease }: { lease: Lease }): Promise<Answer> => {
    const { statusCode, headers, body } = await request(`${worker.url}${req.path}`, {
      method: 'POST',
      headers: forwardedHeaders(req.headers),
      body: req.body,
      dispatcher,
      signal,
    });
    if (statusCode >= 400) return { statusCode, headers, body: Buffer.from(await body.arrayBuffer()) };
    // From here on the worker is busy until its body has ended, long after this function returned.
    return { statusCode, headers, body: lease.follow(body, { status: statusCode }) };
  };

  let result: RouteResult<Answer>;
  try {
    result = await router.route(described, attempt, {
      signal,
      sleep: (ms) => sleep(ms, undefined, { signal }),
      outcomeOfError: (error) => classifyUpstream({ error, signal }),
    });
  } catch (error) {
    if (signal.aborted) return;
    const outcome = classifyUpstream({ error });
    const status = 'error' in outcome && outcome.error === 'timeout' ? 504 : 502;
    sendError(res, status, 'service_unavailable', 'no worker answered');
    return;
  }
  // The worker's name, or why there is none and when to come back.
  res.set(responseHeaders(result));
  if (result.ok) await relay(result.value, res);
  else sendError(res, 503, result.code, `no worker could be selected: ${result.reason}`);
}

async function relay(answer: Answer, res: Response): Promise<void> {
  res.status(answer.statusCode);
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined && !notRelayed.has(name)) res.setHeader(name, value);
  }
  if (Buffer.isBuffer(answer.body)) {
    res.end(answer.body);
    return;
  }
  // The client learns the status before the first token.
  res.flushHeaders();
  try {
    // Waits for a slow client, and takes down either end when the other breaks.
    await pipeline(answer.body, res);
  } catch {
    // The client is gone, or sees its connection break off because the worker's did; the lease knows which.
  }
}

/** Headers that concern one connection only. */
const connectionHeaders = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
const notForwarded = new Set([
  ...connectionHeaders,
  'host',
  'expect',
  // Express has unpacked the body.
  'content-encoding',
  'content-length',
  'x-smg-routing-tokens',
]);
const notRelayed = new Set([...connectionHeaders, 'x-smg-error-code', 'x-smg-routed-worker-id']);

function forwardedHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !notForwarded.has(name)));
}
