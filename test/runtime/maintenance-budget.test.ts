import { expect, it } from 'vitest';
import { StepBudget, TimeBudget } from '../../src/runtime/maintenance-budget.js';

it('LB-3, LB-5: a budget of looks is spent after so many of them', () => {
  const budget = new StepBudget(2);
  expect([budget.spent(), budget.spent(), budget.spent(), budget.spent()]).toEqual([false, false, true, true]);
});

it('LB-5: a budget of time is spent when it is over', () => {
  let now = 100;
  const budget = new TimeBudget(() => now, 5);
  now = 104.9;
  expect(budget.spent()).toBe(false);
  now = 105;
  expect(budget.spent()).toBe(true);
});

it('LB-5: a clock that stands still makes no step endless', () => {
  const budget = new TimeBudget(() => 0, 1);
  let looks = 0;
  while (!budget.spent()) looks += 1;
  expect(looks).toBe(4096);
});
