/** Notices that a client is gone. */
import type { ServerResponse } from 'node:http';

/**
 * An `AbortSignal` that aborts when the client leaves before its answer is complete. Make it before the first `await`.
 *
 * It watches the response: `close` on the request fires when its body was read, and a listener on the socket would
 * pile up over a keep-alive connection's requests. A client that is gone already is noticed too.
 */
export function clientSignal(res: ServerResponse): AbortSignal {
  const client = new AbortController();
  const leave = () => {
    if (!res.writableFinished) client.abort();
  };
  if (res.destroyed) leave();
  else res.once('close', leave);
  return client.signal;
}
