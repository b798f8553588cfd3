import { expect, it } from 'vitest';
import { ElapsedTime } from '../../src/runtime/clock.js';

it('LB-2: adds up what passed between readings; steps back and readings that are no time count as nothing', () => {
  const readings = [1000, 1010, 700, 705, Number.NaN, 720, Infinity, 800, -Infinity, 5, 6];
  const time = new ElapsedTime(() => readings.shift() as number);
  const seen = Array.from({ length: 10 }, () => time.advance());
  expect(seen).toEqual([10, 10, 15, 15, 15, 15, 15, 15, 15, 16]);
  expect(time.now).toBe(16);
});

it('LR-31: the age of a reading is counted from the last one, and the future is 0 old', () => {
  let reading = 50;
  const time = new ElapsedTime(() => reading);
  expect(time.ageOfReading(20)).toBe(30);
  reading = 90;
  expect(time.ageOfReading(20)).toBe(30);
  time.advance();
  expect([time.ageOfReading(20), time.ageOfReading(91), time.ageOfReading(Number.NaN)]).toEqual([70, 0, 0]);
});
