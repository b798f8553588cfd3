/**
 * Function rows: one table from row name to public export (CC-17). Each entry takes the row's request and returns what
 * came, in the row's own words; only the fields that the row expects are compared.
 */
import {
  bucketRecompute,
  createRouter,
  emptySelection,
  fromFlags,
  isValidRoutingKey,
  KvEventFeed,
  nextSequence,
  type OverloadThresholds,
  parseRoutingTokens,
  type RankLoad,
  RequestScope,
  RoutingConfigError,
  resolveOverloadThresholds,
  ridKey,
  StringTree,
  TokenTree,
} from 'kvroute';
import { type LoadReportKind, parseLoadReport, readLoadResponse } from 'kvroute/engines';
import { flatField, flatOption, routerOptions, workerOptions } from './config.js';
import { RowClock, rankOf } from './fleet.js';
import { list, object, type RankValues, range, text, UnmappableRow, type Values } from './row.js';

type RowFunction = (request: Values) => Values | Promise<Values>;

/** Function row name → what it runs. The package's own name stands in each entry. */
export const rowFunctions: Readonly<Record<string, RowFunction>> = {
  ridKey: ({ rid }) => ({ value: readRidKey(rid) }),
  parseRoutingTokens: ({ header }) => ({ value: abbreviated(parseRoutingTokens(text(header, 'header'))) }),
  routingKeyHeaderValid: ({ header }) => ({ value: isValidRoutingKey(text(header, 'header')) }),
  parseVllmMetrics: (request) => readMetrics('vllm_metrics', request),
  parseSglangMetrics: (request) => readMetrics('sglang_metrics', request),
  parseLoads,
  overloadVerdict: judgeOverload,
  overloadThresholds,
  emptySelection: judgeEmptySelection,
  breaker: runBreaker,
  bucketRecompute: recomputeBuckets,
  tree: runTree,
  kvIndex: runKvIndex,
  kvSequence,
  modelPolicy: runModelPolicy,
  validateConfig,
};

/** Of a list the first id counts; an empty one has none (ST-10). */
function readRidKey(rid: unknown): unknown {
  const first: unknown = Array.isArray(rid) ? rid[0] : rid;
  return first === undefined ? null : (ridKey(text(first, 'rid')) ?? null);
}

/** Long runs of one id are written `512 x 7` in rows. */
function abbreviated(ids: ArrayLike<number> | undefined): unknown {
  if (ids === undefined) return null;
  const listed = Array.from(ids);
  const repeated = listed.length > 100 && listed.every((id) => id === listed[0]);
  return repeated ? `${listed.length} x ${listed[0]}` : listed;
}

function readMetrics(kind: LoadReportKind, request: Values): Values {
  const { text: payload, model } = request;
  const result = parseLoadReport(kind, text(payload, 'text'), { model: model as string | undefined });
  return result.ok ? { rank: reportedRank(result.report.ranks[0] ?? {}) } : { value: null, reason: result.reason };
}

function parseLoads({ status, body }: Values): Values {
  const answer = readLoadResponse((status ?? undefined) as number | undefined, body);
  if (answer.outcome !== 'report') return { outcome: answer.outcome, reason: answer.reason };
  const ranks = answer.report.ranks.map(reportedRank);
  return { outcome: 'report', rank: ranks[0], ranks };
}

/** A rank in the reference's field names; 0 also stands for absent (CC-15). */
function reportedRank(rank: RankLoad): Values {
  return {
    dp_rank: rank.dpRank ?? 0,
    num_running_reqs: rank.runningRequests ?? 0,
    num_waiting_reqs: rank.waitingRequests ?? 0,
    num_waiting_uncached_tokens: rank.waitingTokens ?? 0,
    num_total_reqs: rank.totalRequests ?? 0,
    num_used_tokens: rank.usedTokens ?? 0,
    max_total_num_tokens: rank.maxTotalTokens ?? 0,
    token_usage: rank.kvCacheUsage ?? 0,
    gen_throughput: rank.tokensPerSecond ?? 0,
    cache_hit_rate: rank.cacheHitRate ?? 0,
    utilization: rank.utilization ?? 0,
    max_running_requests: rank.maxRunningRequests ?? 0,
    disagg_mode: rank.disaggregation?.mode ?? null,
    kv_transfer_latency_ms: rank.disaggregation?.kvTransferLatencyMs ?? 0,
    kv_transfer_speed_gb_s: rank.disaggregation?.kvTransferGigabytesPerSecond ?? 0,
    prefill_queue_reqs: rank.disaggregation?.prefillQueueRequests ?? 0,
    decode_queue_reqs: rank.disaggregation?.decodeQueueRequests ?? 0,
  };
}

/** A worker with these thresholds of its own, and one report. */
async function judgeOverload({ thresholds, ranks }: Values): Promise<Values> {
  const router = await createRouter({ clock: new RowClock().read });
  router.addWorker({ id: 'w', overload: object(thresholds, 'thresholds') });
  router.reportLoad('w', { ranks: list(ranks, 'ranks').map((rank) => rankOf(rank as RankValues)) });
  return { value: router.worker('w')?.overload !== undefined };
}

function overloadThresholds({ gateway, ...blocks }: Values): Values {
  const { protection, waitingRequests, tokenUsage } = object(gateway ?? {}, 'gateway');
  const [block, ...others] = Object.values(blocks);
  if (others.length > 0) throw new UnmappableRow('more than one worker block');
  const resolved: OverloadThresholds = resolveOverloadThresholds(
    {
      workerOverloadProtection: protection === true,
      workerOverloadWaitingRequests: (waitingRequests ?? undefined) as number | undefined,
      workerOverloadTokenUsage: (tokenUsage ?? undefined) as number | undefined,
    },
    block === undefined ? undefined : object(block, 'block'),
  );
  return { waitingRequests: resolved.waitingRequests ?? null, tokenUsage: resolved.tokenUsage ?? null };
}

function judgeEmptySelection({ pool }: Values): Values {
  const members = list(pool, 'pool').map((member) => ({ overloaded: object(member, 'member').overloaded === true }));
  const reason = emptySelection(members);
  return { result: reason === 'overloaded' ? 'worker_overload_protection_shed' : 'no_available_workers' };
}

/** One worker of a router; each outcome is recorded as a host without leases does. */
async function runBreaker({ config, events }: Values): Promise<Values> {
  const clock = new RowClock();
  const { disabled, capacityStatusCodes, retryableStatusCodes, ...breaker } = object(config, 'config');
  const options = routerOptions({ circuitBreaker: breaker, disableCircuitBreaker: disabled === true });
  const router = await createRouter({ ...options, clock: clock.read });
  const codes = { capacityStatusCodes, retryableStatusCodes } as { capacityStatusCodes?: number[] };
  router.addWorker({ id: 'w', resilience: codes });
  const scopes = new Map<unknown, RequestScope>();
  for (const event of list(events, 'events')) {
    if (typeof event === 'number') {
      router.recordOutcome('w', { status: event });
    } else if ('advance' in object(event, 'event')) {
      clock.advance((event as { advance: number }).advance * 1000);
    } else {
      // Events that name the same request are attempts of one.
      const { request, statuses } = event as { request?: unknown; statuses: number[] };
      const scope = scopes.get(request ?? event) ?? new RequestScope();
      scopes.set(request ?? event, scope);
      for (const status of statuses) router.recordOutcome('w', { status }, scope);
    }
  }
  const worker = router.worker('w');
  return {
    state: worker?.breakerState,
    failures: worker?.consecutiveFailures,
    successes: worker?.consecutiveSuccesses,
    allows: worker?.available,
  };
}

function recomputeBuckets({ workers, sizes, previousShare }: Values): Values {
  const count = list(workers, 'workers').length;
  const adjustment = bucketRecompute(count, list(sizes, 'sizes') as number[], (previousShare ?? 0) as number);
  if (adjustment === undefined) return { unchanged: true };
  const { share, ranges } = adjustment;
  return { share, ranges: ranges.map(({ low, high }) => [low, high === Infinity ? null : high]) };
}

function runTree({ kind, ops }: Values): Values {
  const page = /^token(\d+)$/.exec(text(kind, 'kind'))?.[1];
  if (page === undefined && kind !== 'string') throw new UnmappableRow(`tree kind ${kind} is unknown`);
  const maxTreeSize = Number.MAX_SAFE_INTEGER;
  // One of both; each op hands it the units of its kind.
  const tree =
    page === undefined ? new StringTree({ maxTreeSize }) : new TokenTree({ maxTreeSize, blockSize: Number(page) });
  const unitsOf = (value: unknown): never =>
    (page === undefined ? text(value, 'units') : range(...(value as [number, number]))) as never;
  const seen = new Set<string>();
  let matched = {};
  for (const op of list(ops, 'ops') as readonly (readonly unknown[])[]) {
    const [name, first, worker] = op;
    if (name === 'insert') {
      seen.add(text(worker, 'worker'));
      tree.insert(unitsOf(first), worker as string);
    } else if (name === 'removeTenant') tree.removeTenant(text(first, 'worker'));
    else if (name === 'evict') tree.evictTo(first as number);
    else if (name === 'match') {
      const { matchedUnits, requestUnits, tenants } = tree.match(unitsOf(first));
      matched = {
        matched: matchedUnits,
        units: requestUnits,
        tenants: [...tenants].sort(),
        tenantCount: tenants.length,
      };
    } else throw new UnmappableRow(`tree op ${name} is unknown`);
  }
  const sizes = [...seen].map((id) => [id, tree.sizeOf(id)] as const).filter(([, size]) => size > 0);
  return { tenantCount: tree.tenantCount, ...matched, sizes: Object.fromEntries(sizes), total: tree.size };
}

const kvModel = 'm';

function runKvIndex({ blockSize, ops }: Values): Values {
  const feed = new KvEventFeed();
  const sequences = new Map<string, number>();
  let scores: Values = {};
  const apply = (worker: string, event: object): void => {
    const sequence = (sequences.get(worker) ?? 0) + 1;
    sequences.set(worker, sequence);
    feed.addWorker(worker, [kvModel]);
    feed.applyBatch(worker, { sequence, events: [event as never] }, 0);
  };
  for (const op of list(ops, 'ops') as readonly (readonly unknown[])[]) {
    const [name, worker, first, second] = op;
    if (name === 'stored') apply(text(worker, 'worker'), { type: 'stored', parent: first, blocks: second, blockSize });
    else if (name === 'removed') apply(text(worker, 'worker'), { type: 'removed', hashes: first });
    else if (name === 'cleared') apply(text(worker, 'worker'), { type: 'cleared' });
    else if (name === 'query') {
      const match = feed.indexFor(kvModel)?.overlaps(range(...(worker as [number, number])), 0);
      const found = Array.from({ length: match?.count ?? 0 }, (_, i) => [match?.worker(i), match?.overlap(i)]);
      scores = Object.fromEntries(found);
    } else throw new UnmappableRow(`KV op ${name} is unknown`);
  }
  return { scores, size: feed.indexFor(kvModel)?.memberships ?? 0 };
}

/** `last: 0` stands for none yet, before and after (CA-92). */
function kvSequence({ last, received }: Values): Values {
  const step = nextSequence(last === 0 ? undefined : (last as number), received);
  return { result: step.result, last: Number(step.last ?? 0), expected: step.expected, received: step.received };
}

async function runModelPolicy({ config, ops }: Values): Promise<Values> {
  const given = object(config, 'config');
  // The way a prefill leg has it (CC-12).
  const ranges = given.policy === 'bucket' ? { bucket: { legs: 'any' } } : {};
  const router = await createRouter(routerOptions({ ...given, ...ranges }));
  const workers = new Map<string, string[]>();
  let label: unknown;
  for (const [i, op] of (list(ops, 'ops') as readonly (readonly unknown[])[]).entries()) {
    const [name, model, policy] = op;
    const of = workers.get(text(model, 'model')) ?? [];
    workers.set(model as string, of);
    if (name === 'add') {
      label ??= policy;
      router.addWorker({ id: `w${i}`, models: [model as string], labels: policy ? { policy: policy as string } : {} });
      of.push(`w${i}`);
    } else if (name === 'remove') router.removeWorker(of.shift() ?? '');
    else throw new UnmappableRow(`model op ${name} is unknown`);
  }
  const pools = router.pools();
  const poolOf = (model: string) => pools.find((pool) => pool.model === model);
  const models = [...workers.keys()];
  const configured = poolOf('unknown');
  const first = poolOf(models[0] ?? '');
  const likeConfigured = first?.policy === configured?.policy && same(first?.options, configured?.options);
  // Labels are read whatever their case and underscores (PO-3).
  const labelled = typeof label === 'string' && fold(label) === fold(first?.policy ?? '');
  return {
    policy: Object.fromEntries(models.map((model) => [model, poolOf(model)?.policy ?? null])),
    counts: Object.fromEntries(models.map((model) => [model, poolOf(model)?.workers.length ?? 0])),
    default: likeConfigured,
    // Another policy than the configured one has none of its options given (LM-22).
    ownInstance: labelled && (likeConfigured || first?.policy !== configured?.policy),
    options: Object.fromEntries(Object.entries(first?.options ?? {}).map(([name, value]) => flatOption(name, value))),
  };
}

/** Options that concern the host, by flat name: translated and checked by `fromFlags` (CF-2). */
const hostFlags: Readonly<Record<string, string>> = {
  disableLoadMonitoring: 'disable-load-monitoring',
  engineMetrics: 'engine-metrics',
  pdAdmissionWaitSecs: 'pd-admission-wait-secs',
  dpAware: 'dp-aware',
  'health.checkIntervalSecs': 'health-check-interval-secs',
  'health.timeoutSecs': 'health-check-timeout-secs',
};

async function validateConfig(request: Values): Promise<Values> {
  const { worker, health, ...rest } = request;
  const given = { ...rest, ...prefixed('health', health) };
  const router: Record<string, unknown> = {};
  try {
    for (const [name, value] of Object.entries(given)) {
      const flag = hostFlags[name];
      if (flag !== undefined) checkHostFlag(name, flag, value);
      else if (name.startsWith('health.')) router.health = { ...(router.health as object), [name.slice(7)]: value };
      else router[name] = value;
    }
    const created = await createRouter(routerOptions(router, true));
    if (worker !== undefined) created.addWorker({ id: 'w', ...workerOptions(object(worker, 'worker')) });
    return { ok: true };
  } catch (error) {
    if (!(error instanceof RoutingConfigError)) throw error;
    return { ok: false, errorField: flatField(error.field, request), reason: error.reason };
  }
}

function checkHostFlag(name: string, flag: string, value: unknown): void {
  try {
    fromFlags({ [flag]: value as number });
  } catch (error) {
    throw error instanceof RoutingConfigError ? new RoutingConfigError(name, value, error.reason) : error;
  }
}

function prefixed(section: string, options: unknown): Values {
  const entries = Object.entries(object(options ?? {}, section));
  return Object.fromEntries(entries.map(([name, value]) => [`${section}.${name}`, value]));
}

function fold(name: string): string {
  return name.toLowerCase().replaceAll('_', '');
}

function same(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}
