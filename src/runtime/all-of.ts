/**
 * Whether every entry of a list from outside passes. Unlike `every` it asks about holes too: they read as undefined
 * wherever the list is used (LB-42). Stops at the first that does not; O(n).
 */
export function allOf(list: readonly unknown[], passes: (item: unknown) => boolean): boolean {
  for (let i = 0; i < list.length; i++) if (!passes(list[i])) return false;
  return true;
}
