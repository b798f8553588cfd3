/**
 * Private fields cannot be walked from outside, so whoever wants to know what is still reachable asks the heap itself: a
 * snapshot collects the garbage first and lists every string that is alive.
 */
import { getHeapSnapshot } from 'node:v8';

/** Every distinct string that is alive and starts with `start`, up to a quote, a backslash or the end of the string. */
export async function aliveStrings(start: string): Promise<Set<string>> {
  const found = new Set<string>();
  const pattern = new RegExp(`${start}[^"\\\\]*`, 'g');
  let rest = '';
  for await (const chunk of getHeapSnapshot()) {
    const text = rest + String(chunk);
    for (const [match] of text.matchAll(pattern)) found.add(match);
    rest = text.slice(-100);
  }
  return found;
}
