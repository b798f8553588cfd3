/**
 * A row of the conformance schema: its types, its strict reading (a field nobody knows is an error, never ignored), and
 * the expansion of its short forms for tokens and text.
 */

export interface RankValues {
  readonly waitingReqs?: number;
  readonly waitingTokens?: number;
  readonly tokenUsage?: number;
  readonly throughput?: number;
}

export type ReportValues = RankValues | { readonly ranks: readonly RankValues[] };

export interface WorkerRow {
  readonly id: string;
  readonly inFlight: number;
  readonly status?: 'pending' | 'ready' | 'not_ready' | 'failed' | 'draining';
  readonly breaker?: 'closed' | 'open' | 'half_open';
  readonly overloaded?: boolean;
  readonly report?: ReportValues | null;
  readonly keys?: Readonly<Record<string, number>>;
}

export interface NamespaceRow {
  readonly cacheSalt?: string;
  readonly extraKey?: string;
  readonly lora?: string;
}

/** Tokens and text in their literal and short forms. */
export interface UnitsRow {
  readonly tokens?: readonly number[];
  readonly tokenSegments?: readonly (readonly [number, number])[];
  readonly text?: string;
  readonly textRepeat?: readonly [string, number];
}

export interface RequestRow extends UnitsRow {
  readonly headers?: Readonly<Record<string, string>>;
  readonly leg?: 'single' | 'prefill' | 'decode' | 'encode';
  readonly model?: string;
  readonly rid?: string;
  readonly namespace?: NamespaceRow;
}

export interface ExpectRow {
  readonly worker?: string;
  readonly oneOf?: readonly string[];
  readonly none?: true;
  readonly branch?: string;
  readonly level?: number;
  readonly source?: 'rid' | 'header';
  readonly ratio?: number;
  readonly scores?: Readonly<Record<string, number>>;
  readonly stable?: true;
}

export type SetupStep =
  | { readonly op: 'select'; readonly request: RequestRow; readonly expect: ExpectRow }
  | { readonly op: 'report'; readonly reports: Readonly<Record<string, ReportValues | null>> }
  | { readonly op: 'set'; readonly worker: string; readonly values: Partial<WorkerRow> }
  | {
      readonly op: 'acquire' | 'release';
      readonly worker: string;
      readonly n?: number;
      readonly key?: string;
      readonly model?: string;
      readonly leg?: RequestRow['leg'];
    }
  | { readonly op: 'advance'; readonly secs: number }
  | ({ readonly op: 'seed'; readonly namespace?: NamespaceRow; readonly tenants: readonly string[] } & UnitsRow)
  | { readonly op: 'remove'; readonly worker: string }
  | { readonly op: 'adjustBuckets' };

export interface StateRow {
  /** Level → what the ring answers for that head. */
  readonly ringOwner?: Readonly<Record<string, string>>;
  /** Worker → token sequences whose full blocks it holds. */
  readonly kvIndex?: Readonly<Record<string, readonly (UnitsRow | readonly number[])[]>>;
  readonly routed?: Readonly<Record<string, number>>;
  /** Worker and its inclusive range; `null` = no upper end. */
  readonly ranges?: readonly (readonly [string, number, number | null])[];
}

export type Values = Readonly<Record<string, unknown>>;

export interface DecisionRow {
  readonly id: string;
  readonly policy: string;
  readonly config: Values;
  readonly workers: readonly WorkerRow[];
  readonly state: StateRow;
  readonly setup: readonly SetupStep[];
  readonly request: RequestRow;
  readonly expect: ExpectRow;
}

export interface FunctionRow {
  readonly id: string;
  /** Without its prefix `fn:`. */
  readonly name: string;
  readonly request: Values;
  readonly expect: Values;
}

export type Row = DecisionRow | FunctionRow;

/** A row that does not fit the schema; it counts as failed (CC-10). */
export class UnmappableRow extends Error {}

export function isFunctionRow(row: Row): row is FunctionRow {
  return 'name' in row;
}

/** @throws UnmappableRow when a field is missing, unknown or of the wrong shape */
export function readRow(value: unknown): Row {
  const row = known(value, 'row', [
    'id',
    'policy',
    'config',
    'workers',
    'state',
    'setup',
    'request',
    'expect',
    'source',
    'spec',
  ]);
  const id = text(row.id, 'id');
  const policy = text(row.policy, 'policy');
  const config = object(row.config ?? {}, 'config');
  const workers = list(row.workers ?? [], 'workers');
  const request = object(row.request, 'request');
  const expect = object(row.expect, 'expect');
  const setup = list(row.setup ?? [], 'setup');
  const state = known(row.state ?? {}, 'state', ['ringOwner', 'kvIndex', 'routed', 'ranges']);
  if (policy.startsWith('fn:')) {
    const extra = workers.length + setup.length + Object.keys(config).length + Object.keys(state).length;
    if (extra > 0) throw new UnmappableRow('a function row has no workers, setup, config or state');
    return { id, name: policy.slice(3), request, expect };
  }
  for (const worker of workers) checkWorker(worker);
  for (const step of setup) checkStep(step);
  checkRequest(request);
  checkExpect(expect);
  const checked = { id, policy, config, workers, state, setup, request, expect };
  return checked as unknown as DecisionRow;
}

function checkWorker(value: unknown): void {
  const worker = known(value, 'worker', ['id', 'inFlight', 'status', 'breaker', 'overloaded', 'report', 'keys']);
  text(worker.id, 'worker.id');
  if (!Number.isInteger(worker.inFlight ?? 0)) throw new UnmappableRow('worker.inFlight is no integer');
  checkReport(worker.report);
}

function checkReport(value: unknown): void {
  if (value === undefined || value === null) return;
  const rankFields = ['waitingReqs', 'waitingTokens', 'tokenUsage', 'throughput'];
  if ('ranks' in object(value, 'report')) {
    for (const rank of list(known(value, 'report', ['ranks']).ranks, 'ranks')) known(rank, 'rank', rankFields);
  } else {
    known(value, 'report', rankFields);
  }
}

const unitFields = ['tokens', 'tokenSegments', 'text', 'textRepeat'];

const stepFields: Readonly<Record<string, readonly string[]>> = {
  select: ['request', 'expect'],
  report: ['reports'],
  set: ['worker', 'values'],
  acquire: ['worker', 'n', 'key', 'model', 'leg'],
  release: ['worker', 'n', 'key', 'model', 'leg'],
  advance: ['secs'],
  seed: [...unitFields, 'namespace', 'tenants'],
  remove: ['worker'],
  adjustBuckets: [],
};

function checkStep(value: unknown): void {
  const op = text(object(value, 'step').op, 'op');
  const fields = Object.hasOwn(stepFields, op) ? stepFields[op] : undefined;
  if (fields === undefined) throw new UnmappableRow(`setup op ${op} is unknown`);
  const step = known(value, `op ${op}`, ['op', ...fields]);
  if (op === 'select') {
    checkRequest(step.request);
    if (step.expect !== undefined) checkExpect(step.expect);
  }
  if (op === 'report') for (const report of Object.values(object(step.reports, 'reports'))) checkReport(report);
  if (op === 'set') {
    const values = known(step.values, 'values', ['inFlight', 'status', 'breaker', 'overloaded', 'report', 'keys']);
    checkReport(values.report);
  }
}

function checkRequest(value: unknown): void {
  const request = known(value, 'request', [...unitFields, 'headers', 'leg', 'model', 'rid', 'namespace']);
  if (request.namespace !== undefined) known(request.namespace, 'namespace', ['cacheSalt', 'extraKey', 'lora']);
}

function checkExpect(value: unknown): void {
  const outcomes = ['worker', 'oneOf', 'none'];
  const expect = known(value, 'expect', [...outcomes, 'branch', 'level', 'source', 'ratio', 'scores', 'stable']);
  if (outcomes.filter((name) => expect[name] !== undefined).length !== 1) {
    throw new UnmappableRow('expect needs exactly one of worker, oneOf and none');
  }
}

/** An object with no other fields than these. */
function known(value: unknown, what: string, fields: readonly string[]): Values {
  const checked = object(value, what);
  for (const name of Object.keys(checked)) {
    if (!fields.includes(name)) throw new UnmappableRow(`${what} has the unknown field ${name}`);
  }
  return checked;
}

export function object(value: unknown, what: string): Values {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UnmappableRow(`${what} is no object`);
  }
  return value as Values;
}

export function list(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new UnmappableRow(`${what} is no array`);
  return value;
}

export function text(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new UnmappableRow(`${what} is no string`);
  return value;
}

/** The token ids, or undefined when the row names none. */
export function tokensOf(row: UnitsRow): number[] | undefined {
  if (row.tokens !== undefined) return [...row.tokens];
  if (row.tokenSegments === undefined) return undefined;
  return row.tokenSegments.flatMap(([from, to]) => range(from, to));
}

/** The text, or undefined when the row names none. */
export function textOf(row: UnitsRow): string | undefined {
  return row.textRepeat === undefined ? row.text : row.textRepeat[0].repeat(row.textRepeat[1]);
}

/** from, from + 1, … to − 1. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}
