/** Polls the workers' loads from the start of the application to its end. */
import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Router } from 'kvroute';
import { Agent } from 'undici';
import { type LoadPoller, startLoadPoller } from '../shared/gateway/load-poller.js';
import { KVROUTE_OPTIONS, type KvRouteOptions } from './kv-route.options.js';

@Injectable()
export class LoadPollerService implements OnModuleInit, OnModuleDestroy {
  #poller: LoadPoller | undefined;

  // What tsx and vitest run has no design:paramtypes, so every token is spelled out.
  constructor(
    @Inject(Router) private readonly router: Router,
    @Inject(Agent) private readonly agent: Agent,
    @Inject(KVROUTE_OPTIONS) private readonly options: Required<KvRouteOptions>,
  ) {}

  onModuleInit(): void {
    this.#poller = startLoadPoller(this.router, this.agent, this.options.loadPollIntervalMs);
  }

  onModuleDestroy(): void {
    this.#poller?.stop();
  }
}
