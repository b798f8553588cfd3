/**
 * The pin map: which workers a routing key is pinned to (ST-33, MA-1). One map serves all pools of a router; its keys are
 * made by `composePinKey`.
 *
 * A hash map and a list in use order threaded through its entries: finding, using and evicting a pin are O(1), nothing
 * is preallocated, and the entry used longest ago is always known. A pin idle for `maxIdleMs` is absent when it is
 * looked up, swept or not (ST-60a); sweeping only gives the memory back and stops at the first pin that is still alive.
 * At most `maxPins` are kept, least recently used out first (MA-10).
 */
import type { MaintenanceBudget } from '../runtime/maintenance-budget.js';
import type { WorkerId } from '../workers/candidate.js';

/** The workers of one key. Without a primary there is no pin. */
export interface Pin {
  /** Tried first. */
  readonly primary: WorkerId;
  readonly secondary: WorkerId | undefined;
  /** Router time of the last decision it took part in, milliseconds. */
  readonly lastUsedAt: number;
}

/** A pin with its key, as snapshots hold it. */
export interface PinEntry extends Pin {
  readonly pinKey: string;
}

/** How many pins are kept, and for how long. Milliseconds; 0 in either duration keeps idle pins (ST-60). */
export interface PinLimits {
  readonly maxPins: number;
  readonly maxIdleMs: number;
  readonly evictionIntervalMs: number;
}

/** Told about every pin that goes by idleness or because the map is full. */
export type PinEvicted = (pin: PinEntry, cause: 'idle' | 'capacity') => void;

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

export class PinMap {
  #limits: PinLimits;
  readonly #evicted: PinEvicted | undefined;
  readonly #entries = new Map<string, Entry>();
  #oldest: Entry | undefined;
  #newest: Entry | undefined;
  #nextSweepAt: number;

  constructor(limits: PinLimits, evicted?: PinEvicted) {
    this.#limits = limits;
    this.#evicted = evicted;
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
      this.#append({ pinKey, primary, secondary, lastUsedAt: now, older: undefined, newer: undefined });
      this.#shrink(evictionsPerPut);
      return;
    }
    known.primary = primary;
    known.secondary = secondary;
    known.lastUsedAt = now;
    if (known !== this.#newest) {
      this.#unlink(known);
      this.#link(known);
    }
  }

  delete(pinKey: string): void {
    const entry = this.#entries.get(pinKey);
    if (entry !== undefined) this.#drop(entry);
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

  /** All pins, the one used longest ago first. The map must not change meanwhile. */
  *entries(): IterableIterator<PinEntry> {
    for (let entry = this.#oldest; entry !== undefined; entry = entry.newer) yield entry;
  }

  /**
   * Adds pins of a snapshot in the order of their last use; a key that has a pin already keeps it. Times are those of
   * this map's router and may lie before its start.
   */
  restore(pins: Iterable<PinEntry>): void {
    const all = [...this.entries()];
    for (const pin of pins) if (!this.#entries.has(pin.pinKey)) all.push(pin);
    all.sort((a, b) => a.lastUsedAt - b.lastUsedAt);
    this.#entries.clear();
    this.#oldest = undefined;
    this.#newest = undefined;
    for (const { pinKey, primary, secondary, lastUsedAt } of all.slice(-this.#limits.maxPins)) {
      this.#append({ pinKey, primary, secondary, lastUsedAt, older: undefined, newer: undefined });
    }
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

  #evict(entry: Entry, cause: 'idle' | 'capacity'): void {
    this.#drop(entry);
    this.#evicted?.(entry, cause);
  }

  #drop(entry: Entry): void {
    this.#entries.delete(entry.pinKey);
    this.#unlink(entry);
  }

  #append(entry: Entry): void {
    this.#entries.set(entry.pinKey, entry);
    this.#link(entry);
  }

  #link(entry: Entry): void {
    entry.older = this.#newest;
    entry.newer = undefined;
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  #unlink(entry: Entry): void {
    if (entry.older === undefined) this.#oldest = entry.newer;
    else entry.older.newer = entry.newer;
    if (entry.newer === undefined) this.#newest = entry.older;
    else entry.newer.older = entry.older;
  }
}
