/** What the tests of the example gateways share: clients, scripted workers, and one list of what to undo. */
import { createServer, type RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Router, RouterEvents } from 'kvroute';
import OpenAI from 'openai';
import type { EngineOptions } from '../../examples/shared/engine-simulator/engine.js';
import { type EngineRole, type EngineServer, startEngine } from '../../examples/shared/engine-simulator/server.js';
import { closeServer, listen } from '../../examples/shared/listen.js';

const undos: (() => unknown)[] = [];

/** Runs when the test is over, the last one first. */
export function onTestEnd(undo: () => unknown): void {
  undos.push(undo);
}

/** For `afterEach`. */
export async function undoAll(): Promise<void> {
  for (const undo of undos.splice(0).reverse()) await undo();
}

export async function startEngines(
  count: number,
  options: EngineOptions = {},
  role: EngineRole = 'regular',
): Promise<EngineServer[]> {
  const start = () => startEngine({ decodeStepMs: 4, ...options }, role);
  const started = await Promise.all(Array.from({ length: count }, start));
  for (const engine of started) onTestEnd(() => engine.close());
  return started;
}

/** A worker whose answers to POST are the test's; load polls and the like find nothing unless it wants them. */
export async function scriptedWorker(handler: RequestListener, asked: RequestListener = notFound): Promise<string> {
  const server = createServer((req, res) => (req.method === 'POST' ? handler : asked)(req, res));
  onTestEnd(() => closeServer(server));
  return listen(server);
}

export const notFound: RequestListener = (_req, res) => {
  res.writeHead(404).end();
};

export interface FloodingWorker {
  readonly url: string;
  written(): number;
  /** Resolves when the buffers of all sockets on the way are full, so that the worker has to wait. */
  waits(): Promise<void>;
}

/** A worker that answers at once and then writes `total` bytes as fast as its client takes them. */
export async function floodingWorker(total: number): Promise<FloodingWorker> {
  const chunk = Buffer.alloc(64 * 1024, 'x');
  let written = 0;
  const url = await scriptedWorker((req, res) => {
    req.resume();
    res.writeHead(200, { 'content-type': 'application/octet-stream' });
    const write = () => {
      while (written < total) {
        written += chunk.length;
        if (!res.write(chunk)) return res.once('drain', write);
      }
      return res.end();
    };
    write();
  });
  const waits = async () => {
    for (let before = -1; written !== before; await sleep(150)) before = written;
  };
  return { url, written: () => written, waits };
}

export const path = '/v1/chat/completions';

export function client(url: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'unused', maxRetries: 0 });
}

export function chatBody(maxTokens: number, content = 'tell me something', stream = true): string {
  return JSON.stringify({ model: 'demo', messages: [{ role: 'user', content }], max_tokens: maxTokens, stream });
}

export function post(url: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url + path, { method: 'POST', body, headers });
}

/** A request over a socket of its own, so that the test can cut it or stop reading at any moment. */
export function rawPost(url: string, path: string, body: string, length = Buffer.byteLength(body)): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  onTestEnd(() => socket.destroy());
  socket.write(`POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-length: ${length}\r\n\r\n${body}`);
  return socket;
}

/** Resolves when the other end has written something. */
export function firstData(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once('data', resolve));
}

export function recordLeaseEnds(router: Router): RouterEvents['leaseEnded'][] {
  const ends: RouterEvents['leaseEnded'][] = [];
  router.on('leaseEnded', (end) => ends.push(end));
  return ends;
}

export function inFlight(router: Router): number[] {
  return router.workers().map((worker) => worker.inFlight);
}
