/** The gateway of examples/express-gateway in front of workers of the test's choice, and requests to it. */
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { createRouter, type Router, type RouterEvents, type RouterOptions } from 'kvroute';
import OpenAI from 'openai';
import { createGateway, type GatewayOptions } from '../../examples/express-gateway/gateway.js';
import { closeServer, listen } from '../../examples/shared/listen.js';
import { onTestEnd, recordLeaseEnds } from './gateway-helpers.js';

export const path = '/v1/chat/completions';

export interface Stand {
  readonly url: string;
  readonly router: Router;
  readonly sockets: Socket[];
  readonly leaseEnds: RouterEvents['leaseEnded'][];
  inFlight(): number[];
}

export async function gateway(
  workers: readonly string[],
  options: RouterOptions = {},
  gatewayOptions: Partial<GatewayOptions> = {},
): Promise<Stand> {
  const router = await createRouter({ policy: 'round_robin', seed: 1, ...options });
  for (const url of workers) router.addWorker({ url, models: ['demo'], runtime: 'sglang' });
  const leaseEnds = recordLeaseEnds(router);
  const { app, close } = createGateway(router, { loadPollIntervalMs: 10_000, ...gatewayOptions });
  onTestEnd(close);
  const server = createServer(app);
  onTestEnd(() => closeServer(server));
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket));
  const url = await listen(server);
  return { url, router, sockets, leaseEnds, inFlight: () => router.workers().map((worker) => worker.inFlight) };
}

export function client(url: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'unused', maxRetries: 0 });
}

export function chatBody(maxTokens: number, stream = true): string {
  return JSON.stringify({
    model: 'demo',
    messages: [{ role: 'user', content: 'tell me something' }],
    max_tokens: maxTokens,
    stream,
  });
}

export function post(url: string, body: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', body, ...init });
}
