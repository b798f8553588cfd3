/**
 * Runs a row on a policy by itself, as a host without a router does (LB-10a, CC-14): candidates are plain literals, and
 * the caller, here this file, leaves out those that are not available and counts what is in flight.
 */
import {
  bucket,
  type Candidate,
  cacheAware,
  consistentHashing,
  type Hash64,
  leastLoad,
  manual,
  namespaceKey,
  passthrough,
  powerOfTwo,
  prefixHash,
  prefixHeads,
  random,
  roundRobin,
  type StandalonePolicy,
  stickySessions,
} from 'kvroute';
import { aloneOptions, overrideOptions } from './config.js';
import { type Fleet, type Outcome, RowClock, randomFor, reportOf, requestOf } from './fleet.js';
import { blocksOf } from './kv-blocks.js';
import {
  type DecisionRow,
  type RequestRow,
  type SetupStep,
  type StateRow,
  textOf,
  tokensOf,
  UnmappableRow,
  type WorkerRow,
} from './row.js';

const factories: Readonly<Record<string, (options: never) => StandalonePolicy>> = {
  cache_aware: cacheAware,
  least_load: leastLoad,
  power_of_two: powerOfTwo,
  consistent_hashing: consistentHashing,
  bucket,
  passthrough,
  prefix_hash: prefixHash,
  manual,
  round_robin: roundRobin,
  random,
};

/** A worker of the row between two selections. */
interface Member {
  id: string;
  inFlight: number;
  status: NonNullable<WorkerRow['status']>;
  breaker: NonNullable<WorkerRow['breaker']>;
  overloaded: boolean;
  report: Candidate['report'];
  /** In-flight requests per key that the row gives, whatever their model and leg. */
  keys: Record<string, number>;
  /** The same for `acquire`, by scope. */
  readonly acquired: Map<string, { readonly scope: string; readonly key: string; n: number }>;
}

export class PolicyFleet implements Fleet {
  readonly #clock = new RowClock();
  readonly #members: Member[];
  readonly #row: DecisionRow;
  readonly #hash: Hash64;
  readonly #own: StandalonePolicy;
  /** The policy, with the override around it where that is on. */
  readonly #policy: StandalonePolicy;
  readonly #levelOf = new Map<bigint, string>();
  /** Never behind the use counter of any tree, so that what is seeded after selections is newer than they are. */
  #uses = 0;

  constructor(row: DecisionRow, seed: number, hash: Hash64) {
    const create = Object.hasOwn(factories, row.policy) ? factories[row.policy] : undefined;
    if (create === undefined) throw new UnmappableRow(`policy ${row.policy} is unknown`);
    if (row.state.routed ?? row.state.ranges) {
      throw new UnmappableRow('this state is prepared on a router, not on a policy alone');
    }
    this.#row = row;
    this.#hash = hash;
    this.#members = row.workers.map(memberOf);
    const ring = row.state.ringOwner && { lookup: this.#lookUp };
    const hashing = row.policy === 'consistent_hashing' || row.policy === 'prefix_hash' ? { hash, ring } : {};
    const maxAge = row.config.loadReportMaxAgeMs;
    const runtime = { clock: this.#clock.read, random: randomFor(seed), loadReportMaxAgeMs: maxAge, ...hashing };
    this.#own = create({ ...aloneOptions(row.config, row.policy), ...runtime } as never);
    this.#fillKvIndex();
    const sticky = overrideOptions(row.config, row.policy);
    this.#policy = sticky === undefined ? this.#own : stickySessions(this.#own, sticky);
  }

  select(request: RequestRow): Outcome {
    this.#uses += 1;
    const selection = this.#policy.selectWorker(this.#requestOf(request), this.#candidates(request));
    const { branch, level, source, matchedRatio: ratio } = selection.record;
    return { worker: selection.ok ? selection.worker.id : undefined, branch, level, source, ratio };
  }

  scores(request: RequestRow): ReadonlyMap<string, number> {
    const { policy } = this.#policy.explain(this.#requestOf(request), this.#candidates(request));
    return new Map((policy.scores ?? policy.delegated?.scores)?.map(({ worker, score }) => [worker, score]));
  }

  apply(step: Exclude<SetupStep, { op: 'select' }>): void {
    switch (step.op) {
      case 'report':
        for (const [id, report] of Object.entries(step.reports)) {
          this.#member(id).report = report === null ? undefined : reportOf(report, this.#clock.read());
        }
        return;
      case 'set':
        this.#set(this.#member(step.worker), step.values);
        return;
      case 'acquire':
        this.#count(step, step.n ?? 1);
        return;
      case 'release':
        this.#count(step, -(step.n ?? 1));
        return;
      case 'advance':
        this.#clock.advance(step.secs * 1000);
        return;
      case 'seed':
        this.#seed(step);
        return;
      case 'remove':
        this.#members.splice(this.#members.indexOf(this.#member(step.worker)), 1);
        this.#policy.forget(step.worker);
        return;
      case 'adjustBuckets':
        throw new UnmappableRow('adjustBuckets needs a router');
    }
  }

  #candidates(request: RequestRow): Candidate[] {
    const scope = scopeOf(request);
    return this.#members.filter(isAvailable).map(({ id, inFlight, report, keys, acquired }) => {
      const keysInFlight = new Map(Object.entries(keys));
      for (const entry of acquired.values()) {
        if (entry.scope === scope) keysInFlight.set(entry.key, (keysInFlight.get(entry.key) ?? 0) + entry.n);
      }
      return { id, inFlight, report, keysInFlight, activeKeys: activeKeysOf(keys, acquired) };
    });
  }

  #requestOf(row: RequestRow) {
    const request = requestOf(row);
    if (this.#row.state.ringOwner !== undefined) {
      // The stubbed ring is asked for hashes; which level each stands for is public (CC-10).
      const { prefixTokenCount = 256, cacheBoundaries = [] } = aloneOptions(this.#row.config, this.#row.policy) as {
        prefixTokenCount?: number;
        cacheBoundaries?: number[];
      };
      const routingKeyHeaders = (this.#row.config.routingKeyHeaders as string[] | undefined) ?? ['x-smg-routing-key'];
      const options = { prefixTokenCount, cacheBoundaries, routingKeyHeaders };
      for (const head of prefixHeads(request, options, this.#hash)) {
        this.#levelOf.set(head.hash, String(head.level));
      }
    }
    return request;
  }

  readonly #lookUp = (hash: bigint, isEligible: (id: string) => boolean): string | undefined => {
    const owner = (this.#row.state as Required<StateRow>).ringOwner[this.#levelOf.get(hash) ?? ''];
    return owner !== undefined && isEligible(owner) ? owner : undefined;
  };

  #fillKvIndex(): void {
    const { kvIndex } = this.#row.state;
    if (kvIndex === undefined) return;
    const { kvEvents } = this.#own as ReturnType<typeof cacheAware>;
    if (kvEvents === undefined) throw new UnmappableRow(`${this.#row.policy} reads no KV events`);
    for (const [id, sequences] of Object.entries(kvIndex)) {
      const events = blocksOf(sequences, (this.#row.config.blockSize as number | undefined) ?? 16);
      const { result } = kvEvents.applyBatch(id, { sequence: 1, events });
      if (result !== 'applied') throw new UnmappableRow(`KV events of ${id}: ${result}`);
    }
  }

  #seed(step: Extract<SetupStep, { op: 'seed' }>): void {
    const { applyPlacement } = this.#own as ReturnType<typeof cacheAware>;
    if (applyPlacement === undefined) throw new UnmappableRow(`${this.#row.policy} learns no placements`);
    const units = tokensOf(step) ?? textOf(step) ?? '';
    const learned = typeof units === 'string' ? 'text' : 'tokens';
    const kind = this.#row.config.cacheIndex === 'hash' ? 'hash' : learned;
    // Into the tree that the row's request will be looked up in.
    const { model, leg } = this.#row.request;
    for (const worker of step.tenants) {
      applyPlacement({
        model,
        leg,
        kind,
        units,
        worker,
        use: ++this.#uses,
        namespace: namespaceKey(step.namespace),
      });
    }
  }

  #set(member: Member, values: Partial<WorkerRow>): void {
    const { report, ...rest } = values;
    if (report !== undefined) member.report = report === null ? undefined : reportOf(report, this.#clock.read());
    Object.assign(member, rest);
  }

  #count(step: Extract<SetupStep, { op: 'acquire' | 'release' }>, change: number): void {
    const member = this.#member(step.worker);
    member.inFlight += change;
    if (member.inFlight < 0) throw new UnmappableRow(`${step.worker} has fewer in flight than the row releases`);
    if (step.key === undefined) return;
    const scope = scopeOf(step);
    const given = member.keys[step.key] ?? 0;
    if (change < 0 && given > 0 && !member.acquired.has(`${scope} ${step.key}`)) {
      // What the row said was in flight ends.
      member.keys[step.key] = Math.max(0, given + change);
      return;
    }
    const entry = member.acquired.get(`${scope} ${step.key}`) ?? { scope, key: step.key, n: 0 };
    entry.n += change;
    if (entry.n > 0) member.acquired.set(`${scope} ${step.key}`, entry);
    else member.acquired.delete(`${scope} ${step.key}`);
  }

  #member(id: string): Member {
    const member = this.#members.find((known) => known.id === id);
    if (member === undefined) throw new UnmappableRow(`worker ${id} is unknown`);
    return member;
  }
}

function memberOf(row: WorkerRow): Member {
  return {
    id: row.id,
    inFlight: row.inFlight ?? 0,
    status: row.status ?? 'ready',
    breaker: row.breaker ?? 'closed',
    overloaded: row.overloaded ?? false,
    report: row.report ? reportOf(row.report, 0) : undefined,
    keys: { ...row.keys },
    acquired: new Map(),
  };
}

/** Distinct keys in flight (WK-41); one that the row gives counts once, whatever was acquired for it. */
function activeKeysOf(keys: Member['keys'], acquired: Member['acquired']): number {
  const given = Object.keys(keys).filter((key) => (keys[key] ?? 0) > 0);
  return given.length + [...acquired.values()].filter(({ key }) => !given.includes(key)).length;
}

function isAvailable(member: Member): boolean {
  return member.status === 'ready' && member.breaker !== 'open' && !member.overloaded;
}

function scopeOf({ model, leg }: Scoped): string {
  return `${model ?? 'unknown'}/${leg ?? 'single'}`;
}

interface Scoped {
  readonly model?: string | undefined;
  readonly leg?: string | undefined;
}
