/**
 * What a breaker makes of the end of a lease: a success, a failure, or nothing (CB-20 to CB-25), and who was already
 * charged for the request (CB-30 to CB-32). Both are O(1).
 */
import type { LeaseOutcome } from '../lease-outcome.js';
import { workerResilienceTable } from '../options/table.js';
import { resolveOptions } from '../options/validate.js';
import type { WorkerResilience } from './breaker.js';
import type { WorkerId } from './candidate.js';

/** What is recorded for one attempt. */
export type OutcomeClass = 'success' | 'failure' | 'nothing';

/** Which statuses mean what; every other one is a success (CB-21). */
export interface OutcomeCodes {
  /** The worker is full, not broken: nothing is recorded. Asked first. */
  readonly capacity: ReadonlySet<number>;
  /** Failures. */
  readonly retryable: ReadonlySet<number>;
}

/**
 * A worker's status lists: a list that is set replaces the default completely (CB-22).
 *
 * @throws RoutingConfigError for an invalid block; the field starts with `worker.resilience.`
 */
export function resolveOutcomeCodes(resilience: WorkerResilience | undefined): OutcomeCodes {
  const own = resolveOptions(workerResilienceTable, resilience, 'worker.resilience.');
  return { capacity: new Set(own.capacityStatusCodes), retryable: new Set(own.retryableStatusCodes) };
}

/** Every member of `LeaseOutcome` at once; hosts in plain JavaScript may send any of them, or none. */
interface LooseOutcome {
  readonly status?: number;
  readonly error?: 'connect' | 'timeout' | 'body';
  readonly aborted?: boolean;
}

/**
 * Classifies an end. No outcome and an abort record nothing (CB-23); a body that broke off is a failure whatever its
 * status was (CB-25); no answer counts as the 5xx the host makes of it (CB-20). A status outside 100–599 says nothing,
 * and neither does an outcome that fails when it is read.
 */
export function classifyOutcome(outcome: LeaseOutcome | undefined, codes: OutcomeCodes): OutcomeClass {
  const { status, error, aborted } = readOutcome(outcome);
  if (aborted) return 'nothing';
  if (error === 'body') return 'failure';
  if (error === 'connect') return classifyStatus(502, codes);
  if (error === 'timeout') return classifyStatus(504, codes);
  return classifyStatus(status, codes);
}

function readOutcome(outcome: LeaseOutcome | undefined): LooseOutcome {
  try {
    const { status, error, aborted }: LooseOutcome = outcome ?? {};
    return { status, error, aborted } as LooseOutcome;
  } catch {
    return {};
  }
}

function classifyStatus(status: number | undefined, codes: OutcomeCodes): OutcomeClass {
  if (typeof status !== 'number' || !(status >= 100 && status <= 599) || codes.capacity.has(status)) return 'nothing';
  return codes.retryable.has(status) ? 'failure' : 'success';
}

/**
 * One request with all its attempts: breakers count failed requests, so a worker is charged at most once for it, and a
 * success in between does not reopen the account (CB-30 to CB-32).
 */
export class RequestScope {
  // Most requests fail nowhere: the set is made with the first failure.
  #charged: Set<WorkerId> | undefined;

  /** Whether this outcome of `worker` is to be recorded. A failure counts the worker as charged. */
  admits(worker: WorkerId, outcome: OutcomeClass): outcome is 'success' | 'failure' {
    if (outcome !== 'failure') return outcome === 'success';
    this.#charged ??= new Set();
    if (this.#charged.has(worker)) return false;
    this.#charged.add(worker);
    return true;
  }
}
