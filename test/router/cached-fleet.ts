/** A router that learns prefixes, and what the tests of learned state ask of it. */
import { createRouter, type Router } from 'kvroute';

export async function fleet(ids: string[], options = {}): Promise<Router> {
  const router = await createRouter({ policy: 'cache_aware', seed: 1, ...options });
  for (const id of ids) router.addWorker({ id, models: ['m'] });
  return router;
}

export function pick(router: Router, request = {}): string {
  const selection = router.selectWorker({ model: 'm', ...request });
  return selection.ok ? selection.worker.id : selection.reason;
}

/** A prompt of its own for each number. */
export const prompt = (i: number): string => `conversation ${i}: ${'lorem ipsum '.repeat(4)}`;
