import { describe, expect, it } from 'vitest';
import { retryDelayMs } from '../src/backoff.js';
import { retryTable } from '../src/options/table.js';
import { resolveOptions } from '../src/options/validate.js';
import { seededRandom } from '../src/runtime/random.js';

const retry = (given: object = {}) => resolveOptions(retryTable, given);
const middle = () => 0.5;

describe('retryDelayMs', () => {
  it('CF-119: grows from 50 ms by 1.5 an attempt', () => {
    expect([1, 2, 3, 4].map((attempt) => retryDelayMs(attempt, retry(), middle))).toEqual([50, 75, 112.5, 168.75]);
  });

  it('CF-119: jitter moves it by up to a fifth both ways', () => {
    expect(retryDelayMs(1, retry(), () => 0)).toBe(40);
    expect(retryDelayMs(1, retry(), () => 1)).toBe(60);
    const random = seededRandom('jitter');
    const delays = Array.from({ length: 1000 }, () => retryDelayMs(1, retry(), random));
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(40);
    expect(Math.min(...delays)).toBeLessThan(41);
    expect(Math.max(...delays)).toBeLessThanOrEqual(60);
    expect(Math.max(...delays)).toBeGreaterThan(59);
    const mean = delays.reduce((sum, delay) => sum + delay, 0) / delays.length;
    expect(mean).toBeGreaterThan(49);
    expect(mean).toBeLessThan(51);
  });

  it('CF-119: never above maxMs, jitter and overflow included', () => {
    expect(retryDelayMs(100, retry(), middle)).toBe(30_000);
    expect(retryDelayMs(1e6, retry(), () => 1)).toBe(30_000);
    expect(retryDelayMs(100, retry(), () => 0)).toBe(24_000);
  });

  it('B56: zeros mean zero', () => {
    expect(retryDelayMs(1e6, retry({ baseMs: 0 }), middle)).toBe(0);
    expect(retryDelayMs(3, retry({ maxMs: 0 }), middle)).toBe(0);
    expect(retryDelayMs(2, retry({ jitter: 0 }), () => 1)).toBe(75);
    expect(retryDelayMs(1, retry({ jitter: 1 }), () => 0)).toBe(0);
  });
});
