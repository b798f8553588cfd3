/** WK-21: the list that is kept, against the members asked one by one. */
import { describe, expect, it } from 'vitest';
import { summarizeReport } from '../../src/load/load-summary.js';
import { AvailableList } from '../../src/workers/available-list.js';
import type { CandidateSet } from '../../src/workers/candidate-set.js';
import type { WorkerState } from '../../src/workers/worker.js';
import { fc } from '../support/property.js';
import { workerState } from '../support/worker-state.js';

const breaker = { failureThreshold: 1, successThreshold: 1, timeoutDurationMs: 5 };

const idsOf = (workers: Iterable<{ readonly id: string }>): string[] => Array.from(workers, ({ id }) => id);

/** What the router does when something befalls a worker: it tells every list that holds it. */
function tell(worker: WorkerState): void {
  for (const { list } of worker.memberships) list.changed();
}

/** Applies a report of `ms` milliseconds, and vetoes the worker for as long if it says so. */
function report(worker: WorkerState, now: number, ms: number, vetoed: boolean): void {
  const load = summarizeReport({ waitingRequests: 9 }, now, now + ms);
  if (typeof load === 'string') throw new Error(load);
  worker.load = load;
  worker.verdict = vetoed ? { signal: 'waiting_requests', value: 9, threshold: 9 } : undefined;
  tell(worker);
}

/** A list, its members in order, and the set that was read last while nothing has befallen a member since. */
class Watched {
  readonly list = new AvailableList();
  readonly members: WorkerState[] = [];
  #unchanged: CandidateSet | undefined;
  readonly #old: [CandidateSet, string[]][] = [];

  befell(): void {
    this.#unchanged = undefined;
  }

  add(worker: WorkerState): void {
    if (this.members.includes(worker)) return;
    this.list.add(worker);
    this.members.push(worker);
    this.befell();
  }

  remove(worker: WorkerState): void {
    this.list.remove(worker);
    if (!this.members.includes(worker)) return;
    this.members.splice(this.members.indexOf(worker), 1);
    this.befell();
  }

  /** Reads the list and compares everything it says with the members. */
  check(now: number, everybody: readonly WorkerState[]): void {
    const expected = this.members.filter((worker) => worker.isAvailable(now));
    const set = this.list.current(now);
    expect(set.workers).toEqual(expected);
    expect(set.inFlight).toBe(expected.reduce((sum, { inFlight }) => sum + inFlight, 0));
    expect([this.list.size, idsOf(this.list.members())]).toEqual([this.members.length, idsOf(this.members)]);
    for (const worker of everybody) {
      expect(this.list.has(worker.id)).toBe(this.members.includes(worker));
      expect(set.indexOf(worker.id)).toBe(expected.indexOf(worker));
    }
    const before = this.#old.at(-1);
    const same = this.#unchanged !== undefined && before?.[1].join() === idsOf(expected).join();
    if (same) expect(set).toBe(this.#unchanged);
    else this.#old.push([set, idsOf(expected)]);
    this.#unchanged = set;
    // Sets of earlier decisions go on to tell the positions of their own workers.
    for (const [old, ids] of this.#old) expect(ids.map((id) => old.indexOf(id))).toEqual([...ids.keys()]);
  }
}

const who = fc.nat({ max: 4 });
const list = fc.nat({ max: 1 });
/** Reads and counts are frequent and changes rare, so that sets live long enough to go wrong. */
const ops = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: fc.constantFrom('begin', 'end'), who }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('read'), list }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('pass'), ms: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constantFrom('fail', 'ready', 'not_ready', 'lose'), who }) },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constantFrom('veto', 'report'), who, ms: fc.integer({ min: 1, max: 9 }) }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('add', 'remove'), list, who }) },
);

function befall(op: string, worker: WorkerState, now: number, ms: number): void {
  if (op === 'fail') worker.breaker.record('failure', now);
  else if (op === 'veto' || op === 'report') report(worker, now, ms, op === 'veto');
  else if (op === 'lose') worker.load = worker.verdict = undefined;
  else worker.health.setStatus(op as 'ready' | 'not_ready');
  tell(worker);
}

describe('AvailableList', () => {
  it('WK-21, WK-23, PO-6: over any history it holds the available members in order, their sum and their positions', () => {
    fc.assert(
      fc.property(fc.array(ops, { maxLength: 80 }), (history) => {
        const workers = [0, 1, 2, 3, 4].map((i) => workerState({ id: `w${i}` }, { breaker }));
        const lists = [new Watched(), new Watched()] as const;
        for (const worker of workers) lists[0].add(worker);
        let now = 0;
        for (const step of history) {
          const worker = workers['who' in step ? step.who : 0] as WorkerState;
          const list = lists['list' in step ? step.list : 0] as Watched;
          if (step.op === 'add') list.add(worker);
          else if (step.op === 'remove') list.remove(worker);
          else if (step.op === 'begin') worker.countBegin(undefined);
          else if (step.op === 'end') worker.inFlight > 0 && worker.countEnd(undefined);
          else if (step.op === 'pass') now += (step as { ms: number }).ms;
          else if (step.op === 'read') list.check(now, workers);
          else {
            befall(step.op, worker, now, 'ms' in step ? step.ms : 0);
            for (const each of lists) if (each.members.includes(worker)) each.befell();
          }
        }
        for (const each of lists) each.check(now, workers);
      }),
      { numRuns: 150, seed: 21 },
    );
  });

  it('WK-21, CB-4, OV-9: a worker is back at the moment at which the last of its obstacles ends, with nobody telling', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((id) => workerState({ id }, { breaker })) as [
      WorkerState,
      WorkerState,
      WorkerState,
    ];
    const list = new AvailableList();
    for (const worker of [a, b, c]) list.add(worker);
    for (const worker of [a, c]) worker.breaker.record('failure', 0);
    report(a, 0, 8, true);
    report(b, 0, 3, true);
    report(c, 0, 9, false);
    const reads = Array.from({ length: 9 }, (_, now) => list.current(now));
    const ids = reads.map(({ workers }) => idsOf(workers).join(''));
    expect(ids).toEqual(['', '', '', 'b', 'b', 'bc', 'bc', 'bc', 'abc']);
    expect(new Set(reads).size).toBe(4);
  });

  it('PO-6: the same set until something changes, however unavailable a member is', () => {
    const list = new AvailableList();
    list.add(workerState({ id: 'a' }));
    list.add(workerState({ id: 'b', status: 'not_ready' }));
    const set = list.current(0);
    expect(list.current(1e9)).toBe(set);
    list.changed();
    expect(list.current(1e9)).not.toBe(set);
  });

  it('PO-6: finding a worker reads nobody, as the list knows the positions', () => {
    let read = 0;
    const list = new AvailableList();
    for (let i = 0; i < 1000; i++) {
      const worker = workerState({ id: `w${i}` });
      list.add(worker);
      Object.defineProperty(worker, 'id', { get: () => `w${++read && i}` });
    }
    expect([list.current(0).indexOf('w999'), list.current(0).indexOf('nobody'), read]).toEqual([999, -1, 0]);
  });

  it('LB-30: dissolving takes every member out, and out of this list alone', () => {
    const [one, other] = [new AvailableList(), new AvailableList()];
    const workers = [workerState({ id: 'a' }), workerState({ id: 'b' })];
    for (const worker of workers) for (const list of [one, other]) list.add(worker);
    const set = one.current(0);
    one.dissolve();
    expect([one.size, one.current(0).size, set.size]).toEqual([0, 0, 2]);
    for (const { memberships } of workers) expect(memberships.map(({ list }) => list)).toEqual([other]);
  });
});
