/** The use of a placement: the reading of a counter of its tree or hash index (see `PrefixTree`). */
import { refuse } from '../errors.js';

/** Uses stay exact integers for ever: nobody counts from here to 2⁵³. */
const maxUse = 2 ** 52;

/** Whether a tree or a hash index can have given this use out. */
export function isUse(use: unknown): use is number {
  return Number.isInteger(use) && (use as number) >= 1 && (use as number) <= maxUse;
}

/** @throws TypeError on `use` for one that nothing can have given out (LB-34, LB-42) */
export function checkUse(use: number): void {
  if (!isUse(use)) throw refuse('use', `an integer from 1 to ${maxUse}`, use);
}
