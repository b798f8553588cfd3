/**
 * Writes down what a router decides, one line an event: for snapshots, and to compare two runs byte for byte (LB-3). The
 * lines hold no times and no object identities, and numbers in full precision; what a line leaves out is undefined, or
 * the model `unknown` or the leg `single`.
 *
 *     select w1 cache_aware tree_match matchedRatio=0.8 threshold=0.3 inFlight=2
 *     begin w1 inFlight=3
 *     end w1 inFlight=2 by=ended status=200
 *     refuse overloaded worker_overload_protection_shed stage=selection retryAfterMs=10000 random
 */
import { refuse } from '../errors.js';
import type { LeaseOutcome } from '../lease-outcome.js';
import type { Router } from '../router.js';
import type { DecisionRecord } from '../selection.js';

/** What a router decided while it was recorded. */
export interface DecisionRecorder {
  /** Oldest first; grows until `stop`. */
  readonly lines: readonly string[];
  /** All lines, each ended by a line feed: what a snapshot holds. */
  readonly text: string;
  /** Forgets what was recorded. */
  clear(): void;
  /** Unsubscribes. */
  stop(): void;
}

/** Records every selection and every lease of a router from now on. @throws TypeError when it is no router */
export function recordDecisions(router: Pick<Router, 'on'>): DecisionRecorder {
  if (typeof router?.on !== 'function') throw refuse('router.on', 'a function', router?.on);
  const lines: string[] = [];
  const subscriptions = [
    router.on('selected', ({ worker, record }) => lines.push(`select ${worker.id} ${textOf(record)}`)),
    router.on('notSelected', ({ reason, code, stage, retryAfterMs, excluded, record }) => {
      const details = fields({ stage, retryAfterMs, excluded: excluded || undefined });
      lines.push(`refuse ${reason} ${code}${details} ${textOf(record)}`);
    }),
    router.on('leaseBegan', ({ worker, inFlight }) => lines.push(`begin ${worker.id} inFlight=${inFlight}`)),
    router.on('leaseEnded', ({ worker, inFlight, end, outcome }) => {
      lines.push(`end ${worker.id}${fields({ inFlight, by: end, ...outcome })}`);
    }),
  ];
  return {
    lines,
    get text() {
      return lines.map((line) => `${line}\n`).join('');
    },
    clear: () => {
      lines.length = 0;
    },
    stop: () => {
      for (const unsubscribe of subscriptions) unsubscribe();
    },
  };
}

function textOf({ policy, branch, model, leg, ...rest }: DecisionRecord): string {
  const named = branch === undefined ? policy : `${policy} ${branch}`;
  return (
    named +
    fields({
      policyBranch: rest.policyBranch,
      source: rest.source,
      keyHash: rest.keyHash,
      level: rest.level,
      matchedRatio: rest.matchedRatio,
      threshold: rest.threshold,
      expectedWaitSeconds: rest.expectedWaitSeconds,
      inFlight: rest.inFlight,
      model: model === 'unknown' ? undefined : model,
      leg: leg === 'single' ? undefined : leg,
    })
  );
}

/** ` name=value` for each defined field, in the order given. */
function fields(values: Readonly<Record<string, unknown>> | LeaseOutcome): string {
  return Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${String(value)}`)
    .join('');
}
