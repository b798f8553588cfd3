import { describe, expect, it } from 'vitest';
import { leastLoadTable } from '../../src/options/table.js';
import { resolveOptions } from '../../src/options/validate.js';
import { createLeastLoad, leastLoad } from '../../src/policies/least-load.js';
import type { StandalonePolicy } from '../../src/policies/standalone.js';
import type { Candidate } from '../../src/workers/candidate.js';
import { pick, report } from './reported.js';

describe('LL: least_load', () => {
  it('E30, EW-12, EW-14: credit moves the second request, a new report resets it', () => {
    const policy = leastLoad({ seed: 1 });
    const [a, b] = [
      { id: 'a', inFlight: 0, report: report(1000) },
      { id: 'b', inFlight: 0, report: report(2000) },
    ];
    const first = policy.selectWorker({}, [a, b]);
    expect(first).toMatchObject({ worker: a, record: { expectedWaitSeconds: 10.0375 } });
    const second = policy.selectWorker({}, [a, b]);
    expect(second).toMatchObject({ worker: b, record: { expectedWaitSeconds: 20.0375 } });
    const anew = [
      { ...a, report: report(1000) },
      { ...b, report: report(2000) },
    ];
    expect(policy.selectWorker({}, anew)).toMatchObject({ worker: anew[0], record: { expectedWaitSeconds: 10.0375 } });
  });

  it('E31, EW-45: credited requests fill the queue', () => {
    const policy = leastLoad({ seed: 1, maxWaitingRequests: 2, kvPressureWeight: 0, defaultThroughput: 100 });
    const candidates = [
      { id: 'a', inFlight: 0, report: { waitingRequests: 1, kvCacheUsage: 0, tokensPerSecond: 100 } },
      { id: 'b', inFlight: 0, report: report(400_000) },
    ];
    expect([pick(policy, candidates), pick(policy, candidates)]).toEqual(['a', 'b']);
  });

  it('E33, EW-42: reason waiting_cap, code no_available_workers, retryable, and nobody is credited', () => {
    const policy = leastLoad({ maxWaitingRequests: 48 });
    const candidates = [{ id: 'a', inFlight: 0, report: { waitingRequests: 48 } }];
    expect(policy.selectWorker({}, candidates)).toMatchObject({
      ok: false,
      reason: 'waiting_cap',
      code: 'no_available_workers',
      retryable: true,
      excluded: 0,
    });
    expect(policy.explain({}, candidates).policy.scores?.[0]).toMatchObject({ creditTokens: 0, capped: true });
  });

  it('EW-50, EW-17: a single candidate is scored and credited', () => {
    const policy = leastLoad();
    const candidates = [{ id: 'a', inFlight: 0, report: report(1000) }];
    expect(policy.selectWorker({}, candidates)).toMatchObject({ record: { expectedWaitSeconds: 10.0375 } });
    expect(policy.selectWorker({}, candidates)).toMatchObject({ record: { expectedWaitSeconds: 20.2775 } });
  });

  it('EW-13: a known size is credited exactly, an empty list as 0, an unknown one as the mean of the options', () => {
    const policy = leastLoad({ meanPrefillTokens: 10 });
    const candidates = [{ id: 'a', inFlight: 0, report: report(0) }];
    const credit = () => policy.explain({}, candidates).policy.scores?.[0]?.creditTokens;
    pick(policy, candidates, [1, 2, 3]);
    expect(credit()).toBe(3);
    pick(policy, candidates, []);
    expect(credit()).toBe(3);
    pick(policy, candidates);
    expect(credit()).toBe(13);
    policy.selectWorker({ headers: { 'x-smg-routing-tokens': '7,8' } }, candidates);
    expect(credit()).toBe(15);
  });

  it('EW-15, EW-16: losing the report resets nothing; the same report again does not either, another one does', () => {
    const policy = leastLoad();
    const known = report(0);
    const credit = (candidate: Candidate) => policy.explain({}, [candidate]).policy.scores?.[0]?.creditTokens;
    pick(policy, [{ id: 'a', inFlight: 0, report: known }]);
    pick(policy, [{ id: 'a', inFlight: 0 }]);
    expect(credit({ id: 'a', inFlight: 0, report: known })).toBe(2048);
    expect(credit({ id: 'a', inFlight: 0, report: report(0) })).toBe(0);
  });

  it('B39: twenty selections between two reports split evenly', () => {
    const policy = leastLoad({ seed: 39 });
    const candidates = [
      { id: 'a', inFlight: 0, report: report(0) },
      { id: 'b', inFlight: 0, report: report(0) },
    ];
    const picks = Array.from({ length: 20 }, () => pick(policy, candidates));
    expect(picks.filter((id) => id === 'a')).toHaveLength(10);
  });

  it('B19: eight selections in one tick spread over four idle workers', () => {
    const policy = leastLoad({ seed: 19 });
    const candidates = ['a', 'b', 'c', 'd'].map((id) => ({ id, inFlight: 0, report: report(0) }));
    const counts = new Map<string, number>();
    for (let i = 0; i < 8; i++) {
      const id = pick(policy, candidates);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    expect([...counts.values()]).toEqual([2, 2, 2, 2]);
  });

  it('B38: a queue depth without tokens is no empty queue', () => {
    const depth = [
      { id: 'a', inFlight: 0, report: { waitingRequests: 64, tokensPerSecond: 100 } },
      { id: 'b', inFlight: 0, report: { waitingRequests: 6, tokensPerSecond: 100 } },
    ];
    for (let seed = 0; seed < 20; seed++) expect(pick(leastLoad({ seed }), depth)).toBe('b');
    const known = [
      { id: 'c', inFlight: 0, report: { waitingRequests: 200, waitingTokens: 500, tokensPerSecond: 100 } },
      { id: 'd', inFlight: 0, report: { waitingRequests: 1, waitingTokens: 8000, tokensPerSecond: 100 } },
    ];
    expect(pick(leastLoad(), known)).toBe('c');
  });

  it('B48: a full cache loses against half a cache; a report with NaN is none', () => {
    const full = [
      { id: 'a', inFlight: 0, report: report(0, 100, 1) },
      { id: 'b', inFlight: 0, report: report(0, 100, 0.5) },
    ];
    expect(pick(leastLoad(), full)).toBe('b');
    const broken = [
      { id: 'a', inFlight: 1, report: report(0, 100, Number.NaN) },
      { id: 'b', inFlight: 0, report: report(9) },
    ];
    const explained = leastLoad().explain({}, broken);
    expect(explained.policy.scores?.map(({ basis }) => basis)).toEqual(['baseline', 'report']);
  });

  it('B36, LR-30, LR-31: alone too, a report ages from its sample and stops counting at loadReportMaxAgeMs', () => {
    let now = 1_000_000;
    const policy = leastLoad({ clock: () => now, loadReportMaxAgeMs: 5000 });
    const candidates = [
      { id: 'a', inFlight: 0, report: { ...report(0), observedAt: now - 4000 } },
      { id: 'b', inFlight: 0, report: { ...report(10), observedAt: now + 99_000 } },
    ];
    const bases = () => policy.explain({}, candidates).policy.scores?.map(({ basis }) => basis);
    pick(policy, candidates);
    expect(bases()).toEqual(['report', 'report']);
    now += 1000;
    expect(bases()).toEqual(['baseline', 'report']);
    now += 3999;
    expect(bases()).toEqual(['baseline', 'report']);
    now += 1;
    expect(bases()).toEqual(['in_flight', 'in_flight']);
  });

  it('LR-30: the age rule is off with Infinity, and 30 s by default', () => {
    let now = 0;
    const candidates = [{ id: 'a', inFlight: 0, report: report(0) }];
    const basisAt = (policy: StandalonePolicy, ms: number) => {
      now = 0;
      pick(policy, candidates);
      now = ms;
      return policy.explain({}, candidates).policy.scores?.[0]?.basis;
    };
    const clock = () => now;
    expect(basisAt(leastLoad({ clock }), 29_999)).toBe('report');
    expect(basisAt(leastLoad({ clock }), 30_000)).toBe('in_flight');
    expect(basisAt(leastLoad({ clock, loadReportMaxAgeMs: Infinity }), 1e12)).toBe('report');
  });

  it('LB-11, EW-26: in a dark fleet there is no expected wait', () => {
    const selection = leastLoad().selectWorker({}, [{ id: 'a', inFlight: 2 }]);
    expect(selection.record).toMatchObject({ expectedWaitSeconds: undefined, inFlight: 2 });
  });

  it.each([
    ['kvPressureWeight', -0.1],
    ['kvPressureWeight', Number.NaN],
    ['defaultThroughput', 0],
    ['meanPrefillTokens', -1],
    ['meanPrefillTokens', 1.5],
    ['maxWaitingRequests', -1],
    ['maxWaitingRequests', '3'],
  ])('CF-113, B56: %s = %s is refused with its name', (field, value) => {
    expect(() => leastLoad({ [field]: value } as never)).toThrow(expect.objectContaining({ field, value }));
  });
});

it('LL-2: least_load has no branch, and its record the score of a decision', () => {
  const { record } = leastLoad({ seed: 1 }).selectWorker({}, [{ id: 'a', inFlight: 0, report: report(1000) }]);
  expect(record).toMatchObject({ policy: 'least_load', branch: undefined, expectedWaitSeconds: 10.0375 });
});

it('LR-26: least_load reads reports, so that they are polled', () => {
  expect(createLeastLoad(resolveOptions(leastLoadTable, {})).needs).toEqual({ reports: true });
});
