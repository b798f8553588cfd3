/**
 * A routing policy of one's own: a request stays in the zone it came from, with the worker that has the fewest requests
 * in flight there; when the zone has no worker, the whole fleet answers. Zones are the part of the worker id before `/`.
 */
import { type CandidateSet, Decision, type Policy, type RequestView, type WorkerSignals } from 'kvroute';

export function createZoneFirst(): Policy {
  return {
    name: 'zone_first',
    needs: {},
    decide(request, candidates, { random }) {
      const near = inZone(request, candidates);
      const best = leastBusy(near.length > 0 ? near : candidates.workers);
      return new Decision(best[Math.floor(random() * best.length)], near.length > 0 ? 'zone_hit' : 'zone_miss');
    },
    // Optional: what `explain` tells about a decision.
    describe(request, candidates) {
      const near = inZone(request, candidates);
      return { tieSet: leastBusy(near.length > 0 ? near : candidates.workers).map(({ id }) => id) };
    },
  };
}

function inZone(request: RequestView, { workers }: CandidateSet): readonly WorkerSignals[] {
  const zone = request.header('x-zone');
  return workers.filter(({ id }) => zone !== undefined && id.startsWith(`${zone}/`));
}

function leastBusy(workers: readonly WorkerSignals[]): readonly WorkerSignals[] {
  const least = Math.min(...workers.map(({ inFlight }) => inFlight));
  return workers.filter(({ inFlight }) => inFlight === least);
}
