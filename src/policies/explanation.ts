/** Typed details of one decision (LB-13): numbers with units, ids and flags; never prompt text, never a routing key. */
import type { WorkerId } from '../workers/candidate.js';

/** The terms of one candidate's expected-wait score (EW-1). Seconds and tokens. */
export interface ScoreTerms {
  readonly worker: WorkerId;
  /** The score, in seconds; the raw in-flight count in a dark fleet (EW-26). Lower is better. */
  readonly score: number;
  /** What kind of score: from the worker's own report, the baseline for a missing one (EW-23), or a dark fleet's count. */
  readonly basis: 'report' | 'baseline' | 'in_flight';
  readonly queuedTokens?: number | undefined;
  readonly creditTokens?: number | undefined;
  readonly tokensPerSecond?: number | undefined;
  /** Clamped to [0, 0.999] (EW-8). */
  readonly kvCacheUsage?: number | undefined;
  /** Queue term, seconds. */
  readonly queueSeconds?: number | undefined;
  /** KV-pressure term, seconds. */
  readonly kvSeconds?: number | undefined;
  /** Age of the report, milliseconds. */
  readonly reportAgeMs?: number | undefined;
  readonly inFlight: number;
  /** Dropped by the waiting-queue cap (EW-40). */
  readonly capped?: boolean | undefined;
}

/** The comparison of one candidate with the fleet by a gate: hot when both margins are positive (CA-10, PH-8). */
export interface GateTerms {
  readonly worker: WorkerId;
  readonly inFlight: number;
  /** In-flight mean of the candidates. */
  readonly mean: number;
  /** inFlight minus the relative limit, requests. */
  readonly relativeMargin: number;
  /** inFlight minus the absolute limit, requests. */
  readonly absoluteMargin: number;
  readonly hot: boolean;
}

/** What a policy tells about one of its decisions. Absent fields do not apply to the policy or the branch taken. */
export interface PolicyExplanation {
  readonly scores?: readonly ScoreTerms[] | undefined;
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
