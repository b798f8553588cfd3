/** The application: an OpenAI-compatible gateway around `KvRouteModule`. */
import 'reflect-metadata';
import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { CompletionsController } from './completions.controller.js';
import { KvRouteModule } from './kv-route.module.js';
import type { KvRouteAsyncOptions } from './kv-route.options.js';
import { OpenAiErrorFilter } from './openai-error.filter.js';
import { OperationsController } from './operations.controller.js';

@Module({
  controllers: [CompletionsController, OperationsController],
  providers: [{ provide: APP_FILTER, useClass: OpenAiErrorFilter }],
})
class GatewayModule {}

/** `listen` starts it; `close` lets open answers end, then breaks off what is left to the workers. */
export async function createGateway(options: KvRouteAsyncOptions): Promise<NestExpressApplication> {
  const root: DynamicModule = { module: GatewayModule, imports: [KvRouteModule.forRootAsync(options)] };
  const app = await NestFactory.create<NestExpressApplication>(root, {
    // Bodies are passed on as they came.
    bodyParser: false,
    logger: ['warn', 'error', 'fatal'],
    // An option or a worker that is wrong rejects here instead of ending the process.
    abortOnError: false,
  });
  app.disable('x-powered-by');
  app.useBodyParser('raw', { type: () => true, limit: '32mb' });
  return app;
}
