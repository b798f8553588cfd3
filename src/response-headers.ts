/**
 * The headers a gateway puts on its answers (OB-100, OB-101, OV-20). Pure; the host strips what workers send under the
 * same names, so that clients can tell who speaks.
 */
import { checkNumber, checkObject } from './errors.js';
import type { NotSelected } from './selection.js';
import { isVisibleAscii } from './sticky/routing-key.js';
import type { Worker } from './workers/worker.js';

/** What an answer is about: a worker's answer is relayed, or the gateway answers because nobody could be selected. */
export type Answered =
  | Worker
  | { readonly ok: true; readonly worker: Worker }
  | { readonly ok: true; readonly decode: { readonly worker: Worker } }
  | NotSelected;

/**
 * Headers for an answer.
 *
 * A worker, or a selection of one: `x-smg-routed-worker-id` with its URL as registered, its id when it has none. Of the
 * legs of a disaggregated request the decode worker is named. Only HTTP workers are named, and only when the value is a
 * legal header value, visible ASCII (OB-100).
 *
 * Nobody selected: `X-SMG-Error-Code` with the code (OB-101), for a shed also `Retry-After` in whole seconds, rounded up
 * (OV-20).
 *
 * @throws TypeError for what is none of these
 */
export function responseHeaders(answered: Answered): Readonly<Record<string, string>> {
  checkObject(answered, 'answered');
  if ('ok' in answered && !answered.ok) {
    const { code, retryAfterMs } = answered;
    const headers = { 'X-SMG-Error-Code': code };
    if (retryAfterMs === undefined) return headers;
    checkNumber(retryAfterMs, 'retryAfterMs');
    return { ...headers, 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) };
  }
  const worker = checkObject(servedBy(answered), 'worker');
  const name = worker.url ?? worker.id;
  return worker.connectionMode === 'http' && isVisibleAscii(name) ? { 'x-smg-routed-worker-id': name } : {};
}

function servedBy(answered: Exclude<Answered, NotSelected>): Worker {
  if (!('ok' in answered)) return answered;
  return 'decode' in answered ? checkObject(answered.decode, 'decode').worker : answered.worker;
}
