/** Answers the gateway gives itself, in the shape OpenAI clients understand. */
import type { Response } from 'express';

/** `X-SMG-Error-Code` tells them from the workers' own errors. */
export function sendError(res: Response, status: number, code: string, message: string): void {
  if (res.headersSent || res.destroyed) return;
  res.setHeader('x-smg-error-code', code);
  const type = status < 500 ? 'invalid_request_error' : 'service_unavailable';
  res.status(status).json({ error: { message, type, param: null, code } });
}
