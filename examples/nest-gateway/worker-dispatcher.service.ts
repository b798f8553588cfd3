/** Sends requests to the workers the router selects. What cannot be answered becomes an exception with its status. */
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { type RouteRequest, type RouteResult, Router } from 'kvroute';
import { Agent } from 'undici';
import { dispatch, type ForwardedRequest, noAnswer } from '../shared/gateway/dispatch.js';
import type { Answer } from '../shared/gateway/relay.js';
import { GatewayException, NotSelectedException } from './exceptions.js';

/** An answer and the worker it came from. */
export type Answered = Extract<RouteResult<Answer>, { readonly ok: true }>;

@Injectable()
export class WorkerDispatcher implements OnApplicationShutdown {
  constructor(
    @Inject(Router) private readonly router: Router,
    @Inject(Agent) private readonly agent: Agent,
  ) {}

  /**
   * @param signal aborts when the client leaves
   * @returns an answer to relay; undefined when the client left first
   * @throws NotSelectedException when no worker may serve the request, GatewayException when none answered
   */
  async dispatch(
    described: RouteRequest,
    forwarded: ForwardedRequest,
    signal: AbortSignal,
  ): Promise<Answered | undefined> {
    const context = { router: this.router, dispatcher: this.agent };
    let result: RouteResult<Answer>;
    try {
      result = await dispatch(context, described, forwarded, signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      const { status, code, message } = noAnswer(error);
      throw new GatewayException(status, code, message, { cause: error });
    }
    if (!result.ok) throw new NotSelectedException(result);
    return result;
  }

  /** The HTTP server is closed by now: nobody waits for an answer any more. */
  async onApplicationShutdown(): Promise<void> {
    await this.agent.destroy();
  }
}
