/**
 * The OpenAI-compatible routes. They write to the response themselves: an answer passes as it is, its status before the
 * first token. `StreamableFile` would hold the status back until then, and `@Sse` would queue what a slow client leaves.
 */
import { Controller, Inject, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { responseHeaders } from 'kvroute';
import { describeRequest, type RequestKind } from 'kvroute/engines';
import { relay } from '../shared/gateway/relay.js';
import { ClientSignal } from './client-signal.decorator.js';
import { GatewayException } from './exceptions.js';
import { WorkerDispatcher } from './worker-dispatcher.service.js';

@Controller()
export class CompletionsController {
  constructor(@Inject(WorkerDispatcher) private readonly dispatcher: WorkerDispatcher) {}

  @Post('v1/chat/completions')
  chat(@Req() req: Request, @Res() res: Response, @ClientSignal() signal: AbortSignal): Promise<void> {
    return this.#answer('openai_chat', req, res, signal);
  }

  @Post('v1/completions')
  completions(@Req() req: Request, @Res() res: Response, @ClientSignal() signal: AbortSignal): Promise<void> {
    return this.#answer('openai_completions', req, res, signal);
  }

  @Post('generate')
  generate(@Req() req: Request, @Res() res: Response, @ClientSignal() signal: AbortSignal): Promise<void> {
    return this.#answer('sglang_generate', req, res, signal);
  }

  async #answer(kind: RequestKind, req: Request, res: Response, signal: AbortSignal): Promise<void> {
    // Parsed once, to describe the request; the worker gets the bytes as they came.
    const described = describeRequest(kind, parseJson(req.body), req.headers);
    const answered = await this.dispatcher.dispatch(described, req, signal);
    if (answered === undefined) return;
    res.set(responseHeaders(answered));
    await relay(answered.value, res);
  }
}

function parseJson(bytes: unknown): object {
  try {
    const body: unknown = JSON.parse(String(bytes));
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body;
  } catch {
    // said below
  }
  throw new GatewayException(400, 'invalid_request', 'the body is not a JSON object');
}
