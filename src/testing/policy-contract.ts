/**
 * What every policy promises, whatever it decides by: a list of cases for any test framework. A policy of your own passes
 * them before it is trusted with traffic:
 *
 *     const make = (runtime: ContractRuntime) => standalone(createZoneFirst(), runtime);
 *     for (const { name, run } of policyContract(make, { reachesAll: true })) it(name, run);
 *
 * A case makes fresh policies, is synchronous, takes below a second, and throws an `Error` that says what it saw. What
 * only some policies promise is declared as a capability; a promise that is not declared is not checked.
 */
import { checkOptions, refuse } from '../errors.js';
import type { StandalonePolicy, StandaloneSelection } from '../policies/standalone.js';
import type { RouteRequest } from '../request.js';
import type { Candidate } from '../workers/candidate.js';

/** What a case asks of the policy it makes: the runtime options that decide everything else about it (LB-3). */
export interface ContractRuntime {
  /** Of the built-in generator. */
  readonly seed: number;
  /** Stands still within a case. */
  readonly clock: () => number;
}

/** Promises of some policies only. */
export interface PolicyCapabilities {
  /** A request that says nothing may go to any worker of an idle fleet. */
  readonly reachesAll?: boolean | undefined;
  /** A worker with a hopeless queue is left alone while another one is idle. */
  readonly loadAware?: boolean | undefined;
  /** Requests with one routing key stay together, and stay together elsewhere while their worker is away. */
  readonly keepsKeys?: boolean | undefined;
  /** Requests with one prompt stay together in an idle fleet. */
  readonly keepsPrompts?: boolean | undefined;
}

/** One promise, as a test. */
export interface ContractCase {
  /** Cites the statement. */
  readonly name: string;
  /**
   * Checks the promise.
   *
   * @throws Error saying what it saw, when the promise is broken
   */
  run(): void;
}

/**
 * The contract as cases.
 *
 * @param make a fresh policy each time; it passes `seed` and `clock` on, as `leastLoad` itself and `standalone` do
 * @param capabilities what this policy promises beyond the contract; default nothing
 * @throws TypeError naming the argument of the wrong type
 */
export function policyContract(
  make: (runtime: ContractRuntime) => StandalonePolicy,
  capabilities: PolicyCapabilities = {},
): readonly ContractCase[] {
  if (typeof make !== 'function') throw refuse('make', 'a function', make);
  const { reachesAll, loadAware, keepsKeys, keepsPrompts } = checkOptions(capabilities, 'capabilities');
  const fresh = (seed = 1): StandalonePolicy => make({ seed, clock: () => 0 });
  const cases: ContractCase[] = [
    { name: 'LB-11: no candidate, nothing selected, and no exception', run: () => nobody(fresh()) },
    { name: 'LB-10a: selects one of the literals it was given', run: () => onlyCandidates(fresh()) },
    { name: 'PO-1: a single candidate is selected', run: () => single(fresh()) },
    { name: 'LB-3: the same seed and calls give the same decisions', run: () => deterministic(fresh) },
    { name: 'LB-12: explain changes nothing and foretells the decision', run: () => explains(fresh) },
    { name: 'LB-14a: excluded workers are never selected', run: () => excludes(fresh()) },
    { name: 'LB-42: hostile requests are read as absent or refused at once', run: () => hostile(fresh) },
    { name: 'LB-42: bad candidates are refused before anything changed', run: () => badCandidates(fresh) },
    { name: 'LB-31, B91: ids of object built-ins are ordinary ids', run: () => builtInIds(fresh()) },
    { name: 'LB-30: a forgotten worker is gone, and welcome again', run: () => forgets(fresh()) },
    {
      name: 'LB-13, OB-93: neither prompts nor keys show in records and explanations',
      run: () => keepsSecrets(fresh()),
    },
    { name: 'PO-6: 10 000 candidates', run: () => large(fresh()) },
  ];
  if (reachesAll) cases.push({ name: 'reaches every worker of an idle fleet', run: () => everybody(fresh) });
  if (loadAware) cases.push({ name: 'LR-26: avoids a hopeless queue', run: () => avoidsQueue(fresh) });
  if (keepsKeys) cases.push({ name: 'CH-8, MA-5: keeps a routing key at its worker', run: () => keepsKey(fresh()) });
  if (keepsPrompts) cases.push({ name: 'B15: keeps a prompt at its worker', run: () => keepsPrompt(fresh()) });
  return cases;
}

const fleet = (...ids: readonly string[]): Candidate[] => ids.map((id) => ({ id, inFlight: 0 }));

/** Requests of every sort that policies read. */
const requests: readonly RouteRequest[] = [
  {},
  { text: '' },
  { text: 'You are a helpful assistant. Summarize the following text.' },
  { text: 'You are a helpful assistant. 你好😀' },
  { tokens: [] },
  { tokens: Uint32Array.from({ length: 40 }, (_, i) => i) },
  { tokens: [1, 2, 3], text: 'abc' },
  { headers: { 'X-SMG-Routing-Key': 'session-a' } },
  { headers: { 'x-smg-routing-key': ['', 'session-b'] }, text: 'abc' },
  { headers: { authorization: 'Bearer secret' } },
  { headers: { 'x-smg-routing-tokens': '1,2,3' } },
  { rid: 'conversation_t3' },
  { model: 'm', leg: 'decode', text: 'abc', routingKey: 'session-c' },
  { namespace: { cacheSalt: 's' }, text: 'abc' },
];

function nobody(policy: StandalonePolicy): void {
  for (const request of requests) {
    const selection = policy.selectWorker(request, []);
    check(!selection.ok, `selected ${chosen(selection)} from an empty list`);
    if (!selection.ok) check(selection.reason === 'no_available_workers', `reason ${selection.reason}`);
    check(!policy.explain(request, []).selection.ok, 'explained a selection from an empty list');
  }
}

function onlyCandidates(policy: StandalonePolicy): void {
  const all = fleet('a', 'b', 'c', 'd', 'e');
  for (let round = 0; round < 8; round++) {
    for (const [i, request] of requests.entries()) {
      const candidates = all.filter((_, at) => (at + i + round) % 3 !== 0).map((literal) => ({ ...literal }));
      const selection = policy.selectWorker(request, candidates);
      check(selection.ok, `nothing selected for request ${i}`);
      check(
        candidates.includes((selection as { worker: Candidate }).worker),
        `not one of the literals: ${chosen(selection)}`,
      );
    }
  }
}

function single(policy: StandalonePolicy): void {
  for (const [i, request] of requests.entries()) {
    check(chosen(policy.selectWorker(request, fleet('only'))) === 'only', `not selected for request ${i}`);
  }
}

function deterministic(fresh: (seed?: number) => StandalonePolicy): void {
  const first = picks(fresh(7), requests);
  const second = picks(fresh(7), requests);
  check(first === second, `${first} and then ${second}`);
}

function explains(fresh: (seed?: number) => StandalonePolicy): void {
  const candidates = fleet('a', 'b', 'c');
  const [asked, unasked] = [fresh(3), fresh(3)];
  for (let round = 0; round < 4; round++) {
    for (const [i, request] of requests.entries()) {
      const before = asked.explain(request, candidates);
      const again = asked.explain(request, candidates);
      check(list(before.policy.tieSet) === list(again.policy.tieSet), `two tie sets for request ${i}`);
      const selected = chosen(asked.selectWorker(request, candidates));
      const tieSet = before.policy.tieSet ?? [selected];
      check(tieSet.includes(selected), `selected ${selected}, explained ${list(tieSet)}`);
      const other = chosen(unasked.selectWorker(request, candidates));
      check(selected === other, `request ${i}: ${selected} after explain, ${other} without`);
    }
  }
}

function excludes(policy: StandalonePolicy): void {
  const candidates = fleet('a', 'b', 'c');
  for (let round = 0; round < 20; round++) {
    for (const request of requests) {
      const selected = chosen(policy.selectWorker({ ...request, exclude: ['b', 'nobody'] }, candidates));
      check(selected === 'a' || selected === 'c', `selected ${selected} although b was excluded`);
    }
  }
  const selection = policy.selectWorker({ exclude: ['a', 'b', 'c'] }, candidates);
  check(!selection.ok && selection.excluded === 3, 'everybody was excluded');
}

/** Request data as it may arrive. */
const hostileRequests: readonly unknown[] = [
  null,
  'text',
  { text: 5 },
  { text: '\ud800' },
  { text: '__proto__', routingKey: '__proto__', rid: 'constructor' },
  { tokens: 'abc' },
  { tokens: [1.5, -1, Number.NaN] },
  { tokens: [2 ** 33] },
  { tokens: { length: 3 } },
  { headers: 'x' },
  { headers: { 'x-smg-routing-key': 7, 'x-smg-routing-tokens': '1,,2', 'x-smg-target-worker': {} } },
  { headers: { 'x-smg-routing-key': 'k'.repeat(100_000), 'x-smg-routing-tokens': '9'.repeat(5000) } },
  {
    headers: () => {
      throw new Error('unreadable');
    },
  },
  { headers: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`x-${i}`, 'v'])) },
  { rid: 9 },
  { rid: ['conversation_t1', 4] },
  { rid: 'k'.repeat(100_000) },
  { model: {} },
  { leg: 'middle' },
  { routingKey: 1 },
  { namespace: 4 },
  { namespace: { cacheSalt: 5 } },
  { exclude: 'a' },
  { exclude: [null, 3, {}] },
  { text: 'x'.repeat(5_000_000) },
];

function hostile(fresh: (seed?: number) => StandalonePolicy): void {
  const [attacked, spared] = [fresh(5), fresh(5)];
  const candidates = fleet('a', 'b', 'c');
  attacked.selectWorker({}, candidates);
  spared.selectWorker({}, candidates);
  for (const [i, request] of hostileRequests.entries()) {
    const refusal = refusalOf(() => attacked.selectWorker(request as RouteRequest, candidates));
    const other = refusalOf(() => spared.explain(request as RouteRequest, candidates));
    check(refusal === undefined || refusal instanceof TypeError, `hostile request ${i}: ${String(refusal)}`);
    check((refusal === undefined) === (other === undefined), `hostile request ${i}: select and explain disagree`);
    // What was accepted is decided by both, so that what was refused is the only difference.
    if (refusal === undefined) spared.selectWorker(request as RouteRequest, candidates);
  }
  const [after, before] = [picks(attacked, requests), picks(spared, requests)];
  check(after === before, `a refused request changed what follows: ${after}, not ${before}`);
  check(Object.keys(Object.prototype).length === 0, 'Object.prototype was changed');
}

function badCandidates(fresh: (seed?: number) => StandalonePolicy): void {
  const bad: readonly (readonly [string, unknown])[] = [
    ['candidates', 'ab'],
    ['candidates[0]', [null]],
    ['candidates[1].id', [{ id: 'a', inFlight: 0 }, { inFlight: 0 }]],
    ['candidates[1].id', fleet('a', 'a')],
    ['candidates[0].inFlight', [{ id: 'x', inFlight: -1 }]],
    ['candidates[1].inFlight', [{ id: 'x', inFlight: 0 }, { id: 'y' }]],
  ];
  const [attacked, spared] = [fresh(5), fresh(5)];
  for (const [field, candidates] of bad) {
    const refusal = refusalOf(() => attacked.selectWorker({}, candidates as Candidate[]));
    check(refusal instanceof TypeError && refusal.message.startsWith(`${field}:`), `${field}: ${String(refusal)}`);
  }
  check(picks(attacked, requests) === picks(spared, requests), 'a refused list changed what follows');
}

function builtInIds(policy: StandalonePolicy): void {
  const candidates = fleet('__proto__', 'constructor', 'toString');
  const ids = new Set(candidates.map(({ id }) => id));
  for (let round = 0; round < 10; round++) {
    for (const request of [...requests, { text: '__proto__' }, { routingKey: '__proto__' }, { rid: 'toString' }]) {
      const selected = chosen(policy.selectWorker(request, candidates));
      check(ids.has(selected), `selected ${selected}`);
    }
  }
  for (const { id } of candidates) policy.forget(id);
  check(ids.has(chosen(policy.selectWorker({}, candidates))), 'nobody after forgetting everybody');
  check(Object.keys(Object.prototype).length === 0, 'Object.prototype was changed');
}

function forgets(policy: StandalonePolicy): void {
  const [kept, gone] = [fleet('a', 'b'), fleet('gone')];
  for (const request of requests) policy.selectWorker(request, [...kept, ...gone]);
  for (const request of requests) policy.selectWorker(request, gone);
  policy.forget('gone');
  policy.forget('gone');
  policy.forget('never seen');
  for (let round = 0; round < 10; round++) {
    for (const request of requests) {
      const selected = chosen(policy.selectWorker(request, kept));
      check(selected === 'a' || selected === 'b', `selected ${selected} after it was forgotten`);
    }
    policy.maintain();
  }
  check(chosen(policy.selectWorker({}, gone)) === 'gone', 'not selected after it came back');
}

function keepsSecrets(policy: StandalonePolicy): void {
  const secret = 'aSecretNobodyMayRead';
  const spoken: readonly RouteRequest[] = [
    { text: secret },
    { routingKey: secret },
    { rid: secret },
    { headers: { 'x-smg-routing-key': secret, authorization: secret, cookie: secret } },
    { namespace: { cacheSalt: secret }, text: secret },
  ];
  for (const request of [...spoken, ...spoken]) {
    const { record } = policy.selectWorker(request, fleet('a', 'b'));
    const told = JSON.stringify([record, policy.explain(request, fleet('a', 'b'))]);
    check(!told.includes(secret), `told a secret: ${told}`);
    check(record.policy === policy.name && record.leg === 'single', `record of another policy: ${told}`);
  }
}

function large(policy: StandalonePolicy): void {
  const candidates = Array.from({ length: 10_000 }, (_, i) => ({ id: `worker-${i}`, inFlight: i % 5 }));
  for (const request of requests) {
    const selection = policy.selectWorker(request, candidates);
    check(selection.ok && candidates.includes(selection.worker), `selected ${chosen(selection)}`);
  }
}

function everybody(fresh: (seed?: number) => StandalonePolicy): void {
  const seen = new Set<string>();
  for (let seed = 0; seed < 300; seed++) seen.add(chosen(fresh(seed).selectWorker({}, fleet('a', 'b', 'c'))));
  check(list([...seen].sort()) === 'a, b, c', `reached ${list([...seen])}`);
}

function avoidsQueue(fresh: (seed?: number) => StandalonePolicy): void {
  const candidates: Candidate[] = [
    { id: 'queue', inFlight: 0, report: { waitingTokens: 10_000_000, tokensPerSecond: 100, kvCacheUsage: 0.9 } },
    { id: 'idle', inFlight: 0, report: { waitingTokens: 0, tokensPerSecond: 100, kvCacheUsage: 0.1 } },
  ];
  for (let seed = 0; seed < 50; seed++) {
    const selected = chosen(fresh(seed).selectWorker({ text: `prompt ${seed}` }, candidates));
    check(selected === 'idle', `selected ${selected}`);
  }
}

function keepsKey(policy: StandalonePolicy): void {
  const keyed: RouteRequest = { headers: { 'x-smg-routing-key': 'session-a' } };
  const first = chosen(policy.selectWorker(keyed, fleet('a', 'b', 'c')));
  for (let i = 0; i < 30; i++) {
    policy.selectWorker({ headers: { 'x-smg-routing-key': `other-${i}` } }, fleet('a', 'b', 'c'));
    const selected = chosen(policy.selectWorker(keyed, fleet('a', 'b', 'c')));
    check(selected === first, `went from ${first} to ${selected}`);
  }
  const others = fleet('a', 'b', 'c').filter(({ id }) => id !== first);
  const second = chosen(policy.selectWorker(keyed, others));
  for (let i = 0; i < 10; i++) {
    const selected = chosen(policy.selectWorker(keyed, others));
    check(selected === second, `without ${first}: went from ${second} to ${selected}`);
  }
}

function keepsPrompt(policy: StandalonePolicy): void {
  const spoken: RouteRequest = { text: 'Summarize the following conversation for a new colleague. '.repeat(4) };
  const first = chosen(policy.selectWorker(spoken, fleet('a', 'b', 'c')));
  for (let i = 0; i < 30; i++) {
    policy.selectWorker({ text: `${i} is another prompt altogether` }, fleet('a', 'b', 'c'));
    const selected = chosen(policy.selectWorker(spoken, fleet('a', 'b', 'c')));
    check(selected === first, `went from ${first} to ${selected}`);
  }
}

/** The ids selected for each request, as one comparable text. */
function picks(policy: StandalonePolicy, wanted: readonly RouteRequest[]): string {
  const candidates = fleet('a', 'b', 'c');
  return list([...wanted, ...wanted].map((request) => chosen(policy.selectWorker(request, candidates))));
}

function chosen(selection: StandaloneSelection<Candidate>): string {
  return selection.ok ? selection.worker.id : `nobody (${selection.reason})`;
}

function list(ids: readonly string[] | undefined): string {
  return ids === undefined ? 'none' : ids.join(', ');
}

function refusalOf(call: () => unknown): unknown {
  try {
    call();
    return undefined;
  } catch (error) {
    return error;
  }
}

function check(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}
