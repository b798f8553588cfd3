/** The begin of a dispatch: counted in flight on its worker, under its routing key, until its lease ends (LB-20, WK-30). */
import type { AbortSignalLike } from './abort-signal.js';
import type { RouterCore } from './core.js';
import { checkObject, refuse } from './errors.js';
import type { Lease } from './lease.js';
import { manualRoutingKey } from './policies/manual.js';
import type { Leg } from './policies/policy.js';
import type { Pool } from './pool.js';
import { legOfKind } from './pools.js';
import { RequestView } from './request.js';
import { composePinKey, pinModel } from './sticky/pin-key.js';
import { isValidRoutingKey, resolveRoutingKey } from './sticky/routing-key.js';
import type { WorkerId } from './workers/candidate.js';
import type { RequestScope } from './workers/outcome-class.js';
import type { WorkerState } from './workers/worker.js';
import { unknownModel } from './workers/worker-spec.js';

/** How a dispatch begins. */
export interface BeginOptions {
  /** Its abort ends the lease; nothing is recorded then. One that is aborted already ends it at once (LB-20). */
  readonly signal?: AbortSignalLike | undefined;
  /**
   * Shared by the attempts of one request, so that a worker is charged at most one failure for it (LB-22, CB-30): a
   * `RequestScope`, or the id of the request, 1 to 256 characters, of which the last 4 096 are remembered (CB-32).
   */
  readonly scope?: RequestScope | string | undefined;
}

/** A dispatch that was decided elsewhere. */
export interface ElsewhereOptions extends BeginOptions {
  /** Scope of the routing key. Default: the worker's primary model. */
  readonly model?: string | undefined;
  /** Scope of the routing key. Default: the leg of the worker's kind. */
  readonly leg?: Leg | undefined;
  /** Counts under this key on the worker (WK-40); at most 128 bytes. */
  readonly routingKey?: string | undefined;
}

/** The scope to begin with. @throws TypeError for a signal or scope of the wrong type */
export function checkBeginOptions(core: RouterCore, options: BeginOptions): RequestScope | undefined {
  const { signal, scope } = checkObject(options);
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw refuse('signal', 'an AbortSignal', signal);
  }
  return core.scopeOf(scope);
}

/** Begins a lease on a worker. @throws TypeError for a signal or scope of the wrong type, before anything is counted */
export function beginLease(
  core: RouterCore,
  worker: WorkerState,
  pinKey: string | undefined,
  options: BeginOptions,
): Lease {
  const scope = checkBeginOptions(core, options);
  const { now } = core.time;
  const lease = core.leases.open(worker, {
    pinKey,
    signal: options.signal,
    scope,
    begunAt: now,
    epoch: worker.breaker.epoch(now),
  });
  if (!worker.removed && core.hub.heard('leaseBegan'))
    core.hub.emit('leaseBegan', { worker, inFlight: worker.inFlight });
  lease.watchSignal();
  return lease;
}

/** The key under which a request counts on its worker: the effective one of WK-40, composed like its pin. */
export function pinKeyOf(core: RouterCore, pool: Pool, view: RequestView): string | undefined {
  const { routingKeyOverride, routingKeyHeaders } = core.plan.options;
  const routing =
    pool.policy.name === 'manual'
      ? manualRoutingKey(view, routingKeyOverride)
      : resolveRoutingKey(view, {
          rid: routingKeyOverride,
          headers: routingKeyHeaders,
          stripHeaders: routingKeyOverride,
        });
  return routing === undefined ? undefined : composePinKey(pinModel(pool.model, view.model), pool.leg, routing.key);
}

/**
 * Counts a dispatch that was decided elsewhere.
 *
 * @throws TypeError for a worker that is not registered, and for options of the wrong type; nothing is counted then
 */
export function beginElsewhere(core: RouterCore, workerId: WorkerId, options: ElsewhereOptions): Lease {
  checkBeginOptions(core, options);
  const key = checkRoutingKey(options.routingKey);
  const named = new RequestView({ model: options.model, leg: options.leg });
  core.advance();
  const worker = core.workers.get(workerId);
  if (worker === undefined) throw refuse('workerId', 'a registered worker', workerId);
  const model = named.model ?? worker.models[0] ?? unknownModel;
  const leg = named.leg ?? legOfKind[worker.kind];
  return beginLease(core, worker, key === undefined ? undefined : composePinKey(model, leg, key), options);
}

/** @throws TypeError for a key that cannot be one */
function checkRoutingKey(key: string | undefined): string | undefined {
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || !isValidRoutingKey(key)) throw refuse('routingKey', '1 to 128 bytes of text', key);
  return key;
}
