import { expect, it } from 'vitest';
import { ElapsedTime } from '../../src/runtime/clock.js';
import { Breaker, type BreakerConfig, type BreakerState, type BreakerTransition } from '../../src/workers/breaker.js';
import { fc } from '../support/property.js';

/**
 * A naive breaker: it keeps the list of everything that ever happened and derives each answer by replaying it, moving
 * time from one event to the next.
 */
type Happening = { readonly at: number; readonly outcome: 'success' | 'failure'; readonly epoch: number | undefined };

interface Replay {
  readonly state: BreakerState;
  readonly failures: number;
  readonly successes: number;
  readonly transitions: readonly BreakerTransition[];
}

function replay(config: BreakerConfig, happenings: readonly Happening[], now: number): Replay {
  const transitions: BreakerTransition[] = [];
  let state = 'closed' as BreakerState;
  let openedAt = 0;
  let streak: ('success' | 'failure')[] = [];
  const move = (to: BreakerState, at: number): void => {
    transitions.push({ from: state, to, at });
    state = to;
    if (to === 'open') openedAt = at;
    else streak = [];
  };
  const passTime = (at: number): void => {
    if (state === 'open' && at >= openedAt + config.timeoutDurationMs)
      move('half_open', openedAt + config.timeoutDurationMs);
  };
  for (const { at, outcome, epoch } of happenings) {
    passTime(at);
    if (streak.some((earlier) => earlier !== outcome)) streak = [];
    streak.push(outcome);
    if (epoch !== undefined && epoch !== transitions.length) continue;
    if (state === 'closed' && outcome === 'failure' && streak.length >= config.failureThreshold) move('open', at);
    else if (state === 'half_open' && outcome === 'failure') move('open', at);
    else if (state === 'half_open' && streak.length >= config.successThreshold) move('closed', at);
  }
  passTime(now);
  const count = (outcome: 'success' | 'failure'): number => streak.filter((one) => one === outcome).length;
  return { state, failures: count('failure'), successes: count('success'), transitions };
}

const configs = fc.record({
  failureThreshold: fc.integer({ min: 1, max: 4 }),
  successThreshold: fc.integer({ min: 1, max: 3 }),
  timeoutDurationMs: fc.integer({ min: 1, max: 50 }),
});

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ begin: fc.constant(true) }) },
  { weight: 2, arbitrary: fc.record({ outcome: fc.constantFrom('success' as const, 'failure' as const) }) },
  // Ends one of the open leases, so outcomes cross transitions (CB-26).
  {
    weight: 3,
    arbitrary: fc.record({ end: fc.nat({ max: 9 }), outcome: fc.constantFrom('success' as const, 'failure' as const) }),
  },
  // The clock also steps back (B55).
  { weight: 3, arbitrary: fc.record({ clock: fc.integer({ min: -40, max: 60 }) }) },
  { weight: 1, arbitrary: fc.record({ look: fc.constant(true) }) },
);

it('CB-1 to CB-7, CB-26, B55: agrees with a replay of everything that happened, on a clock that steps back', () => {
  const reached = new Set<string>();
  fc.assert(
    fc.property(configs, fc.array(step, { minLength: 20, maxLength: 60 }), (config, steps) => {
      let reading = 1000;
      const time = new ElapsedTime(() => reading);
      const breaker = new Breaker(config);
      const happenings: Happening[] = [];
      const leases: number[] = [];
      const transitions: BreakerTransition[] = [];
      for (const one of steps) {
        const before = time.now;
        if ('clock' in one) reading += one.clock;
        const now = time.advance();
        expect(now).toBe(before + ('clock' in one ? Math.max(0, one.clock) : 0));
        if ('begin' in one) leases.push(breaker.epoch(now));
        else if ('look' in one) transitions.push(...breaker.takeTransitions(now));
        else if ('end' in one) {
          const [epoch] = leases.splice(one.end % Math.max(1, leases.length), 1);
          transitions.push(...breaker.record(one.outcome, now, epoch));
          happenings.push({ at: now, outcome: one.outcome, epoch });
        } else if ('outcome' in one) {
          transitions.push(...breaker.record(one.outcome, now));
          happenings.push({ at: now, outcome: one.outcome, epoch: undefined });
        }
        const naive = replay(config, happenings, now);
        expect({
          state: breaker.state(now),
          allows: breaker.allows(now),
          failures: breaker.consecutiveFailures(now),
          epoch: breaker.epoch(now),
        }).toEqual({
          state: naive.state,
          allows: naive.state !== 'open',
          failures: naive.failures,
          epoch: naive.transitions.length,
        });
        expect(breaker.consecutiveSuccesses(now)).toBe(naive.successes);
        reached.add(naive.state);
      }
      transitions.push(...breaker.takeTransitions(time.now));
      expect(transitions).toEqual(replay(config, happenings, time.now).transitions);
    }),
    { numRuns: 300, seed: 7 },
  );
  expect([...reached].sort()).toEqual(['closed', 'half_open', 'open']);
});

it('B55: a clock that steps back delays the half-open state by no more than the step', () => {
  let reading = 10_000;
  const time = new ElapsedTime(() => reading);
  const breaker = new Breaker({ failureThreshold: 1, successThreshold: 1, timeoutDurationMs: 3000 });
  breaker.record('failure', time.advance());
  reading = 4000;
  expect(breaker.state(time.advance())).toBe('open');
  reading = 6999;
  expect(breaker.state(time.advance())).toBe('open');
  reading = 7000;
  expect(breaker.state(time.advance())).toBe('half_open');
});
