/**
 * What must hold for one router at any moment of the soak: counts equal the open leases (LB-21, B27), bounds of all
 * that outside data can fill (LB-31, LB-32, B08, B80). Trees are measured twice: by their own size after every call, and by
 * a recount of a snapshot now and then.
 */
import type { Lease, RouteRequest, Router, SnapshotPiece, Worker } from 'kvroute';
import type { RouterCore } from '../../src/core.js';
import { innerPolicy } from '../../src/policies/create.js';
import type { TreePiece } from '../../src/prefix/prefix-tree.js';
import { privateField } from '../support/private-field.js';

/** A prefix tree, as far as the audit is concerned. */
interface Sized {
  readonly size: number;
}

export interface Bounds {
  readonly maxTreeSize: number;
  readonly maxPins: number;
}

const maxRotations = 4096;
const maxHolders = 3;
const maxWarnings = 256;
const maxScopes = 4096;
const maxFindings = 20;

export class Audit {
  /** What did not hold, at most the first twenty. */
  readonly findings: string[] = [];
  largestTree = 0;
  mostPins = 0;
  mostRotations = 0;
  mostHeads = 0;
  recounts = 0;
  readonly #name: string;
  readonly #router: Router;
  readonly #core: RouterCore;
  readonly #bounds: Bounds;
  #trees: Sized[] = [];
  #largestRequest = 0;

  constructor(name: string, router: Router, bounds: Bounds) {
    this.#name = name;
    this.#router = router;
    this.#core = privateField(router, '#core') as RouterCore;
    this.#bounds = bounds;
  }

  /** After each selection: O(1). */
  afterSelection(request: RouteRequest, worker: Worker | undefined): void {
    this.#largestRequest = Math.max(request.tokens?.length ?? 0, request.text?.length ?? 0);
    for (const { size } of this.#trees) this.#checkTree(size);
    const { pinCount } = this.#router;
    this.mostPins = Math.max(this.mostPins, pinCount);
    this.check(pinCount <= this.#bounds.maxPins, () => `${pinCount} pins`);
    if (worker === undefined) return;
    this.check(worker.inFlight >= 0 && worker.creditTokens >= 0 && worker.creditRequests >= 1, () => live(worker));
  }

  /** Everything that costs more. Takes the open leases of the router's host. */
  look(openLeases: readonly Lease[]): void {
    this.#checkCounts(openLeases);
    this.#checkMaps();
    this.#trees = this.#findTrees();
    for (const { size } of this.#trees) this.#checkTree(size);
  }

  /** A snapshot, recounted: how many units the trees hold, and how many holders a head has. */
  recount(pieces: readonly SnapshotPiece[]): void {
    this.recounts += 1;
    const paths = new Map<string, (string | readonly number[])[]>();
    for (const { model, leg, piece } of pieces) {
      if (piece.kind === 'hash') this.#checkHeads((piece.data as { readonly heads: readonly number[] }).heads);
      if (piece.kind === 'text' || piece.kind === 'tokens') {
        collectPaths(piece.data as TreePiece<string | number[]>, (holder, units) => {
          const key = `${model}/${leg}/${piece.kind}/${holder}`;
          const known = paths.get(key);
          if (known === undefined) paths.set(key, [units]);
          else known.push(units);
        });
      }
    }
    const sizes = new Map<string, number>();
    for (const [key, held] of paths) {
      const tree = key.split('/').slice(0, 3).join('/');
      sizes.set(tree, (sizes.get(tree) ?? 0) + distinctUnits(held));
    }
    for (const size of sizes.values()) this.#checkTree(size);
  }

  /** After everything was ended. */
  end(): void {
    const { open } = this.#router.leases();
    this.check(open === 0, () => `${open} leases are open at the end`);
    for (const worker of this.#router.workers()) {
      this.check(worker.inFlight === 0 && worker.activeKeys === 0, () => `at the end ${live(worker)}`);
    }
    for (const { pool, candidates } of this.#sets()) {
      this.check(candidates.inFlight === 0, () => `pool ${pool}: sum in flight ${candidates.inFlight} at the end`);
    }
  }

  check(holds: boolean, finding: () => string): void {
    if (!holds && this.findings.length < maxFindings) this.findings.push(`${this.#name}: ${finding()}`);
  }

  #checkTree(size: number): void {
    if (size > this.largestTree) this.largestTree = size;
    const most = this.#bounds.maxTreeSize + this.#largestRequest;
    this.check(size >= 0 && size <= most, () => `a tree of ${size} units, the budget and one request are ${most}`);
  }

  #checkCounts(openLeases: readonly Lease[]): void {
    const counted = new Map<Worker, number>();
    for (const { worker } of openLeases) counted.set(worker, (counted.get(worker) ?? 0) + 1);
    let open = 0;
    for (const worker of this.#router.workers()) {
      const leases = counted.get(worker) ?? 0;
      open += leases;
      this.check(worker.inFlight === leases, () => `${live(worker)}, open leases ${leases}`);
      this.check(worker.activeKeys >= 0 && worker.activeKeys <= worker.inFlight, () => live(worker));
      this.check(worker.creditTokens >= 0 && worker.creditRequests >= 0, () => live(worker));
    }
    const view = this.#router.leases();
    this.check(view.open === open, () => `${view.open} leases are listed, ${open} are open`);
    for (const { pool, candidates } of this.#sets()) {
      const sum = candidates.workers.reduce((total, worker) => total + worker.inFlight, 0);
      this.check(candidates.inFlight === sum, () => `pool ${pool}: sum in flight ${candidates.inFlight}, not ${sum}`);
    }
  }

  #checkMaps(): void {
    for (const pool of this.#core.pools) {
      const policy = innerPolicy(pool.policy);
      if (policy.name !== 'round_robin') continue;
      const { size } = privateField(policy, '#rotations') as Map<string, number>;
      this.mostRotations = Math.max(this.mostRotations, size);
      this.check(size <= maxRotations, () => `${size} rotations`);
    }
    const { length } = this.#router.warnings;
    this.check(length <= maxWarnings, () => `${length} warnings`);
    const scopes = privateField(this.#core, '#scopes') as object;
    const byId = privateField(scopes, '#byId') as { readonly size: number } | undefined;
    this.check((byId?.size ?? 0) <= maxScopes, () => `${byId?.size} request scopes`);
  }

  #checkHeads(heads: readonly number[]): void {
    let found = 0;
    for (let at = 0; at < heads.length; found++) {
      const holders = heads[at + 2] as number;
      this.check(holders >= 1 && holders <= maxHolders, () => `a head with ${holders} holders`);
      at += 3 + 3 * holders;
    }
    this.mostHeads = Math.max(this.mostHeads, found);
  }

  *#sets(): Generator<{ readonly pool: string; readonly candidates: ReturnType<typeof currentSet> }> {
    for (const { model, all, unnamed } of this.#core.pools) {
      yield { pool: model, candidates: currentSet(all, this.#core.time.now) };
      if (unnamed !== undefined) yield { pool: model, candidates: currentSet(unnamed, this.#core.time.now) };
    }
  }

  #findTrees(): Sized[] {
    const found: Sized[] = [];
    for (const pool of this.#core.pools) {
      const policy = innerPolicy(pool.policy);
      if (policy.name !== 'cache_aware') continue;
      const trees = privateField(policy, '#trees') as object;
      for (const name of ['#text', '#tokens'] as const) {
        const tree = privateField(trees, name) as Sized | undefined;
        if (tree !== undefined) found.push(tree);
      }
    }
    return found;
  }
}

type AvailableList = Parameters<RouterCore['availabilityChanged']>[0]['memberships'][number]['list'];

function currentSet(list: AvailableList, now: number): ReturnType<AvailableList['current']> {
  return list.current(now);
}

function live({ id, inFlight, activeKeys, creditTokens, creditRequests }: Worker): string {
  return `worker ${id}: in flight ${inFlight}, keys ${activeKeys}, credit ${creditTokens} tokens of ${creditRequests} requests`;
}

/** The whole path of each placement of a piece. */
function collectPaths(
  { workers, namespaces, parents, labels, holds }: TreePiece<string | number[]>,
  found: (holder: string, units: string | readonly number[]) => void,
): void {
  for (let i = 0; i < holds.length; i += 3) {
    const parts: (string | number[])[] = [];
    let node = holds[i] as number;
    for (; node >= 0; node = parents[node] as number) parts.push(labels[node] as string | number[]);
    parts.reverse();
    const units = typeof parts[0] === 'string' ? parts.join('') : (parts as number[][]).flat();
    found(`${namespaces[-1 - node]}/${workers[holds[i + 1] as number]}`, units);
  }
}

/** Units of all paths of one holder, common beginnings counted once. */
function distinctUnits(paths: readonly (string | readonly number[])[]): number {
  const sequences = paths.map((path) =>
    typeof path === 'string' ? [...path].map((c) => c.codePointAt(0) ?? 0) : path,
  );
  sequences.sort(compareSequences);
  let units = 0;
  let before: readonly number[] = [];
  for (const sequence of sequences) {
    units += sequence.length - commonLength(before, sequence);
    before = sequence;
  }
  return units;
}

function compareSequences(a: readonly number[], b: readonly number[]): number {
  const common = commonLength(a, b);
  return (a[common] ?? -1) - (b[common] ?? -1);
}

function commonLength(a: readonly number[], b: readonly number[]): number {
  let common = 0;
  while (common < a.length && common < b.length && a[common] === b[common]) common += 1;
  return common;
}
