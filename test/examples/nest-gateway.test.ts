/** The gateway of examples/nest-gateway over real sockets: the contract of all gateways, and dependency injection. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { Router, type RouterOptions, RoutingConfigError } from 'kvroute';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createGateway } from '../../examples/nest-gateway/gateway.js';
import type { KvRouteOptions } from '../../examples/nest-gateway/kv-route.options.js';
import type { EngineServer } from '../../examples/shared/engine-simulator/server.js';
import { until } from '../../examples/shared/until.js';
import { describeGateway, type GatewayStand } from './gateway-contract.js';
import { onTestEnd, path, recordLeaseEnds, startEngines, undoAll } from './gateway-helpers.js';

describeGateway('the Nest gateway', nestGateway);

afterEach(undoAll);

async function nestGateway(
  workers: readonly string[],
  options: RouterOptions = {},
  others: Omit<KvRouteOptions, 'router' | 'workers'> = {},
): Promise<GatewayStand> {
  const app = await createGateway({
    useFactory: () => ({
      router: { policy: 'round_robin', seed: 1, ...options },
      workers: workers.map((url) => ({ url, models: ['demo'], runtime: 'sglang' })),
      ...others,
    }),
  });
  onTestEnd(() => app.close());
  const router = app.get(Router, { strict: false });
  const leaseEnds = recordLeaseEnds(router);
  await app.listen(0, '127.0.0.1');
  return { url: await app.getUrl(), router, leaseEnds };
}

describe('the module', () => {
  it('makes the router from an injected configuration, and reports loads from start to end', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    @Module({ providers: [{ provide: 'FLEET', useValue: [engine.url] }], exports: ['FLEET'] })
    class FleetModule {}
    const app = await createGateway({
      imports: [FleetModule],
      inject: ['FLEET'],
      useFactory: async (urls: string[]) => ({ workers: urls.map((url) => ({ url })), loadPollIntervalMs: 20 }),
    });
    onTestEnd(() => app.close());
    const router = app.get(Router, { strict: false });
    expect(router.workers().map(({ id }) => id)).toEqual([engine.url]);
    expect(router.workers()[0]?.report).toBeUndefined();

    let reports = 0;
    router.on('reportApplied', () => reports++);
    await app.listen(0, '127.0.0.1');
    await until(() => reports >= 2, 10_000);
    await app.close();
    const atEnd = reports;
    await sleep(60);
    expect(reports).toBe(atEnd);
  });

  it('LB-40: a wrong option is told when the application is made', async () => {
    const log = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    onTestEnd(() => log.mockRestore());
    await expect(nestGateway([], { policy: 'lest_load' as never })).rejects.toThrow(RoutingConfigError);
    expect(log.mock.calls.join()).toContain('lest_load');
  });

  it('shows readiness', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await nestGateway([engine.url]);
    const health = async () => {
      const response = await fetch(`${stand.url}/health`);
      return [response.status, await response.json()];
    };
    expect(await health()).toEqual([200, { ready: true }]);
    stand.router.setStatus(engine.url, 'not_ready');
    expect(await health()).toEqual([503, { ready: false }]);
  });

  it('LB-42: Nest’s own refusals have the shape of the others', async () => {
    const [engine] = (await startEngines(1)) as [EngineServer];
    const stand = await nestGateway([engine.url]);
    const headers = { 'content-encoding': 'unheard-of' };
    const packed = await fetch(stand.url + path, { method: 'POST', body: 'packed', headers });
    expect([packed.status, packed.headers.get('x-smg-error-code')]).toEqual([415, 'invalid_request']);
    const unknown = await fetch(`${stand.url}/v2/nothing`);
    expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: { code: 'invalid_request' } }]);
    expect(engine.totals.requests).toBe(0);
  });
});
