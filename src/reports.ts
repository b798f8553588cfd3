/**
 * Load reports as the host hands them over (LR-20 to LR-32). One call is one tick: verdicts, reports and the reset of
 * credit take effect together, and only then is anybody told (LR-22, EW-14).
 */
import type { RouterCore } from './core.js';
import { refuse } from './errors.js';
import { loseReport } from './fleet.js';
import { type LoadSummary, summarizeReport } from './load/load-summary.js';
import type { LoadReport } from './load/report.js';
import type { WorkerId } from './workers/candidate.js';
import { type OverloadVerdict, overloadVerdict } from './workers/overload.js';
import type { WorkerState } from './workers/worker.js';

/** What one tick did. */
export interface ReportTick {
  /** Reports applied. */
  readonly applied: number;
  /** Workers whose poll failed (`null`) or whose report was refused; they have no report now. */
  readonly lost: number;
  /** Of the lost ones, reports that were refused: no ranks, or a number that is not finite (LR-11a). */
  readonly invalid: number;
  /** Entries of unknown workers and of workers that are not ready (LR-27). */
  readonly ignored: number;
}

/** A worker's report, or null for a failed poll. */
export type ReportEntry = readonly [worker: WorkerId, report: LoadReport | null];

/** @throws TypeError when `batch` is no list of pairs; nothing was applied then */
export function applyReports(core: RouterCore, batch: Iterable<ReportEntry>): ReportTick {
  // Everything is read before anything is applied, and applied before anybody is told.
  const read = checkBatch(batch).map(([id, report]) => [id, report === null ? null : summarize(core, report)] as const);
  const tick = { applied: 0, lost: 0, invalid: 0, ignored: 0 };
  core.hub.afterwards(() => {
    for (const [id, summary] of read) {
      const worker = core.workers.get(id);
      if (worker === undefined || worker.status !== 'ready') {
        tick.ignored += 1;
      } else if (summary === null) {
        tick.lost += 1;
        loseReport(core, worker, 'failed_poll');
      } else if (typeof summary === 'string') {
        tick.lost += 1;
        tick.invalid += 1;
        warnOnceAbout(core, worker, 'invalidReport', 'sent a report that cannot be read');
        loseReport(core, worker, 'invalid');
      } else {
        tick.applied += 1;
        take(core, worker, summary);
      }
    }
  });
  return tick;
}

/** Judges a report that is kept by the options as they are now: its age limit, and the verdict on it (LB-35). */
export function reviewReport(core: RouterCore, worker: WorkerState): void {
  const { load } = worker;
  if (load === undefined) return;
  const before = worker.vetoAt(core.time.now);
  worker.load = { ...load, expiresAt: load.observedAt + reportMaxAgeMs(core) };
  worker.verdict = overloadVerdict(load, worker.settings.overload);
  core.availabilityChanged(worker);
  const after = worker.vetoAt(core.time.now);
  if (after?.signal !== before?.signal && core.hub.heard('overloadChanged')) {
    core.hub.emit('overloadChanged', { worker, overload: after });
  }
}

/** The age at which reports stop counting (CF-106). */
function reportMaxAgeMs(core: RouterCore): number {
  const { loadReportMaxAgeMs, loadMonitorIntervalMs } = core.plan.options;
  return loadReportMaxAgeMs ?? 3 * loadMonitorIntervalMs;
}

function checkBatch(batch: Iterable<ReportEntry>): readonly ReportEntry[] {
  const entries = typeof batch?.[Symbol.iterator] === 'function' ? [...batch] : undefined;
  if (entries === undefined) throw refuse('reports', 'a list of [worker, report] pairs', batch);
  for (const entry of entries as readonly unknown[]) {
    if (!Array.isArray(entry) || typeof entry[0] !== 'string') throw refuse('reports', '[worker, report] pairs', entry);
  }
  return entries;
}

function summarize(core: RouterCore, report: LoadReport): ReturnType<typeof summarizeReport> {
  const { now } = core.time;
  const reading = (report as { readonly observedAt?: unknown } | undefined)?.observedAt;
  if (reading !== undefined && (typeof reading !== 'number' || !Number.isFinite(reading))) return 'invalid';
  const observedAt = reading === undefined ? now : now - core.time.ageOfReading(reading);
  return summarizeReport(report, observedAt, observedAt + reportMaxAgeMs(core));
}

/** The report, the verdict on it and the reset of credit: one step (EW-14). */
function take(core: RouterCore, worker: WorkerState, summary: LoadSummary): void {
  const { now } = core.time;
  // One that aged out unnoticed is gone, and told so, before the next one counts (LR-30, OV-9).
  if (!worker.hasFreshLoad(now)) loseReport(core, worker, 'aged_out');
  const before = worker.verdict;
  worker.load = summary;
  worker.creditTokens = 0;
  worker.creditRequests = 0;
  // A sample that is too old on arrival vetoes nobody (LR-31).
  worker.verdict = worker.hasFreshLoad(now) ? overloadVerdict(summary, worker.settings.overload) : undefined;
  if (before !== undefined || worker.verdict !== undefined) core.availabilityChanged(worker);
  announce(core, worker, summary, before);
}

function announce(core: RouterCore, worker: WorkerState, load: LoadSummary, before: OverloadVerdict | undefined): void {
  const { verdict } = worker;
  if (core.hub.heard('reportApplied')) core.hub.emit('reportApplied', { worker, report: load.report });
  if (verdict?.signal !== before?.signal && core.hub.heard('overloadChanged')) {
    core.hub.emit('overloadChanged', { worker, overload: verdict });
  }
  if (load.kvCacheUsage === undefined) warnOnceAbout(core, worker, 'kvUsageMissing', 'reports no KV-cache usage');
  const cap = waitingCapOf(core, worker);
  if (cap !== undefined && load.maxRunningRequests !== undefined && cap >= load.maxRunningRequests) {
    const message = `has a running window of ${load.maxRunningRequests}, the waiting cap ${cap} is not below it`;
    warnOnceAbout(core, worker, 'waitingCapAboveWindow', message, 'maxWaitingRequests');
  }
}

/** The waiting cap of a policy that may choose the worker (EW-40); undefined when none has one. */
function waitingCapOf(core: RouterCore, worker: WorkerState): number | undefined {
  for (const pool of core.pools.poolsOf(worker)) {
    const cap = (pool.plan.options as { readonly maxWaitingRequests?: number }).maxWaitingRequests;
    if (cap) return cap;
  }
  return undefined;
}

/** Unlike `core.warnOnce` once a worker, for as long as that is registered. */
function warnOnceAbout(
  core: RouterCore,
  worker: WorkerState,
  code: 'invalidReport' | 'kvUsageMissing' | 'waitingCapAboveWindow',
  what: string,
  ...fields: string[]
): void {
  if (worker.warned.has(code)) return;
  worker.warned.add(code);
  core.warn({ code, message: `worker ${worker.id} ${what}`, fields, worker: worker.id });
}
