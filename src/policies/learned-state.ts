/**
 * What a policy has learned, for snapshots and for sharing between instances (LB-33, LB-34). Optional: a policy that
 * learns nothing worth keeping does not implement it. Pieces are plain data (arrays, strings, finite numbers, null), so
 * they survive JSON and structured clone.
 */
import type { RestoreResult } from '../prefix/prefix-tree.js';
import type { WorkerId } from '../workers/candidate.js';
import type { LearnedPlacement, Policy } from './policy.js';

/** A bounded part of what a policy learned. `data` has the form its kind says; only the policy reads it. */
export interface LearnedPiece {
  /** What it is a part of: a tree, the hash index, or the pins. */
  readonly kind: 'text' | 'tokens' | 'hash' | 'pins';
  /** Plain data. */
  readonly data: unknown;
}

/** The learned state of one policy instance. */
export interface LearnedState {
  /** Everything learned, in pieces made one by one as they are asked for. */
  snapshotPieces(now: number): Iterable<LearnedPiece>;
  /**
   * Merges a piece of a snapshot. Never throws: entries of workers that `accepts` does not know, malformed ones and
   * kinds the policy does not keep are skipped and counted (LB-33).
   */
  restorePiece(piece: LearnedPiece, accepts: (worker: WorkerId) => boolean, now: number): RestoreResult;
  /**
   * Merges a placement of another instance: in any order, any number of times, with the same result, and without
   * reporting it as a placement of its own (LB-34). The worker must be registered; the caller checks that.
   *
   * @returns whether anything changed
   * @throws TypeError naming the malformed field, before anything changed (LB-42)
   */
  applyPlacement?(placement: LearnedPlacement, now: number): boolean;
}

/** Whether a policy keeps learned state. */
export function isLearning(policy: Policy): policy is Policy & LearnedState {
  return 'snapshotPieces' in policy && 'restorePiece' in policy;
}
