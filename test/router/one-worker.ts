/** A router with the worker `a`, and what the tests of leases ask of it. */
import { createRouter, type Router } from 'kvroute';

export async function oneWorker(options = {}): Promise<Router> {
  const router = await createRouter({ policy: 'random', seed: 1, ...options });
  router.addWorker({ id: 'a' });
  return router;
}

export const inFlight = (router: Router): number | undefined => router.worker('a')?.inFlight;
