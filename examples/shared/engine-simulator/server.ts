/**
 * The HTTP face of a simulated engine, shaped like SGLang's: OpenAI chat and text completions, `/generate`,
 * `/v1/loads`, `/metrics`, `/health`, and switches that make the next requests fail.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { closeServer, listen } from '../listen.js';
import { Engine, type EngineOptions, type EngineTotals, type GenerationResult } from './engine.js';
import { type ApiFormat, chatFormat, completionFormat, generateFormat } from './formats.js';
import { renderLoads, renderMetrics } from './load-payloads.js';

/** Switches for tests: each counts down with the generation requests that arrive. */
export interface EngineFaults {
  /** Answer the next `count` requests with this status. */
  failNext(count: number, status: number): void;
  /** Break the connection of the next `count` streamed answers after `tokens` tokens. */
  breakNext(count: number, tokens: number): void;
  /** Accept the next `count` requests and never answer them. */
  stallNext(count: number): void;
  /** Answer `/v1/loads` and `/metrics` with this status until called with undefined. */
  failLoads(status: number | undefined): void;
}

export interface EngineServer {
  readonly url: string;
  readonly engine: Engine;
  readonly faults: EngineFaults;
  readonly totals: Readonly<EngineTotals>;
  /** Breaks off what is running and frees the port. */
  close(): Promise<void>;
}

/** Starts an engine on a free loopback port. */
export async function startEngine(options: EngineOptions = {}): Promise<EngineServer> {
  const engine = new Engine(options);
  const faults = new Faults();
  const server = createServer((req, res) => {
    handle(engine, faults, req, res).catch((error: Error) => sendError(res, 500, error.message));
  });
  const url = await listen(server);
  return {
    url,
    engine,
    faults,
    totals: engine.totals,
    async close() {
      engine.stop();
      await closeServer(server);
    },
  };
}

class Faults implements EngineFaults {
  readonly fail = { count: 0, status: 500 };
  readonly break = { count: 0, tokens: 0 };
  readonly stall = { count: 0 };
  loadsStatus: number | undefined;

  failNext(count: number, status: number): void {
    Object.assign(this.fail, { count, status });
  }

  breakNext(count: number, tokens: number): void {
    Object.assign(this.break, { count, tokens });
  }

  stallNext(count: number): void {
    this.stall.count = count;
  }

  failLoads(status: number | undefined): void {
    this.loadsStatus = status;
  }
}

const formats: Readonly<Record<string, ApiFormat>> = {
  '/v1/chat/completions': chatFormat,
  '/v1/completions': completionFormat,
  '/generate': generateFormat,
};

async function handle(engine: Engine, faults: Faults, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const path = new URL(req.url ?? '/', 'http://engine').pathname;
  const format = Object.hasOwn(formats, path) ? formats[path] : undefined;
  if (req.method === 'POST' && format !== undefined) return generate(engine, faults, format, req, res);
  if (req.method !== 'GET') return sendError(res, 404, 'not found');
  switch (path) {
    case '/health':
      res.end();
      return;
    case '/v1/models':
      return sendJson(res, 200, { object: 'list', data: [{ id: engine.options.model, object: 'model' }] });
    case '/v1/loads':
      if (faults.loadsStatus !== undefined) return sendError(res, faults.loadsStatus, 'injected');
      return sendJson(res, 200, renderLoads(engine));
    case '/metrics':
      if (faults.loadsStatus !== undefined) return sendError(res, faults.loadsStatus, 'injected');
      res.setHeader('content-type', 'text/plain; version=0.0.4');
      res.end(renderMetrics(engine));
      return;
    default:
      sendError(res, 404, 'not found');
  }
}

async function generate(
  engine: Engine,
  faults: Faults,
  format: ApiFormat,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const body = await readJson(req);
  if (res.destroyed) return;
  if (faults.fail.count > 0) {
    faults.fail.count--;
    return sendError(res, faults.fail.status, 'injected');
  }
  if (faults.stall.count > 0) {
    faults.stall.count--;
    return;
  }
  const request = body === undefined ? undefined : format.read(body);
  if (request === undefined || request.prompt.length === 0) return sendError(res, 400, 'the request has no prompt');
  if (!engine.accepts(request.prompt.length, request.maxNewTokens)) {
    return sendError(res, 400, 'prompt and answer are longer than the KV memory');
  }

  const answer = format.answer(request, engine.options.model);
  let tokensLeft = Number.POSITIVE_INFINITY;
  if (request.stream && faults.break.count > 0) {
    faults.break.count--;
    tokensLeft = faults.break.tokens;
  }
  if (request.stream) res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const event = (payload: object) => res.write(`data: ${JSON.stringify(payload)}\n\n`);

  let text = '';
  const generation = engine.submit(request.prompt, request.maxNewTokens, {
    token(word) {
      if (tokensLeft-- <= 0) {
        res.destroy();
        return;
      }
      text += word;
      if (request.stream) event(answer.chunk(word, text));
    },
    finished(result: GenerationResult) {
      if (!request.stream) return sendJson(res, 200, answer.whole(text, result));
      for (const payload of answer.last(text, result)) event(payload);
      res.end('data: [DONE]\n\n');
    },
  });
  res.once('close', () => generation.cancel());
}

async function readJson(req: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of req) chunks.push(chunk);
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function sendJson(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function sendError(res: ServerResponse, status: number, message: string): void {
  if (res.headersSent || res.destroyed) res.destroy();
  else sendJson(res, status, { error: { message, type: 'engine_error', code: status } });
}
