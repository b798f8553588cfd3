/** `@ClientSignal() signal: AbortSignal`: aborts when the client leaves before its answer is complete. */
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Response } from 'express';
import { clientSignal } from '../shared/gateway/client-signal.js';

/** Guards and interceptors may have waited before the handler runs; a client that left meanwhile is noticed too. */
export const ClientSignal = createParamDecorator((_data: unknown, context: ExecutionContext) =>
  clientSignal(context.switchToHttp().getResponse<Response>()),
);
