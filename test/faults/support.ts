/** What the fault tests share: small fleets on a router, selections as ids, and requests. */
import { createRouter, type RouteRequest, type Router, type RouterOptions, type WorkerSpec } from 'kvroute';

/** `w1`, `w2`, … */
export function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `w${i + 1}`);
}

/** A seeded router with the workers given: ids, or specs. */
export async function fleet(workers: readonly (string | WorkerSpec)[], options: RouterOptions = {}): Promise<Router> {
  const router = await createRouter({ seed: 1, ...options });
  for (const worker of workers) router.addWorker(typeof worker === 'string' ? { id: worker } : worker);
  return router;
}

/** The id of the selected worker, or the reason why there is none. */
export function pick(router: Router, request: RouteRequest = {}): string {
  const selection = router.selectWorker(request);
  return selection.ok ? selection.worker.id : selection.reason;
}

/** How often each id occurs. */
export function tally(ids: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

/** The results of `count` calls. */
export function times<T>(count: number, call: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => call(i));
}

/** The integers from `from` to `to`, both included. */
export function range(from: number, to: number): number[] {
  return times(to - from + 1, (i) => from + i);
}

/** A text of the given length that differs from that of any other seed within a few characters. */
export function noise(length: number, draw: () => number): string {
  return String.fromCharCode(...times(length, () => 97 + Math.floor(draw() * 26)));
}

/** With KVROUTE_FULL_FAULTS=1 the tests that are scaled down run at their full size. */
export const isFull = process.env.KVROUTE_FULL_FAULTS === '1';

/** Every routing key in the usual header. */
export function keyed(key: string): RouteRequest {
  return { headers: { 'x-smg-routing-key': key } };
}
