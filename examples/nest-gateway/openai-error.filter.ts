/** Answers every failure in the shape OpenAI clients understand. */
import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import type { Response } from 'express';
import { sendError } from '../shared/gateway/error-response.js';
import { GatewayException, NotSelectedException } from './exceptions.js';

@Catch()
export class OpenAiErrorFilter implements ExceptionFilter {
  readonly #logger = new Logger('Gateway');

  catch(error: unknown, host: ArgumentsHost): void {
    const res = host.switchToHttp().getResponse<Response>();
    if (error instanceof NotSelectedException) res.set(error.headers);
    // Nest's exceptions have a status, and so have the errors of Express's parsers.
    const { status = 500, message } = error as { readonly status?: number; readonly message: string };
    if (error instanceof GatewayException) {
      sendError(res, status, error.code, message);
    } else if (status >= 400 && status < 500) {
      sendError(res, status, 'invalid_request', message);
    } else {
      this.#logger.error(error);
      sendError(res, 500, 'internal_error', 'the gateway failed');
    }
  }
}
