/**
 * `kvroute/engines`: what engines and clients send, read into kvroute's shapes. Pure functions; hostile bytes never throw.
 *
 * @packageDocumentation
 */
export { dataParallelWorkers, type RankAddress, splitRank } from './data-parallel.js';
export { type DescribedRequest, describeRequest, type RequestKind } from './describe-request.js';
export { type DecodedKvEvents, decodeKvEventBatch } from './kv-events.js';
export type { LoadReportResult, NoReportReason } from './load-result.js';
export {
  type LoadRouteMemo,
  type LoadRouteOutcome,
  loadRoutesToAsk,
  readLoadResponse,
  rememberLoadRoute,
  unknownLoadRoutes,
} from './load-route.js';
export { type LoadReportKind, type LoadReportOptions, parseLoadReport } from './parse-load-report.js';
export { classifyUpstream, type UpstreamEvidence } from './upstream-outcome.js';
