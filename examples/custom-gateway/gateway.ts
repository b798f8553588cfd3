/**
 * An OpenAI-compatible gateway for prefill/decode pairs on `node:http` and undici, without a framework and without
 * `router.route`: every step by hand. kvroute decides, this does the I/O.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Router, TokenIds } from 'kvroute';
import { describeRequest, type RequestKind } from 'kvroute/engines';
import { bindMetrics, hostMetrics, type MetricsAdapter } from 'kvroute/metrics';
import { Agent } from 'undici';
import { clientSignal } from '../shared/gateway/client-signal.js';
import { sendError } from '../shared/gateway/error-response.js';
import { parseJsonBody } from '../shared/gateway/json-body.js';
import { startLoadPoller } from '../shared/gateway/load-poller.js';
import { DecodeAdmission } from './decode-admission.js';
import { followKvEvents } from './kv-event-subscriber.js';
import { answerWithPair, type PairContext } from './pair-dispatch.js';

export interface GatewayOptions {
  /** The model's tokenizer: KV events name token ids, so a chat must be cut the way its engine cuts it. */
  readonly tokenizeChat: (messages: unknown) => TokenIds | undefined;
  readonly metrics: MetricsAdapter;
  /** How often the workers are asked for their load. Tell the router the same `loadMonitorIntervalMs`. */
  readonly loadPollIntervalMs: number;
  /** Longest wait for a place on a decode worker; 0 sheds at once. Default 30 s. */
  readonly admissionWaitMs?: number;
  /** Silence of a worker, before or within an answer, that counts as its failure. Default two minutes. */
  readonly workerTimeoutMs?: number;
}

export interface Gateway {
  /** Listen with it. */
  readonly server: Server;
  /** Stops polling and following, and breaks off what is still open to the workers. */
  close(): Promise<void>;
}

/** @param router one with `mode: 'pd'` */
export function createGateway(router: Router, options: GatewayOptions): Gateway {
  const { loadPollIntervalMs, admissionWaitMs = 30_000, workerTimeoutMs = 120_000 } = options;
  const agent = new Agent({
    connect: { timeout: 2_000 },
    headersTimeout: workerTimeoutMs,
    bodyTimeout: workerTimeoutMs,
  });
  const metrics = hostMetrics(options.metrics);
  const admission = new DecodeAdmission(admissionWaitMs, metrics);
  const context: PairContext = { router, dispatcher: agent, admission, metrics, loadPollIntervalMs };
  const unbindMetrics = bindMetrics(router, options.metrics);
  const poller = startLoadPoller(router, agent, loadPollIntervalMs);
  const unfollow = followKvEvents(router, agent);

  const server = createServer((req, res) => {
    answer(context, options, req, res).catch(() => sendError(res, 500, 'internal_error', 'the gateway failed'));
  });
  return {
    server,
    async close() {
      unfollow();
      poller.stop();
      unbindMetrics();
      await agent.destroy();
    },
  };
}

/** The request formats and what `describeRequest` calls them. */
const routes: Readonly<Record<string, RequestKind>> = {
  '/v1/chat/completions': 'openai_chat',
  '/v1/completions': 'openai_completions',
  '/generate': 'sglang_generate',
};
const maxBodyBytes = 32 * 1024 * 1024;

async function answer(
  context: PairContext,
  { tokenizeChat }: GatewayOptions,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  // Before anything is waited for: a client may leave while its own body is still arriving.
  const signal = clientSignal(res);
  const path = req.url?.split('?')[0] ?? '';
  const kind = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (req.method !== 'POST' || kind === undefined) return sendError(res, 404, 'invalid_request', 'no such route');
  if (req.headers['content-encoding'] !== undefined) {
    return sendError(res, 415, 'invalid_request', 'packed bodies are not read');
  }
  const bytes = await readBody(req);
  if (signal.aborted) return;
  if (bytes === undefined) return sendError(res, 413, 'invalid_request', 'the body is too large');
  const body = parseJsonBody(bytes);
  if (body === undefined) return sendError(res, 400, 'invalid_request', 'the body is not a JSON object');

  const described = describeRequest(kind, body, req.headers);
  const tokens = described.tokens ?? (kind === 'openai_chat' ? tokenizeChat(body.messages) : undefined);
  const width = Number.isInteger(body.n) && (body.n as number) > 0 ? (body.n as number) : 1;
  const forwarded = { path, headers: req.headers, body, width };
  await answerWithPair(context, { ...described, tokens }, forwarded, res, signal);
}

/** Undefined when it is too large; what has arrived so far when the client left. */
async function readBody(req: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    // Destroying the request would take the connection with it, and the answer that says why.
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size > maxBodyBytes) return undefined;
      chunks.push(chunk);
    }
  } catch {
    // The client's signal tells.
  }
  return Buffer.concat(chunks);
}
