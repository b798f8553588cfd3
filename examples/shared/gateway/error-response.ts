/** Answers the gateway gives itself, in the shape OpenAI clients understand. */
import type { ServerResponse } from 'node:http';

/** `X-SMG-Error-Code` tells them from the workers' own errors. */
export function sendError(res: ServerResponse, status: number, code: string, message: string): void {
  if (res.headersSent || res.destroyed) return;
  const type = status < 500 ? 'invalid_request_error' : 'service_unavailable';
  res.statusCode = status;
  res.setHeader('content-type', 'application/json');
  res.setHeader('x-smg-error-code', code);
  res.end(JSON.stringify({ error: { message, type, param: null, code } }));
}
