/** The calls of the router's public methods, described as plain data. */
import { fc } from '../support/property.js';
import { type Call, hostileRecord, mostly } from './hostile.js';
import {
  beginOptions,
  id,
  kvEvent,
  model,
  outcome,
  piece,
  placement,
  report,
  request,
  retry,
  status,
  workerSpec,
} from './inputs.js';

/** Any call, with sound arguments most of the time. */
export const anyCall: fc.Arbitrary<Call> = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('addWorker'), workerSpec) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('replaceWorker'), workerSpec) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('reconcile'), mostly(fc.array(workerSpec, { maxLength: 3 }), 9)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('removeWorker'), mostly(id)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('setStatus'), mostly(id), mostly(status)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('recordProbe'), mostly(id), mostly(fc.boolean())) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('recordOutcome'), mostly(id), outcome, mostly(fc.constant(undefined))) },
  { weight: 9, arbitrary: fc.tuple(fc.constant('selectWorker'), request) },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.constant('selectWorker'), request, mostly(fc.array(mostly(id), { maxLength: 3 }))),
  },
  { weight: 6, arbitrary: fc.tuple(fc.constant('acquire'), request, beginOptions) },
  {
    weight: 3,
    arbitrary: fc.tuple(
      fc.constant('begin'),
      mostly(id),
      hostileRecord({
        model,
        leg: fc.constantFrom('single', 'decode'),
        routingKey: fc.constantFrom('k1', 'k2'),
        signal: fc.constantFrom({ $: 'live' }, { $: 'aborted' }),
        scope: fc.constantFrom({ $: 'scope' }, 'request-1'),
      }),
    ),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant('selectLegs'), request, hostileRecord({ media: fc.constant(['a']) })) },
  {
    weight: 2,
    arbitrary: fc.tuple(
      fc.constant('route'),
      request,
      mostly(fc.constantFrom({ $: 'answers' }, { $: 'fails' }, { $: 'follows' })),
      hostileRecord({
        signal: fc.constantFrom({ $: 'live' }, { $: 'aborted' }),
        candidates: fc.array(mostly(id), { maxLength: 3 }),
        retry,
        sleep: fc.constant({ $: 'sleeps' }),
        outcomeOf: fc.constant({ $: 'judges' }),
        outcomeOfError: fc.constant({ $: 'judges' }),
      }),
    ),
  },
  { weight: 3, arbitrary: fc.tuple(fc.constant('explain'), request, mostly(fc.array(mostly(id), { maxLength: 3 }))) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('rank'), request, hostileRecord({ limit: fc.constantFrom(0, 1, 9) })) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('reportLoad'), mostly(id), report) },
  {
    weight: 3,
    arbitrary: fc.tuple(
      fc.constant('reportLoads'),
      mostly(fc.array(mostly(fc.tuple(mostly(id, 9), report), 9), { maxLength: 3 }), 9),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(
      fc.constant('kvApply'),
      mostly(id),
      hostileRecord({ sequence: fc.nat(3), events: fc.array(kvEvent, { maxLength: 2 }) }),
    ),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constant('kvReset'), mostly(id)) },
  { weight: 1, arbitrary: fc.constant(['restoreOwn'] as const) },
  {
    weight: 2,
    arbitrary: fc.tuple(
      fc.constant('restore'),
      hostileRecord({ version: fc.constantFrom(1, 1, 1, 2), pieces: fc.array(piece, { maxLength: 2 }) }),
    ),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant('restorePiece'), piece) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('applyPlacement'), placement) },
  {
    weight: 2,
    arbitrary: fc.tuple(
      fc.constant('reconfigure'),
      hostileRecord({
        policy: fc.constantFrom('cache_aware', 'manual', 'least_load', 'consistent_hashing', 'round_robin'),
        routingKeyOverride: fc.boolean(),
        maxIdleMs: fc.constant(0),
        workerOverloadTokenUsage: fc.constant(0.9),
        retry,
        circuitBreaker: hostileRecord({ failureThreshold: fc.constantFrom(1, 3) }),
      }),
    ),
  },
  { weight: 3, arbitrary: fc.tuple(fc.constant('end'), fc.nat(9), outcome) },
  {
    weight: 3,
    arbitrary: fc.tuple(
      fc.constant('follow'),
      fc.nat(9),
      mostly(fc.constantFrom(null, undefined, { $: 'stream' })),
      outcome,
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(
      fc.constantFrom('on', 'once', 'off'),
      mostly(fc.constantFrom('selected', 'leaseEnded', 'warning')),
      mostly(fc.constantFrom({ $: 'throws' }, { $: 'throws' })),
    ),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constant('worker'), mostly(id)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('workers'), hostileRecord({ model, status })) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('pollGroups'), hostileRecord({ engineMetrics: fc.boolean() })) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('advance'), fc.constantFrom(0, 10, 1000, 6000)) },
);
