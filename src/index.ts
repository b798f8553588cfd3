/**
 * `kvroute` decides which LLM inference worker serves each request. It does no I/O: the host supplies transport, polling
 * and metrics. Start with `createRouter`; the ten policies also work by themselves, on plain literals.
 *
 * @packageDocumentation
 */

// The router
export { createRouter, Router } from './router.js';
export type { Acquired } from './acquire.js';
export type { LeaseView, PoolView, WorkerFilter } from './inspect.js';
export type { CustomPolicy, PolicyConfig, RouterOptions } from './router-options.js';
export type { CandidateFilter } from './decide.js';
export type { ReconcileResult } from './fleet.js';
export type { ReportEntry, ReportTick } from './reports.js';
export type { LegOptions, LegsSelection, SelectedLegs } from './legs.js';
export type { AttemptContext, RouteAttempt, RouteOptions, RouteResult } from './route.js';
export type { RestoreReport, Snapshot, SnapshotPiece } from './snapshot.js';
export type { PollGroup, PollOptions } from './poll-groups.js';
export type { KvEventPort } from './kv-event-port.js';

// Requests and their results
export type { RequestView, RouteRequest } from './request.js';
export type { HeadersLike, RequestHeaders } from './headers.js';
export { namespaceKey } from './prefix/namespace.js';
export type { CacheNamespace } from './prefix/namespace.js';
export { parseRoutingTokens } from './prefix/routing-tokens.js';
export type { TokenIds } from './prefix/token-ids.js';
export type { BeginOptions, ElsewhereOptions } from './begin.js';
export type { Selected, SelectedBeginOptions, Selection } from './select.js';
export type {
  DecisionRecord,
  Exclusion,
  Explanation,
  NotSelected,
  SelectionCode,
  SelectionReason,
  WorkerStanding,
} from './selection.js';
export type { GateTerms, PolicyExplanation, ScoreTerms } from './policies/explanation.js';
export { responseHeaders } from './response-headers.js';
export type { Answered } from './response-headers.js';

// Leases and outcomes
export type { Lease, LeaseTerms } from './lease.js';
export type { LeaseOutcome } from './lease-outcome.js';
export type { AbortSignalLike } from './abort-signal.js';
export { classifyOutcome, RequestScope, resolveOutcomeCodes } from './workers/outcome-class.js';
export type { OutcomeClass, OutcomeCodes } from './workers/outcome-class.js';

// Workers and their signals
export type { Worker } from './workers/worker.js';
export type { ConnectionMode, RuntimeType, WorkerKind, WorkerSpec } from './workers/worker-spec.js';
export type { WorkerStatus } from './workers/health.js';
export type {
  DisaggregationLoad,
  LoadReport,
  RankedLoadReport,
  RankLoad,
  ReportStamp,
  SingleLoadReport,
} from './load/report.js';
export { Breaker } from './workers/breaker.js';
export type { BreakerConfig, BreakerState, BreakerTransition } from './workers/breaker.js';
export { emptySelection, overloadVerdict, resolveOverloadThresholds } from './workers/overload.js';
export type { EmptyReason, OverloadThresholds, OverloadVerdict, RouterOverloadOptions } from './workers/overload.js';

// Events
export type {
  LeaseEnd,
  Placement,
  ReportLoss,
  RouterEventName,
  RouterEvents,
  RouterListener,
  Warning,
  WarningCode,
} from './events.js';

// The ten policies, each usable by itself
export { cacheAware } from './policies/cache-aware.js';
export type { ScopedPlacement, StandaloneCacheAware } from './policies/cache-aware.js';
export { leastLoad } from './policies/least-load.js';
export { powerOfTwo } from './policies/power-of-two.js';
export { consistentHashing } from './policies/consistent-hashing.js';
export type { ConsistentHashingAloneOptions } from './policies/consistent-hashing.js';
export { bucket } from './policies/bucket.js';
export { bucketRecompute } from './policies/bucket-boundaries.js';
export type { BucketAdjustment, BucketRange } from './policies/bucket-boundaries.js';
export { passthrough } from './policies/passthrough.js';
export { prefixHash, prefixHeads } from './policies/prefix-hash.js';
export type { PrefixHashAloneOptions } from './policies/prefix-hash.js';
export type { PrefixHead } from './policies/prefix-heads.js';
export { manual } from './policies/manual.js';
export type { ManualAloneOptions } from './policies/manual.js';
export { roundRobin } from './policies/round-robin.js';
export { random } from './policies/random.js';
export { stickySessions } from './policies/sticky-sessions.js';
export type { StickyOptions } from './policies/sticky-sessions.js';
export { standalone } from './policies/standalone.js';
export type { MemberRing, StandalonePolicy, StandaloneSelected, StandaloneSelection } from './policies/standalone.js';
export type { RuntimeOptions } from './policies/runtime-options.js';
export type { HashingRuntimeOptions } from './policies/hashing-runtime.js';
export type {
  BucketOptions,
  CacheAwareOptions,
  ConsistentHashingOptions,
  LeastLoadOptions,
  ManualOptions,
  NoOptions,
  PolicyOptionsByName,
  PowerOfTwoOptions,
  PrefixHashOptions,
} from './options/policy-options.js';
export { isValidRoutingKey, ridKey } from './sticky/routing-key.js';

// Writing a policy of your own
export { Decision } from './policies/policy.js';
export type {
  DecisionContext,
  LearnedPlacement,
  Leg,
  MaintenanceBudget,
  NoneReason,
  Policy,
  PolicyEvents,
  PolicyName,
  PolicyNeeds,
  PolicyWarning,
  RingLookup,
} from './policies/policy.js';
export type { Candidate, WorkerId, WorkerSignals } from './workers/candidate.js';
export { CandidateSet } from './workers/candidate-set.js';
export type { LoadSummary } from './load/load-summary.js';
export type { LearnedPiece } from './policies/learned-state.js';

// Prefix indexes
export type { PrefixTree, RestoreResult, TreeMatch, TreePiece, TreePlacement } from './prefix/prefix-tree.js';
export { StringTree } from './prefix/string-tree.js';
export type { StringTreeOptions } from './prefix/string-tree.js';
export { TokenTree } from './prefix/token-tree.js';
export type { TokenTreeOptions } from './prefix/token-tree.js';
export { HashIndex } from './prefix/hash-index.js';
export type { HashIndexOptions, HashPiece } from './prefix/hash-index.js';
export type { HeadProbe } from './prefix/head-probe.js';
export type {
  BlockHash,
  KvBlock,
  KvCleared,
  KvEvent,
  KvEventBatch,
  KvRemoved,
  KvStoredBlocks,
  KvStoredRun,
} from './prefix/kv-event.js';
export { KvEventFeed } from './prefix/kv-event-feed.js';
export type {
  KvBatchResult,
  KvEventCounts,
  KvEventFeedOptions,
  KvEventWarning,
  KvIndexSettings,
} from './prefix/kv-event-feed.js';
export { KvEventIndex } from './prefix/kv-event-index.js';
export type { KvMatch } from './prefix/kv-overlaps.js';
export type { KvPruneLimits } from './prefix/kv-prune.js';
export { nextSequence } from './prefix/kv-event-stream.js';
export type { SequenceNumber, SequenceResult, SequenceStep } from './prefix/kv-event-stream.js';

// Helpers for hosts
export { AdmissionWindow, admissionLimit } from './workers/admission.js';
export type { Admission, AdmissionRefusal } from './workers/admission.js';
export { eligibleEndpoints } from './workers/endpoints.js';
export type { Endpoint, EndpointOptions, GroupMember, ServingGroup, ServingRole } from './workers/endpoints.js';
export { neverQualified, observeServing, qualify } from './workers/serving-state.js';
export type {
  Qualification,
  QualificationLeg,
  QualificationLegs,
  ServingObservation,
  ServingView,
} from './workers/serving-state.js';
export { fromFlags } from './migrate/from-flags.js';
export type { FlagValue, HostSettings, TranslatedFlags } from './migrate/from-flags.js';

// What is injected
export type { Clock } from './runtime/clock.js';
export { seededRandom } from './runtime/random.js';
export type { RandomSource } from './runtime/random.js';
export { loadHash } from './runtime/hash.js';
export type { Hash64 } from './runtime/hash.js';

// Errors
export { KvRouteError, RoutingConfigError, SnapshotError } from './errors.js';
