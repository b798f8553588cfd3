/**
 * The JSON load bodies: SGLang `/v1/loads` (LR-1, LR-2), its legacy `/get_load`, and vLLM `/load`.
 *
 * A rank of `/v1/loads` may be written flat or in the sections `core`, `memory`, `queues` and `disagg`; flat wins
 * (LR-14). A field the engine did not send stays absent (LR-32). A body in which no rank says anything we know is
 * another schema, not an idle worker (B41). O(size of the body).
 */
import type { DisaggregationLoad, RankLoad } from '../load/report.js';
import { FieldReader, type NumberKind } from './field-reader.js';
import { type LoadReportResult, noReport } from './load-result.js';
import { asRecord, type JsonRecord, own } from './payload.js';

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type NumberField = Exclude<keyof RankLoad, 'disaggregation'>;

const rankFields: readonly (readonly [name: string, field: NumberField, kind: NumberKind])[] = [
  ['dp_rank', 'dpRank', 'count'],
  ['num_running_reqs', 'runningRequests', 'count'],
  ['num_waiting_reqs', 'waitingRequests', 'count'],
  ['num_waiting_uncached_tokens', 'waitingTokens', 'count'],
  ['num_total_reqs', 'totalRequests', 'count'],
  ['num_used_tokens', 'usedTokens', 'count'],
  ['max_total_num_tokens', 'maxTotalTokens', 'count'],
  ['token_usage', 'kvCacheUsage', 'amount'],
  ['gen_throughput', 'tokensPerSecond', 'amount'],
  ['cache_hit_rate', 'cacheHitRate', 'amount'],
  ['utilization', 'utilization', 'amount'],
  ['max_running_requests', 'maxRunningRequests', 'count'],
];

const disaggregationFields: readonly (readonly [
  name: string,
  field: Exclude<keyof DisaggregationLoad, 'mode'>,
  kind: NumberKind,
])[] = [
  ['kv_transfer_latency_ms', 'kvTransferLatencyMs', 'amount'],
  ['kv_transfer_speed_gb_s', 'kvTransferGigabytesPerSecond', 'amount'],
  ['prefill_queue_reqs', 'prefillQueueRequests', 'count'],
  ['decode_queue_reqs', 'decodeQueueRequests', 'count'],
];

const sections: readonly string[] = ['core', 'memory', 'queues'];

/** Reads a `/v1/loads` body. */
export function readSglangLoads(body: unknown): LoadReportResult {
  const record = asRecord(body);
  const loads = record && own(record, 'loads');
  if (record === undefined || !Array.isArray(loads)) return noReport('not_a_report', 'no list of loads');
  if (loads.length === 0) return noReport('empty', 'no rank has reported yet');
  const head = new FieldReader('', record);
  const timestamp = head.optionalString('timestamp');
  const rankCount = head.optionalNumber('dp_rank_count', 'count') ?? 0;
  if (head.problem !== undefined) return noReport('invalid', head.problem);
  if (rankCount > loads.length) return noReport('invalid', `${loads.length} of ${rankCount} ranks`);
  return reportOf(loads, readRank, timestamp);
}

/** Reads a legacy `/get_load` body: a list of ranks, or in older versions one object with a single number. */
export function readSglangGetLoad(body: unknown): LoadReportResult {
  if (Array.isArray(body)) {
    return body.length === 0 ? noReport('empty', 'no rank has reported yet') : reportOf(body, readLegacyRank);
  }
  const record = asRecord(body);
  if (record === undefined) return noReport('not_a_report', 'neither a list nor an object');
  if (Object.hasOwn(record, 'num_reqs')) return reportOf([record], readLegacyRank);
  return readSingleNumber(record, 'load');
}

/** Reads a vLLM `/load` body, which counts requests and says nothing of the queue or the KV cache. */
export function readVllmLoad(body: unknown): LoadReportResult {
  const record = asRecord(body);
  return record === undefined ? noReport('not_a_report', 'not an object') : readSingleNumber(record, 'server_load');
}

/** One number that mixes queue and execution is no report: it would leave the worker looking idle (B41, B47). */
function readSingleNumber(record: JsonRecord, name: string): LoadReportResult {
  const fields = new FieldReader('', record);
  const load = fields.number(name, 'amount');
  if (fields.problem !== undefined) return noReport('invalid', fields.problem);
  return load === undefined ? noReport('not_a_report', `no ${name}`) : noReport('no_kv_usage', `only ${name}`);
}

type RankReader = (entry: JsonRecord, path: string) => RankLoad | string;

function reportOf(entries: readonly unknown[], read: RankReader, timestamp?: string): LoadReportResult {
  const ranks: RankLoad[] = [];
  const seen = new Set<number>();
  let told = false;
  for (let i = 0; i < entries.length; i++) {
    const entry = asRecord(entries[i]);
    const rank = entry === undefined ? 'not an object' : read(entry, `[${i}].`);
    if (typeof rank === 'string') return noReport('invalid', `rank entry ${i}: ${rank}`);
    const { dpRank = 0, ...load } = rank;
    if (seen.has(dpRank)) return noReport('invalid', `rank ${dpRank} twice`);
    seen.add(dpRank);
    told ||= Object.keys(load).length > 0;
    ranks.push(rank);
  }
  if (!told) return noReport('not_a_report', 'no rank has a field of a load');
  return { ok: true, report: timestamp === undefined ? { ranks } : { timestamp, ranks } };
}

/** A rank of `/v1/loads`, or what is wrong with it. */
function readRank(entry: JsonRecord, path: string): RankLoad | string {
  const scopes = [entry];
  for (const name of sections) {
    const section = asRecord(own(entry, name));
    if (section !== undefined) scopes.push(section);
  }
  const fields = new FieldReader(path, ...scopes);
  const rank: Writable<RankLoad> = {};
  const tokensKnown = fields.value('num_waiting_uncached_tokens_available') !== false;
  for (const [name, field, kind] of rankFields) {
    if (field === 'waitingTokens' && !tokensKnown) continue;
    const value = fields.number(name, kind);
    if (value !== undefined) rank[field] = value;
  }
  const disaggregation = readDisaggregation(entry, path);
  if (typeof disaggregation === 'string') return disaggregation;
  if (Object.keys(disaggregation).length > 0) rank.disaggregation = disaggregation;
  return fields.problem ?? rank;
}

function readDisaggregation(entry: JsonRecord, path: string): DisaggregationLoad | string {
  const section = asRecord(own(entry, 'disagg'));
  const fields = section === undefined ? new FieldReader(path, entry) : new FieldReader(path, entry, section);
  const load: Writable<DisaggregationLoad> = {};
  for (const [name, field, kind] of disaggregationFields) {
    const value = fields.optionalNumber(name, kind);
    if (value !== undefined) load[field] = value;
  }
  // Nested, the mode drops its prefix; a flat `mode` would be another field of another schema.
  const nested = new FieldReader(`${path}disagg.`, section ?? {});
  const mode = fields.optionalString('disagg_mode') ?? nested.optionalString('mode');
  if (mode === 'prefill' || mode === 'decode') load.mode = mode;
  fields.problem ??= nested.problem;
  return fields.problem ?? load;
}

/**
 * A rank of `/get_load`. `num_reqs` counts running and waiting requests; `num_tokens` adds queued prompts to the tokens
 * in use and so is neither of our two fields. Without the two counts the entry is no load.
 */
function readLegacyRank(entry: JsonRecord, path: string): RankLoad | string {
  const fields = new FieldReader(path, entry);
  const rank: Writable<RankLoad> = {};
  const dpRank = fields.number('dp_rank', 'count');
  const totalRequests = fields.number('num_reqs', 'count');
  const waitingRequests = fields.number('num_waiting_reqs', 'count');
  if (fields.problem !== undefined) return fields.problem;
  if (dpRank !== undefined) rank.dpRank = dpRank;
  if (totalRequests === undefined || waitingRequests === undefined) return rank;
  if (waitingRequests > totalRequests) return `${path}num_waiting_reqs exceeds num_reqs`;
  rank.runningRequests = totalRequests - waitingRequests;
  rank.waitingRequests = waitingRequests;
  rank.totalRequests = totalRequests;
  return rank;
}
