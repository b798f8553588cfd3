/**
 * fast-check with a seed: every run of a property test makes the same cases. `KVROUTE_SEED` gives others. Lists are as long
 * as their `maxLength` allows; by itself fast-check seldom goes beyond ten.
 *
 * `KVROUTE_NO_SHRINK=1` ends a failing test without looking for a smaller example: only that it fails is of interest then.
 */
import fc from 'fast-check';

fc.configureGlobal({
  seed: Number(process.env.KVROUTE_SEED ?? 1),
  defaultSizeToMaxWhenMaxSpecified: true,
  endOnFailure: process.env.KVROUTE_NO_SHRINK === '1',
});

export { fc };
