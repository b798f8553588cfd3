/**
 * `cache_aware`: sends a request where the longest part of its prompt is probably cached, unless the workers that hold
 * it are hot (spec 05). What knows the holders is a prefix tree (cache-aware-tree.ts), an index at fixed token positions
 * (cache-aware-hash.ts) or the engines' own KV events (cache-aware-events.ts); cache-aware-policy.ts puts them in order
 * and affinity.ts chooses. A hit is O(prefix). This file makes the policy: for a pool, and for use alone.
 */
import { type CacheAwareOptions, checkCacheAwareOptions } from '../options/policy-options.js';
import { cacheAwareTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';
import type { KvEventBatch } from '../prefix/kv-event.js';
import { type KvBatchResult, KvEventFeed, type KvIndexSettings } from '../prefix/kv-event-feed.js';
import { namespaceKey } from '../prefix/namespace.js';
import { ElapsedTime } from '../runtime/clock.js';
import { forkOf, systemRandom } from '../runtime/random.js';
import { scopeOf } from '../sticky/pin-key.js';
import type { WorkerId } from '../workers/candidate.js';
import { unknownModel } from '../workers/worker-spec.js';
import type { CacheAwareSettings } from './affinity.js';
import { type CacheAwareDeps, CacheAwarePolicy } from './cache-aware-policy.js';
import type { LearnedState } from './learned-state.js';
import type { LearnedPlacement, Leg, Policy } from './policy.js';
import { clockOf, type RuntimeOptions, randomOf, runtimeTable } from './runtime-options.js';
import { type StandalonePolicy, standalone } from './standalone.js';

/** The policy of one pool. */
export function createCacheAware(options: CacheAwareSettings, deps: CacheAwareDeps = {}): Policy & LearnedState {
  return new CacheAwarePolicy(options, deps);
}

/** A placement for a policy used alone, which keeps requests of several models and legs apart by itself. */
export interface ScopedPlacement extends LearnedPlacement {
  /** Default `unknown`. */
  readonly model?: string | undefined;
  /** Default `single`. */
  readonly leg?: Leg | undefined;
}

/** `cache_aware` used without a router. */
export interface StandaloneCacheAware extends StandalonePolicy {
  /**
   * Merges a placement made elsewhere, for a worker that has been or will be given as a candidate (LB-34).
   *
   * @returns whether anything changed
   * @throws TypeError naming the malformed field, before anything changed
   */
  applyPlacement(placement: ScopedPlacement): boolean;
  /** KV-event batches of the engines, as on the router (CA-90). One index serves requests of any model. */
  readonly kvEvents: {
    /** Applies one batch of the worker's stream; its first batch registers the worker. */
    applyBatch(worker: WorkerId, batch: KvEventBatch): KvBatchResult;
    /** Forgets what the worker's stream has told, and its position in it (CA-93). */
    reset(worker: WorkerId): void;
  };
}

/**
 * `cache_aware` without a router: affinity to the longest known prefix, behind the spill gate (CA-3). Requests of
 * different models or legs never match each other, as they would be in different pools.
 *
 * @throws RoutingConfigError for an unknown or invalid option, or `cacheIndex: 'hash'` without boundaries
 */
export function cacheAware(options?: CacheAwareOptions & RuntimeOptions): StandaloneCacheAware {
  const resolved = resolveOptions({ ...cacheAwareTable, ...runtimeTable }, options);
  checkCacheAwareOptions(resolved, '');
  const ownFeed = new KvEventFeed();
  ownFeed.configure(allModels, kvIndexSettings(resolved));
  const policy = new CacheAwarePolicy(resolved, {
    kvIndex: () => ownFeed.indexFor(allModels),
    ownFeed,
    salt: Math.floor(forkOf(randomOf(resolved), systemRandom)() * 2 ** 32),
    partitionOf: (request, ctx) => scopedPartition(ctx.model, ctx.leg, namespaceKey(request.namespace)),
  });
  const time = new ElapsedTime(clockOf(resolved));
  return Object.assign(forgetting(policy, standalone(policy, resolved)), {
    applyPlacement: ({ model, leg, ...learned }: ScopedPlacement): boolean => {
      const namespace = scopedPartition(model ?? unknownModel, leg ?? 'single', learned.namespace);
      return policy.applyPlacement({ ...learned, namespace }, time.advance());
    },
    kvEvents: {
      applyBatch: (worker: WorkerId, batch: KvEventBatch): KvBatchResult => {
        ownFeed.addWorker(worker, [allModels]);
        return ownFeed.applyBatch(worker, batch, time.advance());
      },
      reset: (worker: WorkerId): void => ownFeed.reset(worker),
    },
  });
}

/**
 * Placements and events may have told of a worker that was never a candidate: it is forgotten too, by combinators as
 * well.
 */
function forgetting(policy: CacheAwarePolicy, alone: StandalonePolicy): StandalonePolicy {
  const forget = alone.forget.bind(alone);
  const wrap = alone.wrap.bind(alone);
  return Object.assign(alone, {
    forget: (id: WorkerId): void => {
      forget(id);
      policy.workerRemoved(id);
    },
    wrap: (combinator: Parameters<typeof wrap>[0]) => forgetting(policy, wrap(combinator)),
  });
}

/** The model under which a policy used alone keeps its one KV index. */
const allModels = unknownModel;

/** How the KV index of a pool's model is kept (CA-91, CA-96). */
function kvIndexSettings(options: CacheAwareSettings): KvIndexSettings {
  return { ttlMs: options.kvIndexerTtlMs, maxEntries: options.kvIndexerMaxEntries, blockSize: options.blockSize };
}

/** A partition of its own for each model and leg; the request's own for those that name neither. */
function scopedPartition(model: string, leg: Leg, namespace: string | undefined): string | undefined {
  if (model === unknownModel && leg === 'single') return namespace;
  return scopeOf(model, leg) + (namespace ?? '');
}
