/** Typed details of one decision (LB-13): numbers with units, ids and flags; never prompt text, never a routing key. */
import type { ScoreTerms } from '../load/expected-wait.js';
import type { GateTerms } from '../load/spill-gate.js';
import type { WorkerId } from '../workers/candidate.js';

export type { GateTerms, ScoreTerms };

/** What a policy tells about one of its decisions. Absent fields do not apply to the policy or the branch taken. */
export interface PolicyExplanation {
  /** The terms of the candidates that expected wait compared, in the order of the comparison (EW-1). */
  readonly scores?: readonly ScoreTerms[] | undefined;
  /** What the spill gate of `cache_aware` or the load check of `prefix_hash` saw (CA-10, PH-8). */
  readonly gate?: readonly GateTerms[] | undefined;
  /** Prefix match: units are code points, tokens or blocks. */
  readonly match?:
    | {
        readonly index: 'string_tree' | 'token_tree' | 'hash' | 'kv_events';
        readonly matchedUnits: number;
        readonly requestUnits: number;
        readonly ratio: number;
        readonly holders: readonly WorkerId[];
      }
    | undefined;
  /** Every candidate that could have won this decision, given other random draws. */
  readonly tieSet?: readonly WorkerId[] | undefined;
  /** The best candidate outside the tie set, when scores decided. */
  readonly runnerUp?: WorkerId | undefined;
  /** Its score minus the winner's: seconds, or requests in a dark fleet. */
  readonly margin?: number | undefined;
  /** Pins of the key, first and second (ST-33). */
  readonly pinned?: readonly WorkerId[] | undefined;
  /** In-flight requests of this key on the pinned worker (WK-42). */
  readonly keyInFlight?: number | undefined;
  /** Key or head looked up on the ring: its level and owner. */
  readonly ring?: readonly { readonly level: number; readonly owner: WorkerId | undefined }[] | undefined;
  /** Request size and the range that owns it (BU-6). */
  readonly bucket?:
    | {
        readonly size: number;
        readonly owner: WorkerId | undefined;
        readonly imbalanced: boolean;
        readonly routed: readonly { readonly worker: WorkerId; readonly units: number }[];
      }
    | undefined;
  /** What the delegated policy decided, when a combinator asked one. */
  readonly delegated?: PolicyExplanation | undefined;
}
