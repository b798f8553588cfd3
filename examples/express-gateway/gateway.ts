/**
 * An OpenAI-compatible gateway around a kvroute router: the part to copy. kvroute decides, the host does the I/O. The
 * body is parsed once, to describe the request; the worker gets the bytes as they came.
 */
import express, { type ErrorRequestHandler, type Express, type Request, type Response } from 'express';
import { type RouteRequest, type RouteResult, type Router, responseHeaders } from 'kvroute';
import { describeRequest } from 'kvroute/engines';
import { bindMetrics } from 'kvroute/metrics';
import { Registry } from 'prom-client';
import { Agent } from 'undici';
import { clientSignal } from '../shared/gateway/client-signal.js';
import { type DispatchContext, dispatch, noAnswer } from '../shared/gateway/dispatch.js';
import { sendError } from '../shared/gateway/error-response.js';
import { parseJsonBody } from '../shared/gateway/json-body.js';
import { startLoadPoller } from '../shared/gateway/load-poller.js';
import { promAdapter } from '../shared/gateway/prom-metrics.js';
import { type Answer, relay } from '../shared/gateway/relay.js';

export interface GatewayOptions {
  /** How often the workers are asked for their load. Tell the router the same `loadMonitorIntervalMs`. */
  readonly loadPollIntervalMs: number;
  /** Silence of a worker, before or within an answer, that counts as its failure. Default two minutes. */
  readonly workerTimeoutMs?: number;
}

export interface Gateway {
  /** An Express app: listen with it, or mount it in your own. */
  readonly app: Express;
  /** Stops polling and breaks off what is still open to the workers. */
  close(): Promise<void>;
}

/** The request formats and what `describeRequest` calls them. */
const routes = {
  '/v1/chat/completions': 'openai_chat',
  '/v1/completions': 'openai_completions',
  '/generate': 'sglang_generate',
} as const;

export function createGateway(router: Router, options: GatewayOptions): Gateway {
  const { workerTimeoutMs = 120_000 } = options;
  const agent = new Agent({
    connect: { timeout: 2_000 },
    headersTimeout: workerTimeoutMs,
    bodyTimeout: workerTimeoutMs,
  });
  const poller = startLoadPoller(router, agent, options.loadPollIntervalMs);
  const registry = new Registry();
  const unbindMetrics = bindMetrics(router, promAdapter(registry));

  const app = express();
  app.disable('x-powered-by');
  app.get('/health', (_req, res) => {
    const ready = router.workers().some((worker) => worker.status === 'ready');
    res.status(ready ? 200 : 503).json({ ready });
  });
  app.get('/metrics', async (_req, res) => {
    res.type(registry.contentType).send(await registry.metrics());
  });

  for (const [path, kind] of Object.entries(routes)) {
    // The signal is attached first: a client may leave while its own body is still arriving.
    app.post(
      path,
      (_req, res, next) => {
        res.locals.signal = clientSignal(res);
        next();
      },
      express.raw({ type: () => true, limit: '32mb' }),
      async (req: Request, res: Response) => {
        const body = parseJsonBody(req.body);
        if (body === undefined) return sendError(res, 400, 'invalid_request', 'the body is not a JSON object');
        await answer({ router, dispatcher: agent }, describeRequest(kind, body, req.headers), req, res);
      },
    );
  }
  app.use(((error, _req, res, next) => {
    if (res.headersSent || res.destroyed) return next(error);
    const isClients = error.status >= 400 && error.status < 500;
    if (isClients) sendError(res, error.status, 'invalid_request', error.message);
    else sendError(res, 500, 'internal_error', 'the gateway failed');
  }) satisfies ErrorRequestHandler);

  return {
    app,
    async close() {
      poller.stop();
      unbindMetrics();
      await agent.destroy();
    },
  };
}

/** Dispatches a request and answers it; resolves when the answer has been relayed or the client is gone. */
async function answer(context: DispatchContext, described: RouteRequest, req: Request, res: Response): Promise<void> {
  const signal = res.locals.signal as AbortSignal;
  let result: RouteResult<Answer>;
  try {
    result = await dispatch(context, described, req, signal);
  } catch (error) {
    if (signal.aborted) return;
    const { status, code, message } = noAnswer(error);
    sendError(res, status, code, message);
    return;
  }
  // The worker's name, or why there is none and when to come back.
  res.set(responseHeaders(result));
  if (result.ok) await relay(result.value, res);
  else sendError(res, 503, result.code, `no worker could be selected: ${result.reason}`);
}
