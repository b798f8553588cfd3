/** What operators ask for. */
import { Controller, Get, Inject, Res } from '@nestjs/common';
import type { Response } from 'express';
import { Router } from 'kvroute';
import { Registry } from 'prom-client';

@Controller()
export class OperationsController {
  constructor(
    @Inject(Router) private readonly router: Router,
    @Inject(Registry) private readonly registry: Registry,
  ) {}

  @Get('health')
  health(@Res({ passthrough: true }) res: Response): { ready: boolean } {
    const ready = this.router.workers().some((worker) => worker.status === 'ready');
    res.status(ready ? 200 : 503);
    return { ready };
  }

  @Get('metrics')
  metrics(@Res({ passthrough: true }) res: Response): Promise<string> {
    res.type(this.registry.contentType);
    return this.registry.metrics();
  }
}
