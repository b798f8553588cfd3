/** The gateway of examples/express-gateway in front of workers of the test's choice. */
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { createRouter, type RouterOptions } from 'kvroute';
import { createGateway, type GatewayOptions } from '../../examples/express-gateway/gateway.js';
import { closeServer, listen } from '../../examples/shared/listen.js';
import type { GatewayStand } from './gateway-contract.js';
import { onTestEnd, recordLeaseEnds } from './gateway-helpers.js';

export interface ExpressStand extends GatewayStand {
  /** Connections of clients, in order. */
  readonly sockets: Socket[];
}

export async function expressGateway(
  workers: readonly string[],
  options: RouterOptions = {},
  others: Partial<GatewayOptions> = {},
): Promise<ExpressStand> {
  const router = await createRouter({ policy: 'round_robin', seed: 1, ...options });
  for (const url of workers) router.addWorker({ url, models: ['demo'], runtime: 'sglang' });
  const leaseEnds = recordLeaseEnds(router);
  const { app, close } = createGateway(router, { loadPollIntervalMs: 10_000, ...others });
  onTestEnd(close);
  const server = createServer(app);
  onTestEnd(() => closeServer(server));
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket));
  return { url: await listen(server), router, sockets, leaseEnds };
}
