/**
 * The HTTP face of a simulated engine, shaped like SGLang's: OpenAI chat and text completions, `/generate`,
 * `/v1/loads`, `/metrics`, `/health`, `/kv_events`, and switches that make the next requests fail. As a prefill or decode
 * engine it serves half of a request, in the room that the gateway wrote into the body.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { closeServer, listen } from '../listen.js';
import { type Bootstrap, receiveKv, startBootstrap } from './bootstrap.js';
import {
  defaultBlockTokens,
  Engine,
  type EngineOptions,
  type EngineTotals,
  type GenerationResult,
  type GenerationSink,
} from './engine.js';
import { type ApiFormat, chatFormat, completionFormat, generateFormat } from './formats.js';
import { KvEventLog } from './kv-event-log.js';
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
  /** Keep the next `count` batches of KV events from subscribers; a replay still has them. */
  loseKvEvents(count: number): void;
  /** Forget the KV events that could be replayed. */
  forgetKvEvents(): void;
  /** Break the connections over which KV events are sent. */
  breakKvEvents(): void;
}

export type EngineRole = 'regular' | 'prefill' | 'decode';

export interface EngineServer {
  readonly url: string;
  readonly engine: Engine;
  readonly faults: EngineFaults;
  readonly totals: Readonly<EngineTotals>;
  /** Only of a prefill engine. */
  readonly bootstrapPort: number | undefined;
  /** Breaks off what is running and frees the port. */
  close(): Promise<void>;
}

/** Starts an engine on a free loopback port. */
export async function startEngine(options: EngineOptions = {}, role: EngineRole = 'regular'): Promise<EngineServer> {
  const kvEvents = new KvEventLog(options.blockTokens ?? defaultBlockTokens);
  const engine = new Engine(options, kvEvents);
  const faults = new Faults(kvEvents);
  const bootstrap = role === 'prefill' ? await startBootstrap() : undefined;
  const simulator: Simulator = { engine, faults, kvEvents, role, bootstrap };
  const server = createServer((req, res) => {
    handle(simulator, req, res).catch((error: Error) => sendError(res, 500, error.message));
  });
  const url = await listen(server);
  return {
    url,
    engine,
    faults,
    totals: engine.totals,
    bootstrapPort: bootstrap?.port,
    async close() {
      engine.stop();
      await Promise.all([closeServer(server), bootstrap?.close()]);
    },
  };
}

interface Simulator {
  readonly engine: Engine;
  readonly faults: Faults;
  readonly kvEvents: KvEventLog;
  readonly role: EngineRole;
  readonly bootstrap: Bootstrap | undefined;
}

class Faults implements EngineFaults {
  readonly fail = { count: 0, status: 500 };
  readonly break = { count: 0, tokens: 0 };
  readonly stall = { count: 0 };
  loadsStatus: number | undefined;

  constructor(private readonly kvEvents: KvEventLog) {}

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

  loseKvEvents(count: number): void {
    this.kvEvents.toLose = count;
  }

  forgetKvEvents(): void {
    this.kvEvents.forget();
  }

  breakKvEvents(): void {
    this.kvEvents.breakOff();
  }
}

const formats: Readonly<Record<string, ApiFormat>> = {
  '/v1/chat/completions': chatFormat,
  '/v1/completions': completionFormat,
  '/generate': generateFormat,
};

async function handle(simulator: Simulator, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { engine, faults, kvEvents } = simulator;
  const { pathname: path, searchParams } = new URL(req.url ?? '/', 'http://engine');
  const format = Object.hasOwn(formats, path) ? formats[path] : undefined;
  if (req.method === 'POST' && format !== undefined) return generate(simulator, format, req, res);
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
    case '/kv_events':
      return kvEvents.subscribe(res, searchParams.has('from') ? Number(searchParams.get('from')) : undefined);
    default:
      sendError(res, 404, 'not found');
  }
}

async function generate(
  { engine, faults, role, bootstrap }: Simulator,
  format: ApiFormat,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const body = await readJson(req);
  const room = Number(body?.bootstrap_room);
  let settle = (isComputed: boolean) => {
    bootstrap?.settle(room, isComputed);
    settle = () => {};
  };
  if (res.destroyed) return settle(false);
  // Until its prompt was computed, whoever waits for the KV learns that it waits in vain.
  res.once('close', () => settle(false));
  if (faults.fail.count > 0) {
    faults.fail.count--;
    return sendError(res, faults.fail.status, 'injected');
  }
  if (faults.stall.count > 0) {
    faults.stall.count--;
    return;
  }
  const asked = body === undefined ? undefined : format.read(body);
  // A prefill engine answers with the first token, which proves that the prompt was computed.
  const request = asked && role === 'prefill' ? { ...asked, maxNewTokens: 1, stream: false } : asked;
  if (request === undefined || request.prompt.length === 0) return sendError(res, 400, 'the request has no prompt');
  if (!engine.accepts(request.prompt.length, request.maxNewTokens)) {
    return sendError(res, 400, 'prompt and answer are longer than the KV memory');
  }
  if (role === 'decode') {
    const left = new AbortController();
    res.once('close', () => left.abort());
    const { bootstrap_host: host, bootstrap_port: port } = body as Record<string, unknown>;
    const isReceived = await receiveKv(String(host), Number(port), room, left.signal);
    if (res.destroyed) return;
    if (!isReceived) return sendError(res, 500, 'the KV of the prompt did not arrive');
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
  const sink: GenerationSink = {
    token(word) {
      if (tokensLeft-- <= 0) {
        res.destroy();
        return;
      }
      text += word;
      if (request.stream) event(answer.chunk(word, text));
    },
    finished(result: GenerationResult) {
      settle(true);
      if (!request.stream) return sendJson(res, 200, answer.whole(text, result));
      for (const payload of answer.last(text, result)) event(payload);
      res.end('data: [DONE]\n\n');
    },
  };
  const generation = engine.submit(request.prompt, request.maxNewTokens, sink, role === 'decode');
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
