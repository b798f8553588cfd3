/**
 * kvroute as a Nest module: the router, the connections to its workers, the load poller and the metrics, all of them
 * providers that live as long as the application.
 */
import { type DynamicModule, Module } from '@nestjs/common';
import { createRouter, Router } from 'kvroute';
import { Registry } from 'prom-client';
import { Agent } from 'undici';
import { KVROUTE_OPTIONS, type KvRouteAsyncOptions, type KvRouteOptions, withDefaults } from './kv-route.options.js';
import { LoadPollerService } from './load-poller.service.js';
import { RouterMetricsService } from './router-metrics.service.js';
import { WorkerDispatcher } from './worker-dispatcher.service.js';

@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: a dynamic module is made by a static method of its class
export class KvRouteModule {
  /** Provides `Router`, which is its own token, `WorkerDispatcher`, and the `Registry` with the router's metrics. */
  static forRootAsync({ imports = [], inject = [], useFactory }: KvRouteAsyncOptions): DynamicModule {
    return {
      module: KvRouteModule,
      imports,
      providers: [
        {
          provide: KVROUTE_OPTIONS,
          inject,
          useFactory: async (...injected) => withDefaults(await useFactory(...injected)),
        },
        { provide: Router, inject: [KVROUTE_OPTIONS], useFactory: makeRouter },
        { provide: Agent, inject: [KVROUTE_OPTIONS], useFactory: makeAgent },
        { provide: Registry, useFactory: () => new Registry() },
        WorkerDispatcher,
        LoadPollerService,
        RouterMetricsService,
      ],
      exports: [Router, WorkerDispatcher, Registry],
    };
  }
}

async function makeRouter({ router: options, workers, loadPollIntervalMs }: Required<KvRouteOptions>): Promise<Router> {
  const router = await createRouter({ loadMonitorIntervalMs: loadPollIntervalMs, ...options });
  for (const worker of workers) router.addWorker(worker);
  return router;
}

function makeAgent({ workerTimeoutMs }: Required<KvRouteOptions>): Agent {
  return new Agent({ connect: { timeout: 2_000 }, headersTimeout: workerTimeoutMs, bodyTimeout: workerTimeoutMs });
}
