/** The routers that the soak puts under traffic: every policy through its own, and pools that worker labels make. */
import type { PolicyName, RouterOptions, WorkerSpec } from 'kvroute';
import type { TrafficPlan } from '../support/traffic.js';
import type { Bounds } from './audit.js';

/** Small, so that all of them are reached soon and stay reached. */
export const bounds: Bounds = { maxTreeSize: 25_000, maxPins: 800 };

export interface Subject {
  readonly name: string;
  readonly options: RouterOptions;
  readonly traffic: Omit<TrafficPlan, 'seed' | 'workers'>;
}

/** How long a lease whose owner forgot it stays open. */
export const maxLeaseAgeMs = 120_000;

const common = { maxLeaseAgeMs, maxPins: bounds.maxPins, evictionIntervalMs: 30_000, maxIdleMs: 600_000 } as const;
const { maxTreeSize } = bounds;

const ofModel =
  (model: string) =>
  (place: number): WorkerSpec & { readonly id: string } => ({
    id: `http://10.0.${place >> 8}.${place & 255}:8000`,
    models: [model],
  });

const labelled: readonly PolicyName[] = [
  'cache_aware',
  'least_load',
  'power_of_two',
  'consistent_hashing',
  'bucket',
  'prefix_hash',
  'manual',
  'round_robin',
  'random',
  'passthrough',
];

export const subjects: readonly Subject[] = [
  { name: 'random', options: { policy: 'random' }, traffic: plan('none') },
  { name: 'passthrough', options: { policy: 'passthrough' }, traffic: plan('none') },
  {
    name: 'round_robin',
    options: { policy: 'round_robin', routingKeyOverride: true },
    traffic: { ...plan('none'), narrowed: 0.3 },
  },
  { name: 'least_load', options: { policy: { name: 'least_load', maxWaitingRequests: 12 } }, traffic: plan('tokens') },
  {
    name: 'power_of_two',
    options: { policy: 'power_of_two', workerOverloadProtection: true },
    traffic: plan('tokens'),
  },
  {
    name: 'consistent_hashing',
    options: { policy: 'consistent_hashing', routingKeyOverride: true },
    traffic: { ...plan('none'), keyed: 0.8 },
  },
  { name: 'prefix_hash', options: { policy: 'prefix_hash' }, traffic: plan('both') },
  { name: 'bucket', options: { policy: { name: 'bucket', legs: 'any' } }, traffic: plan('both') },
  {
    name: 'manual',
    options: { policy: { name: 'manual', assignmentMode: 'min_group' } },
    traffic: { ...plan('none'), keyed: 0.9 },
  },
  {
    name: 'cache_aware: text',
    options: { policy: { name: 'cache_aware', maxTreeSize }, routingKeyOverride: true, assignmentMode: 'min_load' },
    traffic: plan('text'),
  },
  {
    name: 'cache_aware: tokens, softmax',
    options: {
      policy: {
        name: 'cache_aware',
        maxTreeSize,
        overlapDecay: 0.5,
        selectionTemperature: 0.3,
        balanceAbsThreshold: 4,
      },
    },
    traffic: plan('both'),
  },
  {
    name: 'cache_aware: hash index',
    options: {
      policy: {
        name: 'cache_aware',
        cacheIndex: 'hash',
        cacheBoundaries: [32, 128, 256],
        maxTreeSize,
        evictionIntervalMs: 10_000,
      },
    },
    traffic: plan('tokens'),
  },
  {
    name: 'cache_aware: KV events',
    options: { policy: { name: 'cache_aware', maxTreeSize, kvIndexerMaxEntries: 4000, kvIndexerTtlMs: 300_000 } },
    traffic: { ...plan('tokens'), kvEvents: true },
  },
  {
    name: 'pools by worker labels',
    options: {
      policy: { name: 'cache_aware', maxTreeSize },
      routingKeyOverride: true,
      policyOptions: { bucket: { legs: 'any' } },
    },
    traffic: {
      ...plan('both'),
      models: labelled,
      // Every fourth worker serves a second model, and some none that has a name.
      spec: (place) => {
        const model = labelled[place % labelled.length] as PolicyName;
        const other = labelled[(place + 3) % labelled.length] as PolicyName;
        const models = place % 11 === 10 ? [] : place % 4 === 0 ? [model, other] : [model];
        return { id: `http://10.0.0.${place}:8000`, models, labels: { policy: model } };
      },
    },
  },
];

/** One policy each, for fleets of thousands. */
export const wideSubjects: readonly Subject[] = subjects.filter(({ name }) => name !== 'pools by worker labels');

export function optionsOf(subject: Subject, seed: number): RouterOptions {
  return { ...common, seed, ...subject.options };
}

function plan(prompts: TrafficPlan['prompts']): Subject['traffic'] {
  return { prompts, spec: ofModel('m') };
}
