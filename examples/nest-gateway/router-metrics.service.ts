/** Keeps the router's metrics in the registry that `/metrics` shows. */
import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Router } from 'kvroute';
import { bindMetrics } from 'kvroute/metrics';
import { Registry } from 'prom-client';
import { promAdapter } from '../shared/gateway/prom-metrics.js';

@Injectable()
export class RouterMetricsService implements OnModuleInit, OnModuleDestroy {
  #unbind: (() => void) | undefined;

  constructor(
    @Inject(Router) private readonly router: Router,
    @Inject(Registry) private readonly registry: Registry,
  ) {}

  onModuleInit(): void {
    this.#unbind = bindMetrics(this.router, promAdapter(this.registry));
  }

  onModuleDestroy(): void {
    this.#unbind?.();
  }
}
