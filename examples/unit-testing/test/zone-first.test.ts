/** The policy of this example: its own rules, the contract every policy keeps, and a router that runs it. */
import { createRouter, standalone } from 'kvroute';
import { type ContractRuntime, distribution, policyContract } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { createZoneFirst } from '../zone-first.js';
import './matchers.js';

const zoneFirst = (runtime: ContractRuntime) => standalone(createZoneFirst(), runtime);
const fleet = [
  { id: 'eu/1', inFlight: 2 },
  { id: 'eu/2', inFlight: 2 },
  { id: 'eu/3', inFlight: 5 },
  { id: 'us/1', inFlight: 0 },
];

it('keeps a request in its zone, with the least busy there', () => {
  expect(distribution(zoneFirst, { headers: { 'x-zone': 'eu' } }, fleet)).toReach(['eu/1', 'eu/2']);
});

it('takes the least busy of all when the zone has nobody', () => {
  const selection = zoneFirst({ seed: 1, clock: () => 0 }).selectWorker({ headers: { 'x-zone': 'asia' } }, fleet);
  expect(selection).toSelect('us/1');
  expect(selection).toHaveBranch('zone_miss');
});

describe('keeps the contract of policies', () => {
  for (const { name, run } of policyContract(zoneFirst, { reachesAll: true })) it(name, run);
});

it('runs in a router', async () => {
  const router = await createRouter({ policy: createZoneFirst });
  router.addWorker({ id: 'eu/1' });
  router.addWorker({ id: 'us/1' });
  expect(router.selectWorker({ headers: { 'X-Zone': 'us' } })).toSelect('us/1');
  router.setStatus('us/1', 'not_ready');
  expect(router.selectWorker({ headers: { 'X-Zone': 'us' } })).toSelect('eu/1');
});
