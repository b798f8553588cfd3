import { describe, expect, it } from 'vitest';
import { ElapsedTime } from '../../src/runtime/clock.js';
import { composePinKey } from '../../src/sticky/pin-key.js';
import { PinMap } from '../../src/sticky/pins.js';
import { fc } from '../support/property.js';

interface NaivePin {
  primary: string;
  secondary: string | undefined;
  lastUsedAt: number;
}

/** The pin map as ST-60 and ST-60a word it: a `Map` whose order is the order of use, searched from end to end. */
class NaivePins {
  readonly pins = new Map<string, NaivePin>();
  nextSweepAt: number;
  readonly limits: { maxPins: number; maxIdleMs: number; evictionIntervalMs: number };

  constructor(limits: { maxPins: number; maxIdleMs: number; evictionIntervalMs: number }) {
    this.limits = limits;
    this.nextSweepAt = limits.evictionIntervalMs;
  }

  isIdle({ lastUsedAt }: NaivePin, now: number): boolean {
    const { maxIdleMs, evictionIntervalMs } = this.limits;
    return maxIdleMs > 0 && evictionIntervalMs > 0 && now - lastUsedAt >= maxIdleMs;
  }

  find(key: string, now: number): NaivePin | undefined {
    const pin = this.pins.get(key);
    return pin !== undefined && !this.isIdle(pin, now) ? pin : undefined;
  }

  put(key: string, pin: NaivePin): void {
    this.pins.delete(key);
    this.pins.set(key, pin);
    for (const oldest of this.pins.keys()) {
      if (this.pins.size <= this.limits.maxPins) break;
      this.pins.delete(oldest);
    }
  }

  sweep(now: number): void {
    if (now < this.nextSweepAt) return;
    for (const [key, pin] of this.pins) if (this.isIdle(pin, now)) this.pins.delete(key);
    this.nextSweepAt = now + this.limits.evictionIntervalMs;
  }
}

const key = fc.integer({ min: 0, max: 11 }).map((i) => composePinKey('m', 'single', `k${i}`));
const worker = fc.constantFrom('w1', 'w2', 'w3', '__proto__');
const action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), key, worker, second: fc.option(worker) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('find' as const), key }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), key }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('maintain' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('tick' as const), ms: fc.integer({ min: -30, max: 60 }) }) },
);
const limits = fc.record({
  maxPins: fc.integer({ min: 1, max: 8 }),
  maxIdleMs: fc.constantFrom(0, 40, 100),
  evictionIntervalMs: fc.constantFrom(0, 20, 150),
});

const unlimited = { spent: () => false };

describe('PinMap against a plain Map', () => {
  it('B78, ST-60, ST-60a: same pins, same order of use and same size after every step, with a clock that steps back too', () => {
    fc.assert(
      fc.property(limits, fc.array(action, { maxLength: 120 }), (limits, actions) => {
        let reading = 1000;
        const time = new ElapsedTime(() => reading);
        const pins = new PinMap(limits);
        const naive = new NaivePins(limits);
        for (const step of actions) {
          const now = time.advance();
          if (step.do === 'put') {
            pins.put(step.key, step.worker, step.second ?? undefined, now);
            naive.put(step.key, { primary: step.worker, secondary: step.second ?? undefined, lastUsedAt: now });
          } else if (step.do === 'find') {
            expect(pins.find(step.key, now)).toEqual(
              naive.find(step.key, now) && expect.objectContaining(naive.find(step.key, now)),
            );
          } else if (step.do === 'delete') {
            pins.delete(step.key);
            naive.pins.delete(step.key);
          } else if (step.do === 'maintain') {
            expect(pins.maintain(now, unlimited)).toBe(false);
            naive.sweep(now);
          } else {
            reading += step.ms;
          }
          expect(pins.size).toBe(naive.pins.size);
          expect([...pins.entries()].map(({ pinKey }) => pinKey)).toEqual([...naive.pins.keys()]);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('LB-33: restored pins take their place in the order of use, whatever was there before', () => {
    const pin = fc.record({ key: fc.integer({ min: 0, max: 30 }), at: fc.integer({ min: -50, max: 100 }) });
    fc.assert(
      fc.property(
        fc.array(pin, { maxLength: 15 }),
        fc.array(pin, { maxLength: 30 }),
        fc.integer({ min: 1, max: 12 }),
        (present, restored, maxPins) => {
          const pins = new PinMap({ maxPins, maxIdleMs: 0, evictionIntervalMs: 0 });
          const byKey = new Map<string, number>();
          for (const { key, at } of present.toSorted((a, b) => a.at - b.at)) {
            pins.put(`${key}`, 'w', undefined, at);
            byKey.delete(`${key}`);
            byKey.set(`${key}`, at);
            if (byKey.size > maxPins) byKey.delete(byKey.keys().next().value as string);
          }
          for (const { key, at } of restored) {
            const oldest = [...byKey.values()].toSorted((a, b) => a - b)[0] ?? -Infinity;
            const taken = !byKey.has(`${key}`) && (byKey.size < maxPins || at > oldest);
            expect(pins.restore({ pinKey: `${key}`, primary: 'w', secondary: undefined, lastUsedAt: at })).toBe(taken);
            if (taken) byKey.set(`${key}`, at);
            if (byKey.size > maxPins) byKey.delete(lost(byKey, pins));
          }
          const order = [...pins.entries()].map(({ lastUsedAt }) => lastUsedAt);
          expect(order).toEqual(order.toSorted((a, b) => a - b));
          expect(order).toEqual([...byKey.values()].toSorted((a, b) => a - b));
        },
      ),
      { numRuns: 300 },
    );
  });
});

/** The one key the map dropped: one of those used longest ago. */
function lost(byKey: ReadonlyMap<string, number>, pins: PinMap): string {
  const kept = new Set([...pins.entries()].map(({ pinKey }) => pinKey));
  const gone = [...byKey].find(([key]) => !kept.has(key)) as [string, number];
  expect(gone[1]).toBe(Math.min(...byKey.values()));
  return gone[0];
}
