/** The exported classes and the policies: how each is made, what can be called on it, and what of it can be observed. */

import * as core from 'kvroute';
import { fc } from '../support/property.js';
import { type Call, hostileRecord, mostly } from './hostile.js';
import { candidates, id, kvEvent, request, text, tokens } from './inputs.js';

/** Something that is made, called, and looked at. */
export interface Subject {
  /** The entry point and the export. */
  readonly name: string;
  /** Called with what `options` gives, made; refuses as any call may. */
  readonly make: (options: never) => object;
  readonly options: fc.Arbitrary<unknown>;
  readonly calls: fc.Arbitrary<Call>;
  /** All that can be observed. */
  readonly state: (object: never) => unknown;
}

const now = mostly(fc.constantFrom(0, 5, 50), 30);
const use = mostly(fc.constantFrom(1, 2, 9, 2 ** 52));
const namespace = mostly(fc.constantFrom(undefined, 'n', '__proto__'), 9);
const accepts = mostly(
  fc.constant(() => true),
  9,
);
const piece = hostileRecord({
  workers: fc.array(mostly(id), { maxLength: 2 }),
  namespaces: fc.array(mostly(fc.constantFrom(null, 'n')), { maxLength: 2 }),
  parents: fc.array(mostly(fc.constantFrom(-1, 0)), { maxLength: 3 }),
  labels: fc.array(mostly(fc.oneof(text, fc.array(fc.nat(9), { maxLength: 8 }))), { maxLength: 3 }),
  holds: fc.array(mostly(fc.nat(2)), { maxLength: 9 }),
});
const hashPiece = hostileRecord({
  workers: fc.array(mostly(id), { maxLength: 2 }),
  heads: fc.array(mostly(fc.nat(2)), { maxLength: 12 }),
});
const limits = hostileRecord({
  ttlMs: fc.constantFrom(0, 100),
  maxEntries: fc.constantFrom(0, 3),
  blockSize: fc.constant(4),
});

function treeCalls(units: fc.Arbitrary<unknown>): fc.Arbitrary<Call> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.constant('insert'), mostly(units, 9), mostly(id), namespace) },
    { weight: 3, arbitrary: fc.tuple(fc.constant('match'), mostly(units, 9), namespace) },
    { weight: 2, arbitrary: fc.tuple(fc.constant('insertPlacement'), mostly(units, 9), mostly(id), use, namespace) },
    fc.tuple(fc.constant('restore'), piece, accepts),
    fc.tuple(fc.constantFrom('addTenant', 'removeTenant', 'sizeOf', 'hasTenant'), mostly(id)),
    fc.tuple(fc.constantFrom('evictTo', 'pieces'), mostly(fc.nat(60))),
    fc.tuple(fc.constant('maintain'), fc.constant({ $: 'budget' })),
    fc.tuple(fc.constant('placements')),
  );
}

const stateOfTree = (tree: core.StringTree | core.TokenTree): unknown => [
  [tree.size, tree.tenantCount, tree.nodeCount, tree.lastUse, tree.maxTreeSize],
  tree.tenants().map((worker) => [worker, tree.sizeOf(worker)]),
  [...tree.pieces()],
  [...tree.placements()],
  tree.printTree(),
];

/** A hash index that is asked by tokens: a probe is the index's own. */
class ProbedIndex {
  readonly #index: core.HashIndex;

  constructor(options: core.HashIndexOptions) {
    this.#index = new core.HashIndex(options);
  }

  record(ids: core.TokenIds, worker: string, at: number, partition?: string): number {
    return this.#index.record(this.#index.probe(ids, partition), worker, at);
  }

  merge(ids: core.TokenIds, worker: string, by: number, at: number, partition?: string): boolean {
    return this.#index.merge(this.#index.probe(ids, partition), worker, by, at);
  }

  holders(ids: core.TokenIds, partition?: string): unknown {
    const probe = this.#index.probe(ids, partition);
    return Array.from({ length: probe.count }, (_, i) => [probe.boundary(i), this.#index.holders(probe, i, 5)]);
  }

  restore(given: core.HashPiece, known: (worker: string) => boolean, at: number): core.RestoreResult {
    return this.#index.restore(given, known, at);
  }

  pieces(at: number, heads?: number): Iterable<core.HashPiece> {
    return this.#index.pieces(at, heads);
  }

  removeWorker(worker: string): void {
    this.#index.removeWorker(worker);
  }

  get state(): unknown {
    return [this.#index.headCount, this.#index.lastUse, [...this.#index.pieces(5)]];
  }
}

const hash = await core.loadHash();
const runtime = { seed: 7, clock: () => 0, hash };
const policies = {
  cacheAware: () => core.cacheAware({ ...runtime, maxTreeSize: 200, blockSize: 4 }),
  leastLoad: () => core.leastLoad(runtime),
  powerOfTwo: () => core.powerOfTwo(runtime),
  consistentHashing: () => core.consistentHashing(runtime),
  bucket: () => core.bucket(runtime),
  passthrough: () => core.passthrough(runtime),
  prefixHash: () => core.prefixHash({ ...runtime, cacheBoundaries: [2, 8] }),
  manual: () => core.manual({ ...runtime, maxPins: 2 }),
  roundRobin: () => core.roundRobin(runtime),
  random: () => core.random(runtime),
  stickySessions: () => core.stickySessions(core.leastLoad(runtime)),
};
const policyCalls = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('selectWorker'), request, mostly(candidates, 30)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('explain'), request, mostly(candidates, 30)) },
  fc.tuple(fc.constant('forget'), mostly(id)),
  fc.tuple(fc.constant('maintain')),
);
const known: core.RouteRequest[] = [
  {},
  { text: 'a prompt' },
  { tokens: [1, 2, 3, 4, 5, 6, 7, 8] },
  { routingKey: 'k1' },
];
const fleet: core.Candidate[] = ['w1', 'w2', 'w3', '__proto__'].map((worker) => ({ id: worker, inFlight: 0 }));
const told = (policy: core.StandalonePolicy): unknown => known.map((given) => policy.explain(given, fleet));

const event = fc.constantFrom('success', 'failure');

export const subjects: readonly Subject[] = [
  {
    name: 'kvroute: StringTree',
    make: (options) => new core.StringTree(options),
    options: hostileRecord({ maxTreeSize: fc.constantFrom(20, 60, 1000) }),
    calls: treeCalls(text),
    state: stateOfTree,
  },
  {
    name: 'kvroute: TokenTree',
    make: (options) => new core.TokenTree(options),
    options: hostileRecord({ maxTreeSize: fc.constantFrom(20, 60), blockSize: fc.constantFrom(1, 4), salt: fc.nat() }),
    calls: treeCalls(tokens),
    state: stateOfTree,
  },
  {
    name: 'kvroute: HashIndex',
    make: (options) => new ProbedIndex(options),
    options: hostileRecord({
      boundaries: fc.constantFrom([2], [2, 4, 9]),
      ttlMs: fc.constant(20),
      maxHeads: fc.nat(4),
    }),
    calls: fc.oneof(
      { weight: 4, arbitrary: fc.tuple(fc.constant('record'), mostly(tokens), mostly(id), now, namespace) },
      { weight: 2, arbitrary: fc.tuple(fc.constant('merge'), mostly(tokens), mostly(id), use, now, namespace) },
      fc.tuple(fc.constant('holders'), mostly(tokens), namespace),
      fc.tuple(fc.constant('restore'), hashPiece, accepts, now),
      fc.tuple(fc.constant('pieces'), now, mostly(fc.nat(3))),
      fc.tuple(fc.constant('removeWorker'), mostly(id)),
    ),
    state: (index: ProbedIndex) => index.state,
  },
  {
    name: 'kvroute: KvEventFeed',
    make: (options) => new core.KvEventFeed(options),
    options: hostileRecord({ warning: fc.constant(() => {}) }),
    calls: fc.oneof(
      {
        weight: 3,
        arbitrary: fc.tuple(fc.constant('addWorker'), mostly(id), mostly(fc.constantFrom(['m'], ['m', 'n']), 9)),
      },
      {
        weight: 6,
        arbitrary: fc.tuple(
          fc.constant('applyBatch'),
          mostly(id),
          hostileRecord({ sequence: fc.nat(3), events: fc.array(mostly(kvEvent), { maxLength: 3 }) }),
          now,
        ),
      },
      fc.tuple(fc.constantFrom('removeWorker', 'reset', 'lastSequence'), mostly(id)),
      fc.tuple(fc.constant('configure'), mostly(fc.constant('m')), limits),
      fc.tuple(fc.constant('forgetModel'), mostly(fc.constant('m'))),
    ),
    state: (feed: core.KvEventFeed) => [
      feed.counts,
      ['w1', 'w2', 'w3', '__proto__'].map((worker) => [
        feed.lastSequence(worker),
        feed.indexFor('m')?.blocksOf(worker),
      ]),
      [feed.indexFor('m')?.memberships, feed.indexFor('m')?.blockSize, feed.indexFor('n')?.memberships],
    ],
  },
  {
    name: 'kvroute: KvEventIndex',
    make: (options) => new core.KvEventIndex(options, 0),
    options: limits,
    calls: fc.oneof(
      fc.tuple(fc.constant('overlaps'), mostly(tokens, 9), fc.constant(0)),
      fc.tuple(fc.constantFrom('cleared', 'restarted', 'removeWorker', 'blocksOf'), mostly(id)),
      fc.tuple(fc.constant('maintain'), fc.constantFrom(0, 40_000), fc.constant({ $: 'budget' })),
    ),
    state: (index: core.KvEventIndex) => [index.memberships, index.blockCount, index.workerCount, index.blockSize],
  },
  {
    name: 'kvroute: Breaker',
    make: (config) => new core.Breaker(config),
    options: hostileRecord({
      failureThreshold: fc.constant(1),
      successThreshold: fc.constant(1),
      timeoutDurationMs: fc.constant(1),
    }),
    calls: fc.oneof(
      fc.tuple(fc.constant('record'), mostly(event), now, mostly(fc.constantFrom(undefined, 0))),
      fc.tuple(fc.constant('takeTransitions'), now),
      fc.tuple(fc.constant('configure'), hostileRecord({ failureThreshold: fc.nat(3) }), now),
    ),
    state: (breaker: core.Breaker) => [
      [breaker.state(50), breaker.allows(50), breaker.epoch(50)],
      [breaker.consecutiveFailures(50), breaker.consecutiveSuccesses(50)],
    ],
  },
  {
    name: 'kvroute: AdmissionWindow',
    make: () => new core.AdmissionWindow(),
    options: fc.constant(undefined),
    calls: fc.tuple(
      fc.constant('tryAdmit'),
      mostly(fc.constantFrom(undefined, 3), 4),
      mostly(fc.constantFrom(1, 2), 4),
    ),
    state: (window: core.AdmissionWindow) => window.inUse,
  },
  {
    name: 'kvroute: RequestScope',
    make: () => new core.RequestScope(),
    options: fc.constant(undefined),
    calls: fc.tuple(fc.constant('admits'), mostly(id), mostly(event)),
    state: () => undefined,
  },
  {
    name: 'kvroute: CandidateSet',
    make: (workers) => new core.CandidateSet(workers),
    // Made once per change of the fleet, of workers that were checked already: it checks none of them again.
    options: fc.constant(fleet),
    calls: fc.tuple(fc.constantFrom('indexOf', 'get', 'has'), mostly(id)),
    state: (set: core.CandidateSet) => [set.size, set.inFlight, fleet.map((worker) => set.indexOf(worker.id))],
  },
  ...Object.entries(policies).map(([name, make]) => ({
    name: `kvroute: ${name}`,
    make,
    options: fc.constant(undefined),
    calls: policyCalls,
    state: told,
  })),
];
