/**
 * Pruning of a KV-event index (CA-96): what was neither stored nor read within a time is forgotten, and above a ceiling
 * the blocks touched longest ago are, down to nine tenths of it. Time counts in whole seconds.
 *
 * A pruning is a walk in bounded pieces (LB-5). Blocks are first detached, which makes them unreadable; then the names
 * that lead to detached blocks are dropped everywhere, and the last one frees the record.
 */
import { checkNumber, checkObject } from '../errors.js';
import type { BlockTable } from './block-table.js';
import { blocksPerPiece, type KvHoldings, type Walk } from './kv-holdings.js';
import type { IndexedWorker } from './kv-worker.js';
import { Map64 } from './map64.js';

/** Bounds of a KV-event index. Absent or 0 = off. */
export interface KvPruneLimits {
  /** Blocks neither stored nor read for longer than this are forgotten, milliseconds (CF-33). */
  readonly ttlMs?: number | undefined;
  /** Blocks above which the longest untouched are forgotten (CF-34). */
  readonly maxEntries?: number | undefined;
}

/** A copy of the limits. @throws TypeError when they are no object, or no numbers */
export function checkedLimits(limits: KvPruneLimits): KvPruneLimits {
  const { ttlMs = 0, maxEntries = 0 } = checkObject(limits, 'limits');
  checkNumber(ttlMs, 'limits.ttlMs');
  checkNumber(maxEntries, 'limits.maxEntries');
  return { ttlMs, maxEntries };
}

/** Blocks touched within the last two seconds are never pruned for the ceiling; in whole seconds that is an age of 2. */
const protectedSeconds = 2;

/** Two histograms of this many bins find the cut-off age: first in coarse steps, then in seconds within one of them. */
const bins = 65_536;
const coarseShift = 16;

/** The second before which a touch is too old; 0 when nothing is, so that detached blocks (-1) always are. */
export function expirySecond(limits: KvPruneLimits, now: number): number {
  const { ttlMs } = limits;
  return ttlMs ? Math.max(0, Math.floor((now - ttlMs) / 1000)) : 0;
}

/** One pruning; ends at once when nothing is to be done. `workers` is asked when the walk has come to the names. */
export function* pruneBlocks(
  holdings: KvHoldings,
  workers: () => Iterable<IndexedWorker>,
  limits: KvPruneLimits,
  now: number,
): Walk {
  const { ttlMs, maxEntries } = limits;
  const second = Math.floor(now / 1000);
  if (ttlMs) yield* detachOlder(holdings, second, second - expirySecond(limits, now), 0);
  if (maxEntries && holdings.blocks.size > maxEntries) {
    const surplus = holdings.blocks.size - (maxEntries - Math.floor(maxEntries / 10));
    const { age, fromThatAge } = yield* cutoffAge(holdings.blocks, second, surplus);
    yield* detachOlder(holdings, second, age, fromThatAge);
  }
  if (holdings.detachedCount > 0) yield* dropNames(holdings, workers());
}

/** Detaches blocks of a higher age than given, and as many of exactly that age. */
function* detachOlder(holdings: KvHoldings, second: number, age: number, fromThatAge: number): Walk {
  const { blocks } = holdings;
  let left = fromThatAge;
  for (let block = 0; block < blocks.idEnd; block++) {
    if (block % blocksPerPiece === blocksPerPiece - 1) yield;
    if (blocks.isDetached(block)) continue;
    const blockAge = second - blocks.touchSecond(block);
    if (blockAge > age) holdings.detach(block);
    else if (left > 0 && blockAge === age) {
      left--;
      holdings.detach(block);
    }
  }
}

interface Cutoff {
  readonly age: number;
  readonly fromThatAge: number;
}

/** The age above which there are fewer than `wanted` blocks, and how many of exactly that age complete the number. */
function* cutoffAge(blocks: BlockTable, second: number, wanted: number): Generator<undefined, Cutoff, undefined> {
  const coarse = new Uint32Array(bins);
  yield* countAges(blocks, second, (age) => addOne(coarse, age >> coarseShift));
  const { bin, left } = cut(coarse, wanted);
  const fine = new Uint32Array(bins);
  yield* countAges(blocks, second, (age) => {
    if (age >> coarseShift === bin) addOne(fine, age & (bins - 1));
  });
  const fineCut = cut(fine, left);
  // Not even all that is not protected is enough.
  if (fineCut.left > (fine[fineCut.bin] as number)) return { age: protectedSeconds, fromThatAge: 0 };
  return { age: bin * bins + fineCut.bin, fromThatAge: fineCut.left };
}

function* countAges(blocks: BlockTable, second: number, count: (age: number) => void): Walk {
  for (let block = 0; block < blocks.idEnd; block++) {
    if (block % blocksPerPiece === blocksPerPiece - 1) yield;
    const age = second - blocks.touchSecond(block);
    if (age > protectedSeconds && !blocks.isDetached(block)) count(age);
  }
}

function addOne(counts: Uint32Array, bin: number): void {
  counts[bin] = (counts[bin] as number) + 1;
}

/** The bin, from the last one down, in which the sum of the counts reaches `wanted`, and what it must contribute. */
function cut(counts: Uint32Array, wanted: number): { readonly bin: number; readonly left: number } {
  let left = wanted;
  let bin = counts.length - 1;
  for (; bin > 0 && (counts[bin] as number) < left; bin--) left -= counts[bin] as number;
  return { bin, left };
}

/** Drops the names that lead to detached blocks. */
function* dropNames(holdings: KvHoldings, workers: Iterable<IndexedWorker>): Walk {
  const { blocks } = holdings;
  for (const worker of workers) {
    const isKept = (block: number): boolean => {
      if (!blocks.isDetached(block)) return true;
      holdings.loseName(worker, block);
      return false;
    };
    for (let cursor = 0; cursor < Map64.end; ) {
      cursor = worker.names.sweep(cursor, isKept);
      yield;
    }
    let seen = 0;
    for (const [block, surplus] of worker.surplus) {
      if (++seen % blocksPerPiece === 0) yield;
      if (surplus >= 0 || !blocks.isDetached(block)) continue;
      worker.surplus.delete(block);
      holdings.loseName(worker, block);
    }
  }
}
