/** The options of `KvRouteModule` and the token they are injected by. */
import type { InjectionToken, ModuleMetadata } from '@nestjs/common';
import type { RouterOptions, WorkerSpec } from 'kvroute';

export interface KvRouteOptions {
  readonly router?: RouterOptions;
  readonly workers?: readonly WorkerSpec[];
  /** How often the workers are asked for their load; the router is told. Default 10 s. */
  readonly loadPollIntervalMs?: number;
  /** Silence of a worker, before or within an answer, that counts as its failure. Default two minutes. */
  readonly workerTimeoutMs?: number;
}

/** Asynchronous, because options usually come from another provider. */
export interface KvRouteAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** What `useFactory` is called with. */
  readonly inject?: InjectionToken[];
  // biome-ignore lint/suspicious/noExplicitAny: Nest knows what it injects by tokens only
  readonly useFactory: (...injected: any[]) => KvRouteOptions | Promise<KvRouteOptions>;
}

/** Injects the options with their defaults. */
export const KVROUTE_OPTIONS = Symbol('KVROUTE_OPTIONS');

export function withDefaults(options: KvRouteOptions): Required<KvRouteOptions> {
  return { router: {}, workers: [], loadPollIntervalMs: 10_000, workerTimeoutMs: 120_000, ...options };
}
