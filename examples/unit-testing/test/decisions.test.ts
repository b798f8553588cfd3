/** Decisions of the built-in policies, pinned down: no server, no engine, no waiting. */
import { cacheAware, createRouter, leastLoad, roundRobin } from 'kvroute';
import { distribution, fakeFleet, fakeReport, manualClock, recordDecisions, scriptedRandom } from 'kvroute/testing';
import { expect, it } from 'vitest';
import './matchers.js';

it('five lines pin down a decision', () => {
  const policy = leastLoad();
  const busy = { id: 'busy', inFlight: 3, report: fakeReport({ waitingTokens: 8000 }) };
  const idle = { id: 'idle', inFlight: 3, report: fakeReport() };
  expect(policy.selectWorker({ text: 'Hello' }, [busy, idle])).toSelect('idle');
  expect(policy.explain({ text: 'Hello' }, [busy, idle]).policy.runnerUp).toBe('busy');
});

it('ties are broken evenly: everybody in the tie can win, and nobody else', () => {
  const fleet = fakeFleet(4, (index) => ({ report: fakeReport({ waitingTokens: index === 3 ? 8000 : 0 }) }));
  const wins = distribution(leastLoad, {}, fleet, { seeds: 300 });
  expect(wins).toReach(['w1', 'w2', 'w3']);
  for (const id of ['w1', 'w2', 'w3']) expect(wins.counts.get(id)).toBeGreaterThan(70);
});

it('chance can be written out', () => {
  const policy = leastLoad({ random: scriptedRandom([0.999, 0]) });
  expect(policy.selectWorker({}, fakeFleet(3))).toSelect('w3');
  expect(policy.selectWorker({}, fakeFleet(3))).toSelect('w1');
});

it('a prompt goes back to the worker that has it cached', () => {
  const policy = cacheAware({ seed: 1 });
  const first = policy.selectWorker({ text: 'You are a helpful assistant. Hi!' }, fakeFleet(3));
  const again = policy.selectWorker({ text: 'You are a helpful assistant. Hello!' }, fakeFleet(3));
  expect(again).toHaveBranch('tree_match');
  expect(again.ok && again.worker.id).toBe(first.ok && first.worker.id);
});

it('a worker whose breaker is open is left alone until its time is up', async () => {
  const { clock, advance } = manualClock();
  const router = await createRouter({ clock, policy: 'round_robin', circuitBreaker: { failureThreshold: 1 } });
  router.addWorker({ id: 'w1' });
  router.recordOutcome('w1', { status: 500 });
  expect(router.selectWorker({})).toSelectNobody('no_available_workers');
  advance(60_000);
  expect(router.selectWorker({})).toSelect('w1');
});

it('what a router did fits in a snapshot', async () => {
  const router = await createRouter({ seed: 1, policy: 'round_robin' });
  const recorder = recordDecisions(router);
  router.addWorker({ id: 'w1' });
  const acquired = router.acquire({ model: 'llama' });
  if (acquired.ok) acquired.lease.end({ status: 200 });
  expect(recorder.text).toMatchInlineSnapshot(`
    "select w1 round_robin inFlight=0
    begin w1 inFlight=1
    end w1 inFlight=0 by=ended status=200
    "
  `);
});

it('round robin takes turns', () => {
  const policy = roundRobin();
  const turns = Array.from({ length: 4 }, () => policy.selectWorker({}, fakeFleet(2)));
  expect(turns.map((selection) => selection.ok && selection.worker.id)).toEqual(['w1', 'w2', 'w1', 'w2']);
});
