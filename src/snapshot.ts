/**
 * Learned state as a value (LB-33) and placements from other instances (LB-34): trees, hash indexes and pins, in pieces
 * that are plain data. Live counts are not part of it.
 */
import type { RouterCore } from './core.js';
import { refuse, SnapshotError, show } from './errors.js';
import type { Placement } from './events.js';
import { innerPolicy } from './policies/create.js';
import { isLearning, type LearnedPiece } from './policies/learned-state.js';
import type { Leg } from './policies/policy.js';
import type { Pool } from './pool.js';
import { pinPieces, restorePins } from './sticky/pin-snapshot.js';

/** The version this package writes and reads. */
export const snapshotVersion = 1;

/** One bounded piece of a snapshot: of one pool's policy, or pins. Survives JSON and structured clone. */
export interface SnapshotPiece {
  readonly model: string;
  readonly leg: Leg;
  readonly piece: LearnedPiece;
}

/** Everything learned. A large one is better made and loaded piece by piece. */
export interface Snapshot {
  readonly version: number;
  readonly pieces: readonly SnapshotPiece[];
}

/** What `restore` did. */
export interface RestoreReport {
  /** Placements and pins taken over. */
  readonly restored: number;
  /** Those of workers that are not in the pool (pins: not registered), of models without one, and malformed ones. */
  readonly skipped: number;
}

/** The learned state in pieces. The host may pause between them; what changes meanwhile may or may not be included. */
export function* snapshotPieces(core: RouterCore): Generator<SnapshotPiece, void, undefined> {
  for (const pool of [...core.pools]) {
    const { model, leg } = pool;
    const policy = innerPolicy(pool.policy);
    if (!isLearning(policy)) continue;
    for (const piece of policy.snapshotPieces(core.time.now)) yield { model, leg, piece };
  }
  for (const data of pinPieces(core.pins, core.time.now)) {
    yield { model: '', leg: 'single', piece: { kind: 'pins', data } };
  }
}

/** @throws SnapshotError for another version, or for a value that is no snapshot; nothing was restored then */
export function restore(core: RouterCore, snapshot: Snapshot): RestoreReport {
  if (typeof snapshot !== 'object' || snapshot === null || !Array.isArray(snapshot.pieces)) {
    throw new SnapshotError(`expected a snapshot, got ${show(snapshot)}`);
  }
  if (snapshot.version !== snapshotVersion) {
    throw new SnapshotError(`snapshot version ${show(snapshot.version)} cannot be read, expected ${snapshotVersion}`);
  }
  let restored = 0;
  let skipped = 0;
  for (const piece of snapshot.pieces) {
    const report = restorePiece(core, piece);
    restored += report.restored;
    skipped += report.skipped;
  }
  return { restored, skipped };
}

/** Restores one piece; what it cannot use is counted, never thrown on. */
export function restorePiece(core: RouterCore, snapshotPiece: SnapshotPiece): RestoreReport {
  const { model, leg, piece } = (snapshotPiece ?? {}) as Partial<SnapshotPiece>;
  if (typeof piece !== 'object' || piece === null) return { restored: 0, skipped: 1 };
  if (piece.kind === 'pins') return restorePins(core.pins, piece.data, (id) => core.workers.has(id), core.time.now);
  const pool = typeof model === 'string' && leg !== undefined ? core.pools.find(model, leg) : undefined;
  const policy = pool && innerPolicy(pool.policy);
  if (pool === undefined || policy === undefined || !isLearning(policy)) return { restored: 0, skipped: 1 };
  // Of the pool, not of the router: nobody else's removal is told to this policy (LB-30).
  return policy.restorePiece(piece, (id) => pool.all.has(id), core.time.now);
}

/**
 * Merges one placement of another instance; in any order and any number of times with the same result, and without
 * emitting it again. False when the model, the worker or a learning policy is not here.
 *
 * @throws TypeError naming the malformed field
 */
export function applyPlacement(core: RouterCore, placement: Placement): boolean {
  if (typeof placement !== 'object' || placement === null) throw refuse('placement', 'an object', placement);
  const pool = poolOf(core, placement);
  const policy = pool && innerPolicy(pool.policy);
  if (policy === undefined || !isLearning(policy) || pool?.all.has(placement.worker) !== true) return false;
  return policy.applyPlacement?.(placement, core.time.now) ?? false;
}

function poolOf(core: RouterCore, { model, leg }: Placement): Pool | undefined {
  if (typeof model !== 'string') throw refuse('model', 'a string', model);
  return core.pools.find(model, leg);
}
