/**
 * One exchange with a pair, the way SGLang's pairs work: both workers get the request at once, with a room number under
 * which the one hands the prompt's KV to the other; the decode worker's answer is the client's.
 *
 * Each leg ends a lease of its own (WK-32): the prefill lease ends with the prefill answer, the decode lease with the body
 * that is relayed to the client.
 */
import { randomInt } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lease, LeaseOutcome, Worker } from 'kvroute';
import { classifyUpstream } from 'kvroute/engines';
import { type Dispatcher, request } from 'undici';
import { type Answer, forwardedHeaders } from '../shared/gateway/relay.js';

export interface PairRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: object;
  /** Sequences it asks for: the places it takes on the decode worker. */
  readonly width: number;
}

/** A leg that failed before the client got a byte: with the worker's own answer, or with an error. */
export type LegFailure =
  | { readonly worker: Worker; readonly answer: Answer }
  | { readonly worker: Worker; readonly answer?: undefined; readonly error: unknown };

/** How long a decode worker's refusal waits for the prefill worker's answer. */
const verdictMs = 250;

/** The decode worker's answer, once the prefill worker has done its part too; or which leg failed first. */
export async function sendToBoth(
  dispatcher: Dispatcher,
  prefill: Lease,
  decode: Lease,
  { path, headers, body }: PairRequest,
  client: AbortSignal,
): Promise<Answer | LegFailure> {
  const giveUp = new AbortController();
  const signal = AbortSignal.any([client, giveUp.signal]);
  const bytes = JSON.stringify({
    ...body,
    bootstrap_host: new URL(prefill.worker.url ?? '').hostname,
    bootstrap_port: prefill.worker.bootstrapPort,
    bootstrap_room: randomInt(2 ** 47),
  });
  const send = ({ url }: Worker) =>
    request(`${url}${path}`, { method: 'POST', headers: forwardedHeaders(headers), body: bytes, dispatcher, signal });

  const failures: LegFailure[] = [];
  /** Ends a leg for good; the other one is of no use any more and did nothing wrong (CB-33). */
  const fail = (lease: Lease, outcome: LeaseOutcome, failure: LegFailure) => {
    lease.end(outcome);
    failures.push(failure);
    prefill.end({ aborted: true });
    decode.end({ aborted: true });
    giveUp.abort();
  };
  const failWith = (lease: Lease, error: unknown) =>
    fail(lease, classifyUpstream({ error, signal }), { worker: lease.worker, error });

  const prefilling = (async () => {
    try {
      const answer = await wholeAnswer(await send(prefill.worker));
      if (answer.statusCode < 400) prefill.end({ status: answer.statusCode });
      else fail(prefill, { status: answer.statusCode }, { worker: prefill.worker, answer });
    } catch (error) {
      failWith(prefill, error);
    }
  })();
  const decoding = (async () => {
    try {
      const response = await send(decode.worker);
      const { statusCode, headers, body } = response;
      if (statusCode < 400) {
        // Nobody reads it yet: when the prefill worker fails now, its error has been told already.
        body.on('error', () => {});
        return { statusCode, headers, body: decode.follow(body, { status: statusCode }) };
      }
      const answer = await wholeAnswer(response);
      // Who waits for KV in vain refuses too. Whose fault it was, the prefill worker's answer tells, if it comes soon.
      await Promise.race([prefilling, sleep(verdictMs, undefined, { ref: false })]);
      fail(decode, { status: statusCode }, { worker: decode.worker, answer });
    } catch (error) {
      failWith(decode, error);
    }
    return undefined;
  })();
  const [answer] = await Promise.all([decoding, prefilling]);
  return failures[0] ?? (answer as Answer);
}

async function wholeAnswer(response: Awaited<ReturnType<typeof request>>): Promise<Answer> {
  const { statusCode, headers, body } = response;
  return { statusCode, headers, body: Buffer.from(await body.arrayBuffer()) };
}
