/** Notices that a client is gone. */
import type { NextFunction, Request, Response } from 'express';

/**
 * Puts an `AbortSignal` into `res.locals.signal` that aborts when the client leaves before its answer is complete.
 *
 * It watches the response: `close` on the request fires when its body was read, and a listener on the socket would
 * pile up over a keep-alive connection's requests. A client that is gone already is noticed too.
 */
export function clientSignal(_req: Request, res: Response, next: NextFunction): void {
  const client = new AbortController();
  const leave = () => {
    if (!res.writableFinished) client.abort();
  };
  if (res.destroyed) leave();
  else res.once('close', leave);
  res.locals.signal = client.signal;
  next();
}
