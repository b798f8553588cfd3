/**
 * The pin map: which workers a routing key is pinned to (ST-33, MA-1). One map serves all pools of a router; its keys are
 * made by `composePinKey`.
 *
 * A hash map and a list in use order threaded through its entries: finding, using and evicting a pin are O(1), nothing
 * is preallocated, and the entry used longest ago is always known. A pin idle for `maxIdleMs` is absent when it is
 * looked up, swept or not (ST-60a); sweeping only gives the memory back and stops at the first pin that is still alive.
 * At most `maxPins` are kept, least recently used out first (MA-10).
 */
import { noEvents, type PolicyEvents } from '../policies/policy.js';
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';
import { keyOfPin } from './pin-key.js';
import { keyHash } from './routing-key.js';

/** The workers of one key. Without a primary there is no pin. */
export interface Pin {
  /** Tried first. */
  readonly primary: WorkerId;
  /** Tried when the first is not available; undefined while the key has had one worker only. */
  readonly secondary: WorkerId | undefined;
  /** Router time of the last decision it took part in, milliseconds. */
  readonly lastUsedAt: number;
}

/** A pin with its key, as snapshots hold it. */
export interface PinEntry extends Pin {
  /** As `composePinKey` makes it. */
  readonly pinKey: string;
}

/** How many pins are kept, and for how long. 0 in either duration keeps idle pins (ST-60). */
export interface PinLimits {
  /** Above it the pin used longest ago goes; ≥ 1. */
  readonly maxPins: number;
  /** Milliseconds without use after which a pin counts as none. */
  readonly maxIdleMs: number;
  /** Milliseconds between two sweeps that free idle pins. */
  readonly evictionIntervalMs: number;
}

/** Why a pin went: idle too long, too many pins, or its workers left (LB-30). */
type EvictionCause = 'idle' | 'capacity' | 'removed';

interface Entry {
  readonly pinKey: string;
  primary: WorkerId;
  secondary: WorkerId | undefined;
  lastUsedAt: number;
  older: Entry | undefined;
  newer: Entry | undefined;
}

/** Evictions one `put` may do when the limit was lowered; more than one, so that the map gets there. */
const evictionsPerPut = 8;
/** Entries between two looks at the budget. */
const entriesPerStep = 64;

/** The pins of all pools of a router, or of one policy used alone. */
export class PinMap {
  #limits: PinLimits;
  readonly #events: PolicyEvents;
  readonly #entries = new Map<string, Entry>();
  #oldest: Entry | undefined;
  #newest: Entry | undefined;
  /** The pin restored last: the next one of a snapshot usually goes right behind it. */
  #restored: Entry | undefined;
  #nextSweepAt: number;

  constructor(limits: PinLimits, events: PolicyEvents = noEvents) {
    this.#limits = limits;
    this.#events = events;
    this.#nextSweepAt = limits.evictionIntervalMs;
  }

  /** Pins held, those idle but not yet swept included (OB-33). */
  get size(): number {
    return this.#entries.size;
  }

  /** The pin of a key; undefined when there is none or it has been idle too long. Changes nothing. */
  find(pinKey: string, now: number): Pin | undefined {
    const entry = this.#entries.get(pinKey);
    return entry === undefined || this.#isIdle(entry, now) ? undefined : entry;
  }

  /** Pins a key, or keeps its pin, as used at `now`. */
  put(pinKey: string, primary: WorkerId, secondary: WorkerId | undefined, now: number): void {
    const known = this.#entries.get(pinKey);
    if (known === undefined) {
      const entry: Entry = { pinKey, primary, secondary, lastUsedAt: now, older: undefined, newer: undefined };
      this.#entries.set(pinKey, entry);
      this.#linkAfter(entry, this.#newest);
      this.#shrink(evictionsPerPut);
      return;
    }
    known.primary = primary;
    known.secondary = secondary;
    known.lastUsedAt = now;
    if (known !== this.#newest) {
      this.#unlink(known);
      this.#linkAfter(known, this.#newest);
    }
  }

  /** Forgets a pin whose workers are all gone. */
  delete(pinKey: string): void {
    const entry = this.#entries.get(pinKey);
    if (entry !== undefined) this.#evict(entry, 'removed');
  }

  /** Replaces the limits and keeps the pins; `maintain` and later pins bring the map down to a lower `maxPins`. */
  configure(limits: PinLimits, now: number): void {
    this.#limits = limits;
    this.#nextSweepAt = Math.min(this.#nextSweepAt, now + limits.evictionIntervalMs);
  }

  /** Sweeps idle pins when a sweep is due, in steps the budget allows; returns whether work is left. */
  maintain(now: number, budget: MaintenanceBudget): boolean {
    while (this.#entries.size > this.#limits.maxPins) {
      this.#shrink(entriesPerStep);
      if (budget.spent()) return true;
    }
    if (now < this.#nextSweepAt) return false;
    for (let swept = 1; this.#oldest !== undefined && this.#isIdle(this.#oldest, now); swept++) {
      this.#evict(this.#oldest, 'idle');
      if (swept % entriesPerStep === 0 && budget.spent()) return true;
    }
    this.#nextSweepAt = now + this.#limits.evictionIntervalMs;
    return false;
  }

  /**
   * All pins, the one used longest ago first. One that changes while the iteration rests may be missed; those that were
   * used in the same instant as it may come twice.
   */
  *entries(): Generator<PinEntry, void, undefined> {
    let entry = this.#oldest;
    while (entry !== undefined) {
      const { lastUsedAt } = entry;
      yield entry;
      const stayed = entry.lastUsedAt === lastUsedAt && this.#entries.get(entry.pinKey) === entry;
      entry = stayed ? entry.newer : this.#firstUsedSince(lastUsedAt);
    }
  }

  #firstUsedSince(instant: number): Entry | undefined {
    let entry = this.#oldest;
    while (entry !== undefined && entry.lastUsedAt < instant) entry = entry.newer;
    return entry;
  }

  /**
   * Adds a pin of a snapshot at its place in the order of use; a key that has a pin keeps it, and a full map takes only
   * what is newer than its oldest. Times are those of this map's router and may lie before its start. O(1) when pins
   * come in the order of `entries`.
   *
   * @returns whether it was taken
   */
  restore({ pinKey, primary, secondary, lastUsedAt }: PinEntry): boolean {
    if (this.#entries.has(pinKey)) return false;
    const isFull = this.#entries.size >= this.#limits.maxPins;
    if (isFull && this.#oldest !== undefined && lastUsedAt <= this.#oldest.lastUsedAt) return false;
    let older = this.#restored;
    if (older !== undefined && older.lastUsedAt > lastUsedAt) older = undefined;
    for (
      let next = older === undefined ? this.#oldest : older.newer;
      next !== undefined && next.lastUsedAt <= lastUsedAt;
      next = next.newer
    ) {
      older = next;
    }
    const entry: Entry = { pinKey, primary, secondary, lastUsedAt, older: undefined, newer: undefined };
    this.#entries.set(pinKey, entry);
    this.#linkAfter(entry, older);
    this.#restored = entry;
    this.#shrink(1);
    return true;
  }

  #isIdle(entry: Entry, now: number): boolean {
    const { maxIdleMs, evictionIntervalMs } = this.#limits;
    return maxIdleMs > 0 && evictionIntervalMs > 0 && now - entry.lastUsedAt >= maxIdleMs;
  }

  #shrink(atMost: number): void {
    for (let left = atMost; left > 0 && this.#entries.size > this.#limits.maxPins; left--) {
      this.#evict(this.#oldest as Entry, 'capacity');
    }
  }

  #evict(entry: Entry, cause: EvictionCause): void {
    this.#entries.delete(entry.pinKey);
    this.#unlink(entry);
    this.#events.pinEvicted?.({ keyHash: keyHash(keyOfPin(entry.pinKey)), cause, remaining: this.#entries.size });
  }

  /** Puts an entry behind `older` in the order of use; at the very front when that is undefined. */
  #linkAfter(entry: Entry, older: Entry | undefined): void {
    const newer = older === undefined ? this.#oldest : older.newer;
    entry.older = older;
    entry.newer = newer;
    if (older === undefined) this.#oldest = entry;
    else older.newer = entry;
    if (newer === undefined) this.#newest = entry;
    else newer.older = entry;
  }

  #unlink(entry: Entry): void {
    if (entry === this.#restored) this.#restored = entry.older;
    if (entry.older === undefined) this.#oldest = entry.newer;
    else entry.older.newer = entry.newer;
    if (entry.newer === undefined) this.#newest = entry.older;
    else entry.newer.older = entry.older;
  }
}
