/**
 * An OpenAI-compatible gateway around a kvroute router: the part to copy. kvroute decides, the host does the I/O. The
 * body is parsed once, to describe the request; the worker gets the bytes as they came.
 */
import express, { type ErrorRequestHandler, type Express, type Request, type Response } from 'express';
import type { Router } from 'kvroute';
import { describeRequest } from 'kvroute/engines';
import { bindMetrics } from 'kvroute/metrics';
import { Registry } from 'prom-client';
import { Agent } from 'undici';
import { clientSignal } from './client-signal.js';
import { dispatch } from './dispatch.js';
import { sendError } from './error-response.js';
import { startLoadPoller } from './load-poller.js';
import { promAdapter } from './prom-metrics.js';

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
      clientSignal,
      express.raw({ type: () => true, limit: '32mb' }),
      async (req: Request, res: Response) => {
        const body = parseJson(req.body);
        if (body === undefined) return sendError(res, 400, 'invalid_request', 'the body is not a JSON object');
        await dispatch({ router, dispatcher: agent }, describeRequest(kind, body, req.headers), req, res);
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

function parseJson(bytes: unknown): object | undefined {
  if (!Buffer.isBuffer(bytes)) return undefined;
  try {
    const body: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? body : undefined;
  } catch {
    return undefined;
  }
}
