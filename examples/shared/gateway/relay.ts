/** Passing requests on to workers and their answers back, byte for byte. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** A worker's answer: a body to relay, or an error's bytes, read so that a retry leaves nothing open. */
export interface Answer {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable | Buffer;
}

/** Relays an answer; resolves when it was relayed or either end is gone. */
export async function relay(answer: Answer, res: ServerResponse): Promise<void> {
  res.statusCode = answer.statusCode;
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
  // Workers get the body unpacked.
  'content-encoding',
  'content-length',
  'x-smg-routing-tokens',
]);
const notRelayed = new Set([...connectionHeaders, 'x-smg-error-code', 'x-smg-routed-worker-id']);

/** The client's headers as a worker gets them. */
export function forwardedHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !notForwarded.has(name)));
}
