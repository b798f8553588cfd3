/** Waiting in examples and their tests. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until something holds and returns how many milliseconds that took. @throws when it does not hold in time */
export async function until(condition: () => boolean, withinMs: number): Promise<number> {
  const from = performance.now();
  while (!condition()) {
    if (performance.now() - from > withinMs) throw new Error(`not true within ${withinMs} ms: ${condition}`);
    await sleep(1);
  }
  return performance.now() - from;
}

/** Resolves at Ctrl-C, or when the process is asked to end. */
export function interrupted(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve());
    process.once('SIGTERM', () => resolve());
  });
}
