/**
 * The hash index of `cache_aware` (section E of spec 05): who was given a prompt that starts with the same tokens, asked
 * at a few fixed boundaries. A head is (namespace, boundary, the tokens up to it), kept as a 64-bit hash with at most
 * three holders (CA-73), each with its last touch.
 *
 * Expiry is decided on reading, so sweeping only frees memory (LB-5). Heads form a list in order of their last record:
 * what has expired is at its stale end, so a sweep looks at nothing else, and at the bound the stalest head makes room
 * (LB-31). Removing a worker is O(1) (`HeadOwners`, CA-75).
 * Probing is one pass over the tokens, recording O(boundaries). About 110 bytes a head.
 */

import { checkNumber, refuse } from '../errors.js';
import { ascending } from '../options/lists.js';
import { resolveOptions } from '../options/validate.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import { HeadOwners } from './head-owners.js';
import { HeadProbe } from './head-probe.js';
import { HeadTable, holdersPerHead, noHead } from './head-table.js';
import { indexIn } from './index-in.js';
import { checkNamespace } from './namespace.js';
import type { RestoreResult } from './prefix-tree.js';
import { checkTokenList, type TokenIds } from './token-ids.js';
import { checkUse, isUse } from './use.js';

/** Heads remembered at most, unless told otherwise; the stalest is forgotten first (LB-31). */
const defaultMaxHeads = 1_000_000;

/** What a hash index remembers, and for how long. */
export interface HashIndexOptions {
  /** Token positions at which heads are remembered: positive integers, strictly ascending (CA-70). */
  readonly boundaries: readonly number[];
  /** How long a holder stays live after its last record, milliseconds ≥ 0, Infinity included (CA-72). */
  readonly ttlMs: number;
  /** Bound on the number of heads, an integer ≥ 1 (LB-31). Default 1 000 000, about 110 MB when full; nothing is allocated ahead. */
  readonly maxHeads?: number | undefined;
}

/** A bounded part of the index as plain data (LB-33). */
export interface HashPiece {
  /** The workers that `heads` names by index. */
  readonly workers: readonly WorkerId[];
  /**
   * Head after head: two lanes of the key, the number of holders, and for each holder its worker, its age in
   * milliseconds and its use.
   */
  readonly heads: readonly number[];
}

const hashIndexTable = {
  boundaries: { kind: 'ascending', read: ascending as typeof ascending, default: [], unit: 'tokens', id: 'CF-31' },
  ttlMs: { kind: 'number', default: 180_000, min: 0, infinite: true, unit: 'ms', id: 'CF-32' },
  maxHeads: { kind: 'integer', default: defaultMaxHeads, min: 1, id: 'LB-31' },
} as const;

const nobody: readonly WorkerId[] = [];

/** Remembers who was given a prompt with the same first tokens, at fixed boundaries (CA-70 to CA-76). */
export class HashIndex {
  /** Token positions at which heads are remembered. May be replaced at any time: heads at other boundaries are no longer found and expire (LB-35). */
  boundaries: readonly number[];
  /** How long a holder stays live, milliseconds (CA-72). May be changed at any time. */
  ttlMs: number;
  readonly #maxHeads: number;
  readonly #table = new HeadTable();
  readonly #owners = new HeadOwners();
  #lastUse = 0;
  readonly #probe: HeadProbe = new HeadProbe();

  /** @throws RoutingConfigError for an option that cannot be used */
  constructor(options: HashIndexOptions) {
    const { boundaries, ttlMs, maxHeads } = resolveOptions(hashIndexTable, options);
    this.boundaries = boundaries;
    this.ttlMs = ttlMs;
    this.#maxHeads = maxHeads;
  }

  /** Heads in memory, those included that have expired since the last sweep. */
  get headCount(): number {
    return this.#table.size;
  }

  /** The last use given out; 0 before the first record. */
  get lastUse(): number {
    return this.#lastUse;
  }

  /**
   * Hashes the request up to each boundary it reaches; the longest part is read once.
   *
   * @returns the heads, valid until the next probe of this index
   * @throws TypeError on `tokens` when a plain list holds something else than ids, as far as it is read (LB-42)
   */
  probe(tokens: TokenIds, namespace?: string): HeadProbe {
    checkTokenList(tokens);
    checkNamespace(namespace);
    this.#probe.read(tokens, namespace, this.boundaries);
    return this.#probe;
  }

  /**
   * Live holders of a head of the last probe, most recent first (CA-72). Changes nothing.
   *
   * @param index position of the boundary, from 0 to `probe.count` − 1
   * @param now milliseconds, on the clock of all calls
   */
  holders(probe: HeadProbe, index: number, now: number): readonly WorkerId[] {
    const head = this.#table.find(probe.low(index), probe.high(index));
    return head === noHead ? nobody : this.#liveHolders(head, now);
  }

  /**
   * Remembers that the worker was given the request of the last probe, at every applicable boundary (CA-71).
   *
   * @returns the use the placement got; 0 when no boundary applies
   * @throws TypeError for a worker id that is no string, and a time that is no number (LB-42)
   */
  record(probe: HeadProbe, worker: WorkerId, now: number): number {
    if (probe.count === 0) return 0;
    checkNumber(now, 'now');
    const owner = this.#owners.numberOf(worker);
    const use = ++this.#lastUse;
    this.#place(probe, owner, use, now);
    return use;
  }

  /**
   * Merges a placement of another instance for the request of the last probe (LB-34). At each head the three holders of
   * the latest uses stay, so neither order nor repetition matters.
   *
   * @returns whether anything changed
   * @throws TypeError for a worker id, a use or a time that is none (LB-42)
   */
  merge(probe: HeadProbe, worker: WorkerId, use: number, now: number): boolean {
    checkUse(use);
    checkNumber(now, 'now');
    const owner = this.#owners.numberOf(worker);
    if (use > this.#lastUse) this.#lastUse = use;
    return this.#place(probe, owner, use, now);
  }

  /** Forgets a worker, at once and at every head; one added again under the same id starts with nothing (CA-75). */
  removeWorker(worker: WorkerId): void {
    this.#owners.remove(worker);
  }

  /** Frees heads whose holders have all expired, stalest first; returns whether work is left (CA-72, LB-5). */
  sweep(now: number, budget: MaintenanceBudget): boolean {
    const table = this.#table;
    for (let looked = 1; table.stalest !== noHead && this.#isExpired(table.stalest, now); looked++) {
      if (looked % 32 === 0 && budget.spent()) return true;
      table.delete(table.stalest);
    }
    return false;
  }

  /**
   * What is live, in pieces of at most `headsPerPiece` heads. Other calls may come between pieces: what is recorded
   * meanwhile may be included or not.
   *
   * @throws TypeError with the first piece, for a number of heads that is not above 0
   */
  *pieces(now: number, headsPerPiece = 1024): Generator<HashPiece, void, undefined> {
    checkNumber(now, 'now');
    if (typeof headsPerPiece !== 'number' || !(headsPerPiece > 0)) {
      throw refuse('headsPerPiece', 'a number above 0', headsPerPiece);
    }
    const table = this.#table;
    let head = 0;
    while (head < table.headEnd) {
      const workers = new Map<WorkerId, number>();
      const heads: number[] = [];
      for (let listed = 0; head < table.headEnd && listed < headsPerPiece; head++) {
        const places = this.#livePlaces(head, now);
        if (places.length === 0) continue;
        listed++;
        heads.push(table.low(head), table.high(head), places.length);
        for (const place of places) {
          const worker = indexIn(workers, this.#idOf(table.owner(head, place)));
          heads.push(worker, Math.max(0, now - table.touchMs(head, place)), table.use(head, place));
        }
      }
      if (heads.length > 0) yield { workers: [...workers.keys()], heads };
    }
  }

  /**
   * Merges a piece for the workers `accepts` knows. Others, expired and malformed ones are skipped and counted (LB-33).
   *
   * @throws TypeError when `accepts` is no function, or `now` no number
   */
  restore(piece: HashPiece, accepts: (worker: WorkerId) => boolean, now: number): RestoreResult {
    if (typeof accepts !== 'function') throw refuse('accepts', 'a function', accepts);
    checkNumber(now, 'now');
    let restored = 0;
    let skipped = 0;
    const { workers, heads } = (piece ?? {}) as HashPiece;
    if (!Array.isArray(workers) || !Array.isArray(heads)) return { restored, skipped: 1 };
    for (let at = 0; at < heads.length; ) {
      const [low, high, holders] = [heads[at], heads[at + 1], heads[at + 2]];
      // Without a sound header nothing tells where the next head starts.
      if (!isLane(low) || !isLane(high) || !isCount(holders, holdersPerHead)) return { restored, skipped: skipped + 1 };
      at += 3;
      for (let i = 0; i < holders; i++, at += 3) {
        const [index, age, use] = [heads[at], heads[at + 1], heads[at + 2]] as unknown[];
        const worker: unknown = typeof index === 'number' ? workers[index] : undefined;
        if (
          typeof worker !== 'string' ||
          typeof age !== 'number' ||
          !(age >= 0 && age <= this.ttlMs) ||
          !isUse(use) ||
          !accepts(worker)
        ) {
          skipped++;
        } else {
          restored++;
          if (use > this.#lastUse) this.#lastUse = use;
          this.#placeAt(low, high, this.#owners.numberOf(worker), use, now - age, now);
        }
      }
    }
    return { restored, skipped };
  }

  #place(probe: HeadProbe, owner: number, use: number, now: number): boolean {
    let changed = false;
    for (let i = 0; i < probe.count; i++) {
      if (this.#placeAt(probe.low(i), probe.high(i), owner, use, now, now)) changed = true;
    }
    return changed;
  }

  /** Puts a holder at a head, where a live holder of a later use is never the one that makes room. */
  #placeAt(low: number, high: number, owner: number, use: number, touchMs: number, now: number): boolean {
    const table = this.#table;
    let head = table.find(low, high);
    if (head === noHead) {
      if (table.size >= this.#maxHeads) table.delete(table.stalest);
      head = table.add(low, high);
    }
    const place = this.#placeFor(head, owner, use, now);
    if (place < 0) return false;
    table.setHolder(head, place, owner, touchMs, use);
    table.refresh(head);
    return true;
  }

  /** The owner's own place, else a free or dead one, else that of the stalest holder; -1 when all are later. */
  #placeFor(head: number, owner: number, use: number, now: number): number {
    const table = this.#table;
    let free = -1;
    let stalest = -1;
    for (let place = 0; place < holdersPerHead; place++) {
      if (table.owner(head, place) === owner) {
        return use > table.use(head, place) || !this.#isLive(head, place, now) ? place : -1;
      }
      if (!this.#isLive(head, place, now)) free = place;
      else if (stalest < 0 || this.#isBefore(head, place, stalest)) stalest = place;
    }
    if (free >= 0) return free;
    const earlier = table.use(head, stalest);
    const later = use > earlier || (use === earlier && this.#idOf(owner) > this.#idOf(table.owner(head, stalest)));
    return later ? stalest : -1;
  }

  /** Placements of two instances may carry the same use: then the ids decide, the same way everywhere (LB-34). */
  #isBefore(head: number, place: number, other: number): boolean {
    const table = this.#table;
    const difference = table.use(head, place) - table.use(head, other);
    if (difference !== 0) return difference < 0;
    return this.#idOf(table.owner(head, place)) < this.#idOf(table.owner(head, other));
  }

  #isLive(head: number, place: number, now: number): boolean {
    const owner = this.#table.owner(head, place);
    return (
      owner !== 0 && now - this.#table.touchMs(head, place) <= this.ttlMs && this.#owners.workerOf(owner) !== undefined
    );
  }

  #isExpired(head: number, now: number): boolean {
    for (let place = 0; place < holdersPerHead; place++) if (this.#isLive(head, place, now)) return false;
    return true;
  }

  #livePlaces(head: number, now: number): number[] {
    const places: number[] = [];
    for (let place = 0; place < holdersPerHead; place++) if (this.#isLive(head, place, now)) places.push(place);
    return places.sort((a, b) => (this.#isBefore(head, a, b) ? 1 : -1));
  }

  #liveHolders(head: number, now: number): readonly WorkerId[] {
    return this.#livePlaces(head, now).map((place) => this.#idOf(this.#table.owner(head, place)));
  }

  /** The worker of a live holder. */
  #idOf(owner: number): WorkerId {
    return this.#owners.workerOf(owner) as WorkerId;
  }
}

function isLane(value: unknown): value is number {
  return typeof value === 'number' && (value | 0) === value;
}

function isCount(value: unknown, most: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= most;
}
