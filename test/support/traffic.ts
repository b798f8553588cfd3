/**
 * Hostile but ordinary traffic for one router, as a sequence of calls in plain data: workers join, leave, flap and drain,
 * reports come late, twice, invalid or not at all, requests are aborted or forgotten, clocks step. Nothing in it depends on
 * what the router answers, so a recorded sequence can be replayed anywhere (LB-3). `Player` makes the calls.
 */
import type { KvEvent, KvEventBatch, LeaseOutcome, LoadReport, RouteRequest, WorkerSpec, WorkerStatus } from 'kvroute';
import { type RandomSource, seededRandom } from 'kvroute/testing';

/** One call, in a form that structured clone keeps. */
export type Call =
  | { readonly do: 'select'; readonly request: RouteRequest; readonly candidates?: string[]; readonly begin?: Begin }
  | { readonly do: 'explain' | 'rank'; readonly request: RouteRequest }
  | { readonly do: 'elsewhere'; readonly worker: string; readonly routingKey?: string }
  /** `which` picks one of the open leases: 0 the oldest place, towards 1 the newest. */
  | {
      readonly do: 'end';
      readonly which: number;
      readonly how: 'end' | 'dispose' | 'abort' | 'forget';
      readonly outcome?: LeaseOutcome;
    }
  | { readonly do: 'register'; readonly spec: WorkerSpec }
  | { readonly do: 'remove'; readonly worker: string }
  | { readonly do: 'status'; readonly worker: string; readonly status: WorkerStatus }
  | { readonly do: 'probe'; readonly worker: string; readonly ok: boolean }
  | { readonly do: 'outcome'; readonly worker: string; readonly outcome: LeaseOutcome }
  | { readonly do: 'reports'; readonly batch: readonly AgedReport[] }
  | { readonly do: 'kvEvents'; readonly worker: string; readonly batch: KvEventBatch }
  | { readonly do: 'kvReset'; readonly worker: string }
  /** Moves the reading of the clock, back as well as forward. */
  | { readonly do: 'clock'; readonly byMs: number }
  | { readonly do: 'maintain' }
  | { readonly do: 'snapshot' };

/** How a selected request is dispatched: watched by a signal of its own, by one that all share, or by none. */
export interface Begin {
  readonly signal?: 'own' | 'shared';
  readonly scope?: string;
}

/** A report taken `ageMs` before the call; negative = stamped in the future. */
export interface AgedReport {
  readonly worker: string;
  readonly report: LoadReport | null;
  readonly ageMs?: number;
}

export interface TrafficPlan {
  readonly seed: number;
  /** Size of the fleet at the start; it varies by a third. */
  readonly workers: number;
  /** The spec of the worker at one of the places of the fleet; places are taken, left and taken again. */
  readonly spec: (place: number) => WorkerSpec & { readonly id: string };
  readonly prompts: 'text' | 'tokens' | 'both' | 'none';
  /** Models that requests name. Default: the first worker's. */
  readonly models?: readonly string[];
  /** Share of requests with a routing key. Default 0.2. */
  readonly keyed?: number;
  /** Share of requests for which the caller narrows the fleet. Default 0.02. */
  readonly narrowed?: number;
  readonly kvEvents?: boolean;
  /** Router time a step takes at most, milliseconds. Default 12. */
  readonly stepMs?: number;
  /** How much more often than by default something happens beside the requests. Default 1. */
  readonly turmoil?: number;
}

const letters = 'abcdefghijklmnopqrstuvwxyz      ,.\n0123456789äé你好';
const families = 40;
const keys = 3000;
const tokensPerBlock = 16;

/** One worker as the generator remembers it. */
interface Engine {
  readonly spec: WorkerSpec & { readonly id: string };
  nextSequence: number;
  nextBlock: number;
}

/** What all prompts are cut from, so that they share beginnings. */
const corpus = makeCorpus(seededRandom('corpus'));

function makeCorpus(random: RandomSource): { readonly text: string; readonly tokens: Uint32Array } {
  const points = [...letters];
  const text = Array.from({ length: 60_000 }, () => points[Math.floor(random() * points.length)]).join('');
  return { text, tokens: Uint32Array.from({ length: 40_000 }, () => Math.floor(random() * 128_000)) };
}

/** Makes calls for ever. */
export class Traffic {
  readonly #plan: TrafficPlan;
  readonly #random: RandomSource;
  readonly #engines = new Map<number, Engine>();
  readonly #places: number;
  #requests = 0;
  /** Requests in flight, those not counted that the router refused or gave up. */
  #open = 0;

  constructor(plan: TrafficPlan) {
    this.#plan = plan;
    this.#random = seededRandom(plan.seed);
    this.#places = Math.ceil((plan.workers * 4) / 3);
  }

  /** The calls that set the fleet up. */
  *start(): Generator<Call> {
    for (let place = 0; place < this.#plan.workers; place++) yield this.#register(place);
  }

  /** The calls of one request and of what happens beside it; the selection is the last of them. */
  *step(): Generator<Call> {
    const { stepMs = 12, turmoil = 1, kvEvents = false } = this.#plan;
    yield { do: 'clock', byMs: this.#below(stepMs) };
    const chance = this.#random() / turmoil;
    if (chance < 0.0002) yield { do: 'clock', byMs: -this.#below(3_600_000) };
    else if (chance < 0.00025) yield { do: 'clock', byMs: this.#below(18_000_000) };
    else if (chance < 0.006) yield* this.#churn();
    else if (chance < 0.012) yield { do: 'reports', batch: this.#reports() };
    else if (chance < 0.014) yield { do: 'maintain' };
    else if (chance < 0.0143) yield { do: 'snapshot' };
    else if (chance < 0.0146) yield { do: 'rank', request: this.#request() };
    else if (chance < 0.016) yield { do: 'explain', request: this.#request() };
    else if (chance < 0.02) yield this.#elsewhere();
    else if (chance < 0.06 && kvEvents) yield* this.#kvEvents();
    // About two requests a worker are in flight.
    for (let ends = this.#below(this.#open > 2 * this.#plan.workers ? 4 : 2); ends > 0; ends--) yield this.#end();
    yield this.#select();
  }

  #select(): Call {
    const request = this.#request();
    const chance = this.#random();
    // A request in fifty is never sent, one in five is watched by a signal.
    const begin: Begin | undefined =
      chance < 0.02 ? undefined : chance < 0.12 ? { signal: 'own' } : chance < 0.22 ? { signal: 'shared' } : {};
    if (begin !== undefined) this.#open += 1;
    return {
      do: 'select',
      request: this.#chance(0.01) ? { ...request, exclude: [this.#someWorker(), this.#someWorker()] } : request,
      ...(this.#chance(this.#plan.narrowed ?? 0.02) && { candidates: this.#someWorkers(1 + this.#below(12)) }),
      ...(begin && { begin: this.#chance(0.5) ? { ...begin, scope: `request-${this.#requests}` } : begin }),
    };
  }

  #request(): RouteRequest {
    this.#requests += 1;
    const { prompts, keyed = 0.2, models } = this.#plan;
    const byTokens = prompts === 'tokens' || (prompts === 'both' && this.#chance(0.5));
    const model = models === undefined ? this.#plan.spec(0).models?.[0] : this.#one(models);
    return {
      model: this.#chance(0.03) ? undefined : this.#chance(0.01) ? 'nobody-serves-this' : model,
      ...(prompts !== 'none' && (byTokens ? { tokens: this.#promptTokens() } : { text: this.#promptText() })),
      ...(this.#chance(keyed) && this.#keyFields()),
      ...(this.#chance(0.03) && { namespace: { cacheSalt: `tenant-${this.#below(4)}` } }),
    };
  }

  #keyFields(): Pick<RouteRequest, 'headers' | 'rid' | 'routingKey'> {
    const chance = this.#random();
    if (chance < 0.4) return { headers: { 'x-smg-routing-key': this.#key() } };
    return chance < 0.8 ? { rid: `${this.#key()}_t${this.#below(20)}` } : { routingKey: this.#key() };
  }

  #key(): string {
    // Squared: some keys are busy, most are rare.
    return `session-${Math.floor(this.#random() ** 2 * keys)}`;
  }

  /** One of a few common beginnings, of varying depth, and an end of its own. */
  #promptText(): string {
    if (this.#chance(0.02)) return '';
    const family = Math.floor(this.#random() ** 2 * families) * 1000;
    const shared = corpus.text.slice(family, family + 50 + this.#below(600));
    const from = this.#below(50_000);
    return shared + corpus.text.slice(from, from + this.#below(300));
  }

  #promptTokens(): Uint32Array {
    if (this.#chance(0.02)) return new Uint32Array(0);
    const family = Math.floor(this.#random() ** 2 * families) * 800;
    const shared = 16 + this.#below(500);
    const own = this.#below(160);
    const tokens = new Uint32Array(shared + own);
    tokens.set(corpus.tokens.subarray(family, family + shared));
    const from = this.#below(30_000);
    tokens.set(corpus.tokens.subarray(from, from + own), shared);
    return tokens;
  }

  #elsewhere(): Call {
    this.#open += 1;
    return { do: 'elsewhere', worker: this.#someWorker(), routingKey: this.#key() };
  }

  #end(): Call {
    this.#open = Math.max(0, this.#open - 1);
    const which = this.#random();
    const chance = this.#random();
    if (chance < 0.08) return { do: 'end', which, how: 'abort' };
    if (chance < 0.1) return { do: 'end', which, how: 'dispose' };
    if (chance < 0.11) return { do: 'end', which, how: 'forget' };
    return { do: 'end', which, how: 'end', outcome: this.#outcome() };
  }

  #outcome(): LeaseOutcome {
    const chance = this.#random();
    if (chance < 0.85) return { status: 200 };
    if (chance < 0.9) return { status: 503 };
    if (chance < 0.94) return { status: 429 };
    return chance < 0.97 ? { error: 'connect' } : { aborted: true };
  }

  *#churn(): Generator<Call> {
    const chance = this.#random();
    const place = this.#below(this.#places);
    const engine = this.#engines.get(place);
    if (engine === undefined) {
      yield this.#register(place);
      return;
    }
    const { id } = engine.spec;
    if (chance < 0.25) {
      this.#engines.delete(place);
      yield { do: 'remove', worker: id };
      // Half of them flap: the same id is back at once.
      if (this.#chance(0.5)) yield this.#register(place);
    } else if (chance < 0.35) {
      this.#engines.delete(place);
      yield { do: 'status', worker: id, status: 'draining' };
    } else if (chance < 0.6) {
      const statuses = ['ready', 'ready', 'ready', 'not_ready', 'failed', 'pending'] as const;
      yield { do: 'status', worker: id, status: this.#one(statuses) };
    } else if (chance < 0.8) {
      const ok = this.#chance(0.6);
      for (let probe = 0; probe < 3; probe++) yield { do: 'probe', worker: id, ok };
    } else if (chance < 0.9) {
      yield { do: 'outcome', worker: id, outcome: { error: 'timeout' } };
    } else {
      yield { do: 'register', spec: { ...engine.spec, loadMonitorIntervalMs: 1000 + this.#below(9000) } };
    }
  }

  #register(place: number): Call {
    const spec = this.#plan.spec(place);
    this.#engines.set(place, { spec, nextSequence: 1, nextBlock: 1 });
    return { do: 'register', spec };
  }

  #reports(): AgedReport[] {
    const batch: AgedReport[] = [];
    for (const worker of this.#someWorkers(Math.min(64, this.#plan.workers))) {
      const chance = this.#random();
      if (chance < 0.05) batch.push({ worker, report: null });
      else if (chance < 0.06) batch.push({ worker, report: { waitingRequests: Number.NaN } });
      else if (chance < 0.3) batch.push({ worker, report: this.#load(), ageMs: this.#below(45_000) - 5000 });
      else if (chance < 0.32) batch.push({ worker, report: { ranks: [this.#load(), this.#load()] } });
      else if (chance < 0.9) batch.push({ worker, report: this.#load() });
    }
    return batch;
  }

  #load(): LoadReport & { readonly ranks?: undefined } {
    // Coarse numbers, so that exact ties are common.
    const waitingRequests = this.#below(4);
    return {
      waitingRequests,
      waitingTokens: waitingRequests * 512,
      kvCacheUsage: this.#below(10) / 10,
      ...(this.#chance(0.8) && { tokensPerSecond: 2000 }),
    };
  }

  *#kvEvents(): Generator<Call> {
    const place = this.#below(this.#places);
    const engine = this.#engines.get(place);
    if (engine === undefined) return;
    const worker = engine.spec.id;
    const chance = this.#random();
    if (chance < 0.005) engine.nextSequence = 0;
    else if (chance < 0.01) yield { do: 'kvReset', worker };
    else if (chance < 0.02) {
      // One batch is lost: the next is a gap, and the host starts over.
      engine.nextSequence += 1;
      yield { do: 'kvEvents', worker, batch: this.#kvBatch(engine) };
      yield { do: 'kvReset', worker };
    }
    yield { do: 'kvEvents', worker, batch: this.#kvBatch(engine) };
  }

  #kvBatch(engine: Engine): KvEventBatch {
    const events: KvEvent[] = [];
    const blocks = 1 + this.#below(32);
    const family = this.#below(families) * 800;
    const hashes = Array.from({ length: blocks }, () => engine.nextBlock++);
    const tokens = corpus.tokens.slice(family, family + blocks * tokensPerBlock);
    events.push({ type: 'stored', hashes, tokens, blockSize: tokensPerBlock });
    if (this.#chance(0.5) && engine.nextBlock > 400) {
      const first = 1 + this.#below(engine.nextBlock - 300);
      events.push({ type: 'removed', hashes: Array.from({ length: 100 }, (_, i) => first + i) });
    }
    if (this.#chance(0.01)) events.push({ type: 'cleared' });
    return { sequence: engine.nextSequence++, events };
  }

  #someWorker(): string {
    return this.#plan.spec(this.#below(this.#places)).id;
  }

  #someWorkers(count: number): string[] {
    return Array.from({ length: count }, () => this.#someWorker());
  }

  #one<T>(values: readonly T[]): T {
    return values[this.#below(values.length)] as T;
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end);
  }
}
