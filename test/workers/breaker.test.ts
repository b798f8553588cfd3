import { describe, expect, it } from 'vitest';
import { circuitBreakerTable } from '../../src/options/table.js';
import { resolveOptions } from '../../src/options/validate.js';
import {
  Breaker,
  type BreakerConfig,
  type BreakerState,
  type RouterBreakerOptions,
  resolveBreakerConfig,
} from '../../src/workers/breaker.js';
import { classifyOutcome, RequestScope, resolveOutcomeCodes } from '../../src/workers/outcome-class.js';

const config: BreakerConfig = { failureThreshold: 3, successThreshold: 2, timeoutDurationMs: 30_000 };
const codes = resolveOutcomeCodes(undefined);

/** Feeds statuses of separate requests, one after the other, at `now`. */
function feed(breaker: Breaker, statuses: readonly number[], now = 0): void {
  for (const status of statuses) {
    const outcome = classifyOutcome({ status }, codes);
    if (outcome !== 'nothing') breaker.record(outcome, now);
  }
}

function opened(now = 0): Breaker {
  const breaker = new Breaker(config);
  feed(breaker, [500, 500, 500], now);
  return breaker;
}

const router: RouterBreakerOptions = {
  circuitBreaker: resolveOptions(circuitBreakerTable, undefined),
  disableCircuitBreaker: false,
};

describe('Breaker', () => {
  it('CB-1: starts closed and allows', () => {
    const breaker = new Breaker(config);
    expect([breaker.state(0), breaker.allows(0), breaker.halfOpenAt, breaker.epoch(0)]).toEqual([
      'closed',
      true,
      Infinity,
      0,
    ]);
    expect([breaker.state(Infinity), breaker.allows(Infinity), breaker.epoch(Infinity)]).toEqual(['closed', true, 0]);
  });

  it('CB-2: failures in a row open it, a success between them starts anew', () => {
    const breaker = new Breaker(config);
    feed(breaker, [500, 500]);
    expect(breaker.state(0)).toBe('closed');
    expect(breaker.record('failure', 7)).toEqual([{ from: 'closed', to: 'open', at: 7 }]);
    expect([breaker.state(7), breaker.allows(7), breaker.halfOpenAt]).toEqual(['open', false, 30_007]);
  });

  it('CB-60: F F S F F F is open after the sixth outcome, not before', () => {
    const breaker = new Breaker(config);
    const states: BreakerState[] = [];
    for (const status of [500, 500, 200, 500, 500, 500]) {
      feed(breaker, [status]);
      states.push(breaker.state(0));
    }
    expect(states).toEqual(['closed', 'closed', 'closed', 'closed', 'closed', 'open']);
    expect(breaker.consecutiveFailures(0)).toBe(3);
  });

  it('CB-61: open at 0 blocks at 29.999 s and is half-open at 30 s', () => {
    const breaker = opened();
    expect([breaker.state(29_999), breaker.allows(29_999)]).toEqual(['open', false]);
    expect([breaker.state(30_000), breaker.allows(30_000)]).toEqual(['half_open', true]);
  });

  it('CB-62: half-open, two successes close it; a failure reopens it for another 30 s', () => {
    const closing = opened();
    feed(closing, [200], 30_000);
    expect(closing.state(30_000)).toBe('half_open');
    feed(closing, [200], 31_000);
    expect([closing.state(31_000), closing.consecutiveFailures(31_000), closing.consecutiveSuccesses(31_000)]).toEqual([
      'closed',
      0,
      0,
    ]);

    const reopening = opened();
    feed(reopening, [200, 500], 40_000);
    expect([reopening.state(40_000), reopening.consecutiveFailures(40_000), reopening.halfOpenAt]).toEqual([
      'open',
      1,
      70_000,
    ]);
    expect([reopening.state(69_999), reopening.state(70_000)]).toEqual(['open', 'half_open']);
  });

  it('CB-63, CB-24: a capacity status in half-open neither closes nor reopens', () => {
    const breaker = opened();
    feed(breaker, [200, 429], 30_000);
    expect([breaker.state(30_000), breaker.consecutiveSuccesses(30_000)]).toEqual(['half_open', 1]);
    feed(breaker, [200], 30_000);
    expect(breaker.state(30_000)).toBe('closed');
  });

  it('CB-64: closed with two failures, 429 leaves them, 404 clears them', () => {
    const breaker = new Breaker(config);
    feed(breaker, [500, 500, 429]);
    expect(breaker.consecutiveFailures(0)).toBe(2);
    feed(breaker, [404]);
    expect([breaker.state(0), breaker.consecutiveFailures(0)]).toEqual(['closed', 0]);
  });

  it('CB-65: attempts of one request charge a worker once, different workers one each', () => {
    const [w1, w2] = [new Breaker(config), new Breaker(config)];
    const request = (...attempts: readonly ['w1' | 'w2', number][]): void => {
      const scope = new RequestScope();
      for (const [id, status] of attempts) {
        const outcome = classifyOutcome({ status }, codes);
        if (scope.admits(id, outcome)) (id === 'w1' ? w1 : w2).record(outcome, 0);
      }
    };
    request(['w1', 500], ['w1', 500], ['w1', 500]);
    expect([w1.consecutiveFailures(0), w1.state(0)]).toEqual([1, 'closed']);
    request(['w1', 500], ['w2', 500], ['w1', 500]);
    expect([w1.consecutiveFailures(0), w2.consecutiveFailures(0)]).toEqual([2, 1]);
    request(['w1', 500], ['w1', 500]);
    expect([w1.consecutiveFailures(0), w1.state(0)]).toEqual([3, 'open']);
  });

  it('CB-66, CB-3: outcomes while open move the streaks, never the state or the timeout', () => {
    const breaker = opened();
    expect(breaker.record('success', 10_000)).toEqual([]);
    expect([breaker.state(10_000), breaker.consecutiveFailures(10_000), breaker.consecutiveSuccesses(10_000)]).toEqual([
      'open',
      0,
      1,
    ]);
    expect(breaker.record('failure', 20_000)).toEqual([]);
    expect([breaker.consecutiveFailures(20_000), breaker.consecutiveSuccesses(20_000)]).toEqual([1, 0]);
    expect(breaker.halfOpenAt).toBe(30_000);
  });

  it('CB-4, CB-6: the failures stay while open, both streaks are 0 when half-open', () => {
    const breaker = opened();
    expect(breaker.consecutiveFailures(29_999)).toBe(3);
    breaker.record('success', 29_999);
    breaker.record('failure', 29_999);
    expect([breaker.consecutiveFailures(30_000), breaker.consecutiveSuccesses(30_000)]).toEqual([0, 0]);
  });

  it('CB-5, B52: half-open does not throttle', () => {
    const breaker = opened();
    expect(Array.from({ length: 10 }, () => breaker.allows(30_000))).toEqual(Array(10).fill(true));
    expect(breaker.state(30_000)).toBe('half_open');
  });

  it('CB-7: reading changes nothing, and the lazy transition is handed out once, with its own time', () => {
    const breaker = opened();
    expect([breaker.epoch(29_999), breaker.epoch(30_000), breaker.epoch(90_000)]).toEqual([1, 2, 2]);
    expect(breaker.takeTransitions(29_999)).toEqual([]);
    expect(breaker.takeTransitions(45_000)).toEqual([{ from: 'open', to: 'half_open', at: 30_000 }]);
    expect(breaker.takeTransitions(46_000)).toEqual([]);
    expect([breaker.epoch(46_000), breaker.state(46_000)]).toEqual([2, 'half_open']);
  });

  it('CB-7, B54: an outcome after the timeout reports the lazy transition before its own', () => {
    const breaker = opened();
    expect(breaker.record('failure', 31_000)).toEqual([
      { from: 'open', to: 'half_open', at: 30_000 },
      { from: 'half_open', to: 'open', at: 31_000 },
    ]);
    expect(breaker.takeTransitions(31_000)).toEqual([]);
  });

  it('CB-8: thresholds of 1 open at the first failure and close at the first success', () => {
    const breaker = new Breaker({ failureThreshold: 1, successThreshold: 1, timeoutDurationMs: 1 });
    breaker.record('failure', 0);
    expect(breaker.state(0)).toBe('open');
    breaker.record('success', 1);
    expect(breaker.state(1)).toBe('closed');
  });

  it('CB-26: an outcome begun before the last transition moves the streaks, never the state', () => {
    const closed = new Breaker(config);
    const begun = closed.epoch(0);
    feed(closed, [500, 500, 500]);
    expect(closed.record('success', 30_000, begun)).toEqual([{ from: 'open', to: 'half_open', at: 30_000 }]);
    expect(closed.record('success', 30_000, begun)).toEqual([]);
    expect([closed.state(30_000), closed.consecutiveSuccesses(30_000)]).toEqual(['half_open', 2]);
    expect(closed.record('failure', 30_000, begun)).toEqual([]);
    expect([closed.state(30_000), closed.consecutiveFailures(30_000)]).toEqual(['half_open', 1]);
    const fresh = closed.epoch(30_000);
    expect(closed.record('failure', 30_000, fresh)).toEqual([{ from: 'half_open', to: 'open', at: 30_000 }]);
  });

  it('CB-26: a late failure does not open a closed breaker; the next one of its own epoch does', () => {
    const breaker = opened();
    const halfOpen = breaker.epoch(30_000);
    feed(breaker, [200, 200], 30_000);
    for (let i = 0; i < 5; i++) breaker.record('failure', 30_000, halfOpen);
    expect([breaker.state(30_000), breaker.consecutiveFailures(30_000)]).toEqual(['closed', 5]);
    breaker.record('failure', 30_000, breaker.epoch(30_000));
    expect(breaker.state(30_000)).toBe('open');
  });

  it('CB-26: the epoch at a begin is the same whether or not somebody looked since the timeout', () => {
    const [seen, unseen] = [opened(), opened()];
    seen.takeTransitions(30_000);
    expect(unseen.epoch(30_000)).toBe(seen.epoch(30_000));
    expect(unseen.record('failure', 30_000, unseen.epoch(30_000)).at(-1)?.to).toBe('open');
  });

  it('CB-41: other settings keep state, streaks and the moment it opened', () => {
    const breaker = opened(1000);
    expect(breaker.configure({ ...config, timeoutDurationMs: 5000 }, 2000)).toEqual([]);
    expect([breaker.state(5999), breaker.state(6000), breaker.consecutiveFailures(5999)]).toEqual([
      'open',
      'half_open',
      3,
    ]);
    const closed = new Breaker(config);
    feed(closed, [500, 500]);
    closed.configure({ ...config, failureThreshold: 1 }, 0);
    expect([closed.state(0), closed.consecutiveFailures(0)]).toEqual(['closed', 2]);
    feed(closed, [500]);
    expect(closed.state(0)).toBe('open');
  });

  it('CB-41: a timeout that has passed is settled under the old settings', () => {
    const breaker = opened();
    expect(breaker.configure({ ...config, timeoutDurationMs: 600_000 }, 30_000)).toEqual([
      { from: 'open', to: 'half_open', at: 30_000 },
    ]);
    expect(breaker.state(30_000)).toBe('half_open');
  });
});

describe('a breaker given what is no number', () => {
  it.each(['failureThreshold', 'successThreshold', 'timeoutDurationMs'] as const)('LB-42: refuses %s', (name) => {
    const wrong = { ...config, [name]: '3' } as unknown as BreakerConfig;
    const breaker = new Breaker(config);
    expect(() => new Breaker(wrong)).toThrow(`config.${name}: expected a number, got "3"`);
    expect(() => breaker.configure(wrong, 0)).toThrow(`config.${name}: expected a number, got "3"`);
  });

  it('LB-42: refuses settings that are no object, and times; nothing is recorded', () => {
    const breaker = new Breaker(config);
    expect(() => new Breaker(null as never)).toThrow(/^config: expected an object/);
    expect(() => breaker.record('failure', '0' as never)).toThrow(/^now: expected a number/);
    expect(() => breaker.takeTransitions(undefined as never)).toThrow(/^now: expected a number/);
    expect(breaker.consecutiveFailures(0)).toBe(0);
  });
});

describe('resolveBreakerConfig', () => {
  it('CB-50: the defaults are 10, 3 and 60 s', () => {
    expect(resolveBreakerConfig(router, undefined)).toEqual({
      failureThreshold: 10,
      successThreshold: 3,
      timeoutDurationMs: 60_000,
    });
  });

  it('CB-40: what a worker sets wins, the rest comes from the router', () => {
    const own = { cbFailureThreshold: 2, cbTimeoutMs: 1500, cbWindowMs: 1 };
    expect(resolveBreakerConfig(router, own)).toEqual({
      failureThreshold: 2,
      successThreshold: 3,
      timeoutDurationMs: 1500,
    });
    expect(resolveBreakerConfig(router, { cbSuccessThreshold: 1 }).successThreshold).toBe(1);
  });

  it('CB-9: disabled never opens and still counts; a threshold of the worker itself still opens', () => {
    const disabled = { ...router, disableCircuitBreaker: true };
    const breaker = new Breaker(resolveBreakerConfig(disabled, undefined));
    for (let i = 0; i < 1000; i++) breaker.record('failure', 0);
    expect([breaker.state(0), breaker.consecutiveFailures(0)]).toEqual(['closed', 1000]);
    expect(resolveBreakerConfig(disabled, { cbFailureThreshold: 4 }).failureThreshold).toBe(4);
    const both = { disableCircuitBreaker: true, cbFailureThreshold: 5 };
    expect(resolveBreakerConfig(router, both).failureThreshold).toBe(5);
  });

  it('CB-40: a worker can be disabled or enabled against the router', () => {
    const off = { disableCircuitBreaker: true };
    expect(resolveBreakerConfig(router, off).failureThreshold).toBe(Number.MAX_SAFE_INTEGER);
    const on = { disableCircuitBreaker: false };
    expect(resolveBreakerConfig({ ...router, disableCircuitBreaker: true }, on).failureThreshold).toBe(10);
  });

  it('CB-50: thresholds below 1 and durations of 0 are refused by name', () => {
    for (const [name, value] of [
      ['cbFailureThreshold', 0],
      ['cbSuccessThreshold', 1.5],
      ['cbTimeoutMs', 0],
      ['cbWindowMs', Number.NaN],
    ] as const) {
      expect(() => resolveBreakerConfig(router, { [name]: value })).toThrowError(
        expect.objectContaining({ code: 'KVROUTE_CONFIG', field: `worker.resilience.${name}`, value }),
      );
    }
  });
});
