/**
 * What a host says about a worker at registration, and its check. Nothing is registered when anything is wrong: the
 * error names the field (WK-2, OV-4, LM-15, CF-1).
 */
import { RoutingConfigError } from '../errors.js';
import type { OptionsOf, Resolved } from '../options/spec.js';
import { workerOverloadTable, workerResilienceTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';
import { allOf } from '../runtime/all-of.js';
import type { WorkerId } from './candidate.js';
import { type WorkerStatus, workerStatuses } from './health.js';

/** What a worker does in a disaggregated deployment (WK-4). */
export type WorkerKind = 'regular' | 'prefill' | 'decode' | 'encode';

/** How the host talks to it (WK-5). */
export type ConnectionMode = 'http' | 'grpc' | 'zmq';

/** The engine it runs; only the host's report parsing depends on it (WK-6). */
export type RuntimeType = 'sglang' | 'vllm' | 'trtllm' | 'mlx' | 'tokenspeed' | 'generic' | 'external';

/** The model key of requests and workers that name none (WK-12). */
export const unknownModel = 'unknown';

/** A worker to register. Give an `id` or a `url`; everything else is optional. */
export interface WorkerSpec {
  /** Identity, any non-empty string. Absent: the `url` (WK-1). */
  readonly id?: WorkerId | undefined;
  /** `http`, `https`, `grpc`, `grpcs` with a host, or `ipc` with a path, lower case (WK-2). Checked, never opened. */
  readonly url?: string | undefined;
  /** Default `regular` (WK-4). */
  readonly kind?: WorkerKind | undefined;
  /** Default: from the URL's scheme, `http` without a URL (WK-5). */
  readonly connectionMode?: ConnectionMode | undefined;
  /** Unset: not known, which matters to pairing (LM-31). */
  readonly runtime?: RuntimeType | undefined;
  /** Model ids it serves, the primary one first. Absent or empty: its `model_id` label, else `unknown` (WK-10). */
  readonly models?: readonly string[] | undefined;
  /** Labels; `policy`, `model_id`, `max_running_requests` and the pairing labels have a meaning (WK-7). */
  readonly labels?: Readonly<Record<string, string>> | ReadonlyMap<string, string> | undefined;
  /** Status to start with. Default `ready`; a host that probes adds workers as `pending` (WK-19a). */
  readonly status?: WorkerStatus | undefined;
  /** KV block size in tokens, until events teach better; 0 counts as unset (CA-91). */
  readonly kvBlockSize?: number | undefined;
  /** Poll interval of this worker in milliseconds; values below 1 000 count as 1 000 (LR-20). */
  readonly loadMonitorIntervalMs?: number | undefined;
  /** Its own overload thresholds (OV-4). */
  readonly overload?: OptionsOf<typeof workerOverloadTable> | undefined;
  /** Its own breaker settings (CB-40). */
  readonly resilience?: OptionsOf<typeof workerResilienceTable> | undefined;
  /** Port of the prefill bootstrap server; 0 is an error (LM-15). */
  readonly bootstrapPort?: number | undefined;
}

/** A checked spec with its defaults applied; fields as in `WorkerSpec`. */
export interface CheckedWorkerSpec {
  readonly id: WorkerId;
  readonly url: string | undefined;
  readonly kind: WorkerKind;
  readonly connectionMode: ConnectionMode;
  readonly runtime: RuntimeType | undefined;
  /** Distinct model keys, never empty (WK-11). */
  readonly models: readonly string[];
  /** True when no model was named: such workers serve requests for unregistered models (WK-13a). */
  readonly unnamed: boolean;
  readonly labels: ReadonlyMap<string, string>;
  readonly status: WorkerStatus;
  readonly kvBlockSize: number | undefined;
  readonly loadMonitorIntervalMs: number | undefined;
  readonly overload: Resolved<typeof workerOverloadTable>;
  readonly resilience: OptionsOf<typeof workerResilienceTable> | undefined;
  readonly bootstrapPort: number | undefined;
}

const kinds: readonly WorkerKind[] = ['regular', 'prefill', 'decode', 'encode'];
const connectionModes: readonly ConnectionMode[] = ['http', 'grpc', 'zmq'];
const runtimes: readonly RuntimeType[] = ['sglang', 'vllm', 'trtllm', 'mlx', 'tokenspeed', 'generic', 'external'];

/** Every field there is: any other name is refused. */
const fields: Readonly<Record<keyof WorkerSpec, true>> = {
  id: true,
  url: true,
  kind: true,
  connectionMode: true,
  runtime: true,
  models: true,
  labels: true,
  status: true,
  kvBlockSize: true,
  loadMonitorIntervalMs: true,
  overload: true,
  resilience: true,
  bootstrapPort: true,
};

/**
 * Checks a spec and fills in the defaults. Lists and labels are copies: the host may go on changing its own.
 *
 * @throws RoutingConfigError whose field is `worker.…`
 */
export function checkWorkerSpec(spec: WorkerSpec): CheckedWorkerSpec {
  if (typeof spec !== 'object' || spec === null) throw new RoutingConfigError('worker', spec, 'must be an object');
  for (const name of Object.keys(spec)) {
    if (!Object.hasOwn(fields, name)) throw wrong(name, spec[name as keyof WorkerSpec], 'is not a field of a worker');
  }
  const { url } = spec;
  if (url !== undefined) checkUrl(url);
  const id = spec.id ?? url;
  if (typeof id !== 'string' || id === '') throw wrong('id', id, 'must be a non-empty string, or a url must be given');
  const labels = checkLabels(spec.labels);
  const models = checkModels(spec.models, labels);
  return {
    id,
    url,
    kind: oneOf('kind', spec.kind, kinds) ?? 'regular',
    connectionMode: oneOf('connectionMode', spec.connectionMode, connectionModes) ?? modeOf(url),
    runtime: oneOf('runtime', spec.runtime, runtimes),
    models,
    unnamed: models.length === 1 && models[0] === unknownModel,
    labels,
    status: oneOf('status', spec.status, workerStatuses) ?? 'ready',
    kvBlockSize: checkInteger('kvBlockSize', spec.kvBlockSize, 0, Number.MAX_SAFE_INTEGER) || undefined,
    loadMonitorIntervalMs: checkInterval(spec.loadMonitorIntervalMs),
    overload: resolveOptions(workerOverloadTable, spec.overload, 'worker.overload.'),
    resilience: checkResilience(spec.resilience),
    bootstrapPort: checkInteger('bootstrapPort', spec.bootstrapPort, 1, 65_535),
  };
}

/** A host by name, IPv4 address or bracketed IPv6 address; then the end, a port, a path, or the `@` behind a user. */
const webUrl = /^(?:https?|grpcs?):\/\/(?:\[[0-9a-fA-F:.]+\]|[^/?#:@\s[\]]+)(?:[:@/?#]|$)/;
const ipcUrl = /^ipc:\/\/[^\s]/;

function checkUrl(url: unknown): void {
  if (typeof url !== 'string' || !(webUrl.test(url) || ipcUrl.test(url))) {
    throw wrong('url', url, 'must be http://, https://, grpc:// or grpcs:// with a host, or ipc:// with a path');
  }
}

function modeOf(url: string | undefined): ConnectionMode {
  if (url?.startsWith('grpc')) return 'grpc';
  return url?.startsWith('ipc:') ? 'zmq' : 'http';
}

function checkLabels(labels: WorkerSpec['labels']): ReadonlyMap<string, string> {
  if (labels === undefined) return new Map();
  if (typeof labels !== 'object' || labels === null || Array.isArray(labels)) {
    throw wrong('labels', labels, 'must be an object or a Map of strings');
  }
  const checked = new Map<string, string>();
  const names: Iterable<unknown> = labels instanceof Map ? labels.keys() : Object.keys(labels);
  for (const name of names) {
    if (typeof name !== 'string') throw wrong('labels', name, 'must have names that are strings');
    const value: unknown = labels instanceof Map ? labels.get(name) : Reflect.get(labels, name);
    if (typeof value !== 'string') throw wrong(`labels.${name}`, value, 'must be a string');
    checked.set(name, value);
  }
  return checked;
}

function checkModels(models: unknown, labels: ReadonlyMap<string, string>): readonly string[] {
  if (models !== undefined && !(Array.isArray(models) && allOf(models, (model) => typeof model === 'string'))) {
    throw wrong('models', models, 'must be an array of model ids');
  }
  const named = (models ?? []) as readonly string[];
  const keys = named.length > 0 ? named : [labels.get('model_id') ?? ''];
  const checked = keys.map((model) => (model === '' ? unknownModel : model));
  return checked.length === 1 ? checked : [...new Set(checked)];
}

function checkInterval(value: number | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (!Number.isFinite(value) || value <= 0) {
    throw wrong('loadMonitorIntervalMs', value, 'must be a finite number above 0 (ms)');
  }
  return Math.max(1000, value);
}

function checkResilience(value: WorkerSpec['resilience']): WorkerSpec['resilience'] {
  if (value === undefined) return undefined;
  const resolved = resolveOptions(workerResilienceTable, value, 'worker.resilience.');
  // Only what was given: what is unset comes from the router's own options (CB-40). Copies, as the host keeps its object.
  const given = Object.entries(resolved).filter(([name]) => value[name as keyof typeof value] !== undefined);
  return Object.fromEntries(given);
}

function checkInteger(field: string, value: unknown, min: number, max: number): number | undefined {
  if (value === undefined) return undefined;
  if (!Number.isInteger(value) || (value as number) < min || (value as number) > max) {
    throw wrong(field, value, `must be an integer between ${min} and ${max}`);
  }
  return value as number;
}

function oneOf<T>(field: string, value: T | undefined, allowed: readonly T[]): T | undefined {
  if (value !== undefined && !allowed.includes(value)) {
    throw wrong(field, value, `must be one of ${allowed.join(', ')}`);
  }
  return value;
}

function wrong(field: string, value: unknown, reason: string): RoutingConfigError {
  return new RoutingConfigError(`worker.${field}`, value, reason);
}
