/**
 * Pins as plain data for snapshots (LB-33): pieces of at most 1 000 pins, the one used longest ago first, each with how long
 * it was idle instead of an instant, since another router counts time from its own start. Pieces hold routing keys:
 * treat them like the credentials these may be.
 */
import type { WorkerId } from '../workers/candidate.js';
import type { PinMap } from './pins.js';

/** Pin key, primary, secondary or null, idle time in milliseconds. */
export type PinRecord = readonly [pinKey: string, primary: WorkerId, secondary: WorkerId | null, idleMs: number];

const pinsPerPiece = 1000;

/**
 * All pins that are not idle too long, in pieces made one by one as they are asked for; the map may change in between.
 * Pins used after `now` are left out, so that the iteration ends however busy the router is.
 */
export function* pinPieces(pins: PinMap, now: number): Generator<readonly PinRecord[], void, undefined> {
  let piece: PinRecord[] = [];
  for (const { pinKey, primary, secondary, lastUsedAt } of pins.entries()) {
    if (lastUsedAt > now) break;
    if (pins.find(pinKey, now) === undefined) continue;
    piece.push([pinKey, primary, secondary ?? null, now - lastUsedAt]);
    if (piece.length === pinsPerPiece) {
      yield piece;
      piece = [];
    }
  }
  if (piece.length > 0) yield piece;
}

/**
 * Merges a piece. Never throws: malformed records and pins whose workers `accepts` does not know are skipped, and a key
 * that is pinned already keeps its pin; all of these are counted.
 */
export function restorePins(
  pins: PinMap,
  piece: unknown,
  accepts: (worker: WorkerId) => boolean,
  now: number,
): { readonly restored: number; readonly skipped: number } {
  if (!Array.isArray(piece)) return { restored: 0, skipped: 1 };
  let restored = 0;
  for (const record of piece) if (restoreRecord(pins, record, accepts, now)) restored += 1;
  return { restored, skipped: piece.length - restored };
}

function restoreRecord(pins: PinMap, record: unknown, accepts: (worker: WorkerId) => boolean, now: number): boolean {
  if (!Array.isArray(record)) return false;
  const [pinKey, primary, secondary, idleMs]: unknown[] = record;
  if (typeof pinKey !== 'string' || !/^[0-9]+:/.test(pinKey)) return false;
  if (typeof idleMs !== 'number' || !(idleMs >= 0) || idleMs === Infinity) return false;
  const [first, second] = [primary, secondary].filter((id) => typeof id === 'string' && accepts(id)) as WorkerId[];
  if (first === undefined) return false;
  return pins.restore({ pinKey, primary: first, secondary: second, lastUsedAt: now - idleMs });
}
