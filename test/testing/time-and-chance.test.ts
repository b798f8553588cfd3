import { createRouter, leastLoad, random } from 'kvroute';
import {
  distribution,
  fakeFleet,
  fakeWorker,
  manualClock,
  policyContract,
  recordDecisions,
  scriptedRandom,
  seededRandom,
} from 'kvroute/testing';
import { describe, expect, it, vi } from 'vitest';

describe('manualClock', () => {
  it('LB-2: stands still until it is moved, and may be set back', () => {
    const time = manualClock(100);
    expect([time.now, time.clock()]).toEqual([100, 100]);
    time.advance(2.5);
    expect([time.now, time.clock()]).toEqual([102.5, 102.5]);
    time.set(-7);
    expect([time.now, time.clock()]).toEqual([-7, -7]);
    expect(manualClock().now).toBe(0);
  });

  it('refuses what is no step forward, and readings that are not finite', () => {
    const time = manualClock();
    expect(() => time.advance(-1)).toThrow(new RangeError('ms: expected a finite number ≥ 0, got -1'));
    expect(() => time.advance(Number.NaN)).toThrow(RangeError);
    expect(() => time.set(Infinity)).toThrow(new RangeError('ms: expected a finite number, got Infinity'));
    expect(() => manualClock(Number.NaN)).toThrow(new RangeError('start: expected a finite number, got NaN'));
    expect(time.now).toBe(0);
  });

  it('LB-5: a breaker half-opens by moving the clock alone', async () => {
    const { clock, advance } = manualClock();
    const router = await createRouter({ clock, circuitBreaker: { failureThreshold: 1, timeoutDurationMs: 1000 } });
    router.addWorker({ id: 'a' });
    router.recordOutcome('a', { status: 500 });
    advance(999);
    expect(router.worker('a')?.breakerState).toBe('open');
    advance(1);
    expect(router.worker('a')?.breakerState).toBe('half_open');
  });
});

describe('scriptedRandom', () => {
  it('gives its values in order, counts them, and says when there are no more', () => {
    const draw = scriptedRandom([0, 0.5, 0.999]);
    expect([draw(), draw(), draw.drawn, draw(), draw.drawn]).toEqual([0, 0.5, 2, 0.999, 3]);
    expect(() => draw()).toThrow(new RangeError('draw 4 was asked for, the script has 3'));
    expect(draw.drawn).toBe(3);
  });

  it('LB-12: a fork goes on from the same place and leaves it where it is', () => {
    const draw = scriptedRandom([0.1, 0.2, 0.3]);
    draw();
    const fork = draw.fork?.();
    expect([fork?.(), fork?.()]).toEqual([0.2, 0.3]);
    expect([draw.drawn, draw()]).toEqual([1, 0.2]);
    const policy = random({ random: scriptedRandom([0.999]) });
    policy.explain({}, fakeFleet(3));
    expect(policy.selectWorker({}, fakeFleet(3))).toMatchObject({ worker: { id: 'w3' } });
  });

  it('keeps a script of its own, and refuses values that are no draws', () => {
    const values = [0.25];
    const draw = scriptedRandom(values);
    values[0] = 0.75;
    expect(draw()).toBe(0.25);
    expect(() => scriptedRandom([0, 1])).toThrow(new RangeError('values[1]: expected a number in [0, 1), got 1'));
    expect(() => scriptedRandom([Number.NaN])).toThrow(RangeError);
    expect(() => scriptedRandom([-0.1])).toThrow(RangeError);
  });
});

it('LB-2: seededRandom is the router’s own generator', () => {
  const [one, two] = [seededRandom(7), seededRandom(7)];
  const draws = Array.from({ length: 5 }, () => one());
  expect(Array.from({ length: 5 }, () => two())).toEqual(draws);
  expect(new Set(draws).size).toBe(5);
});

it('LB-1, LB-2: no tool asks the surroundings for time or chance', async () => {
  const router = await createRouter({ seed: 1, clock: manualClock().clock });
  const ambient = [vi.spyOn(Math, 'random'), vi.spyOn(performance, 'now'), vi.spyOn(Date, 'now')];
  try {
    const recorder = recordDecisions(router);
    router.addWorker({ id: fakeWorker().id });
    router.acquire({ text: 'hello' });
    distribution(leastLoad, { text: 'hello' }, fakeFleet(3), { seeds: 5 });
    for (const { name, run } of policyContract(leastLoad)) if (!name.startsWith('PO-6')) run();
    recorder.stop();
    expect(recorder.lines.length).toBe(2);
    for (const spy of ambient) expect(spy).not.toHaveBeenCalled();
  } finally {
    for (const spy of ambient) spy.mockRestore();
  }
});
