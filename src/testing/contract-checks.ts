/**
 * The checks behind the contract of policies, one function a promise: each throws an `Error` that says what it saw when
 * the promise is broken.
 */
import type { StandalonePolicy, StandaloneSelection } from '../policies/standalone.js';
import type { RouteRequest } from '../request.js';
import type { Candidate } from '../workers/candidate.js';
import { hostileRequests, requests } from './contract-requests.js';

/** Makes a policy of a seed, 1 when none is given. */
type Fresh = (seed?: number) => StandalonePolicy;

const fleet = (...ids: readonly string[]): Candidate[] => ids.map((id) => ({ id, inFlight: 0 }));

/** No candidate, nothing selected, and no exception (LB-11). */
export function nobody(policy: StandalonePolicy): void {
  for (const request of requests) {
    const selection = policy.selectWorker(request, []);
    check(!selection.ok, `selected ${chosen(selection)} from an empty list`);
    if (!selection.ok) check(selection.reason === 'no_available_workers', `reason ${selection.reason}`);
    check(!policy.explain(request, []).selection.ok, 'explained a selection from an empty list');
  }
}

/** What is selected is one of the literals given (LB-10a). */
export function onlyCandidates(policy: StandalonePolicy): void {
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

/** The only candidate is selected, whatever the request (PO-1). */
export function single(policy: StandalonePolicy): void {
  for (const [i, request] of requests.entries()) {
    check(chosen(policy.selectWorker(request, fleet('only'))) === 'only', `not selected for request ${i}`);
  }
}

/** Two policies of one seed decide alike (LB-3). */
export function deterministic(fresh: Fresh): void {
  const first = picks(fresh(7), requests);
  const second = picks(fresh(7), requests);
  check(first === second, `${first} and then ${second}`);
}

/** Of two policies of one seed only one is asked to explain; both decide alike, and within what was explained (LB-12). */
export function explains(fresh: Fresh): void {
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

/** Excluded workers are never selected, and the count of them is told (LB-14a). */
export function excludes(policy: StandalonePolicy): void {
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

/** Of two policies of one seed only one is attacked; what it accepts both decide, and both go on alike (LB-42). */
export function hostile(fresh: Fresh): void {
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

/** Lists that are none, ids twice or missing, counts below zero: refused by field, before anything changed (LB-42). */
export function badCandidates(fresh: Fresh): void {
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

/** `__proto__` and the like are ids as any other (LB-31, B91). */
export function builtInIds(policy: StandalonePolicy): void {
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

/** A worker that was forgotten is not selected any more, and may come back (LB-30). */
export function forgets(policy: StandalonePolicy): void {
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

/** Neither prompts nor keys show in records and explanations (LB-13, OB-93). */
export function keepsSecrets(policy: StandalonePolicy): void {
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

/** Ten thousand candidates (PO-6). */
export function large(policy: StandalonePolicy): void {
  const candidates = Array.from({ length: 10_000 }, (_, i) => ({ id: `worker-${i}`, inFlight: i % 5 }));
  for (const request of requests) {
    const selection = policy.selectWorker(request, candidates);
    check(selection.ok && candidates.includes(selection.worker), `selected ${chosen(selection)}`);
  }
}

/** A request that says nothing may go to anybody. */
export function everybody(fresh: Fresh): void {
  const seen = new Set<string>();
  for (let seed = 0; seed < 300; seed++) seen.add(chosen(fresh(seed).selectWorker({}, fleet('a', 'b', 'c'))));
  check(list([...seen].sort()) === 'a, b, c', `reached ${list([...seen])}`);
}

/** A hopeless queue is left alone (LR-26). */
export function avoidsQueue(fresh: Fresh): void {
  const candidates: Candidate[] = [
    { id: 'queue', inFlight: 0, report: { waitingTokens: 10_000_000, tokensPerSecond: 100, kvCacheUsage: 0.9 } },
    { id: 'idle', inFlight: 0, report: { waitingTokens: 0, tokensPerSecond: 100, kvCacheUsage: 0.1 } },
  ];
  for (let seed = 0; seed < 50; seed++) {
    const selected = chosen(fresh(seed).selectWorker({ text: `prompt ${seed}` }, candidates));
    check(selected === 'idle', `selected ${selected}`);
  }
}

/** A routing key stays at its worker, and at one other while that is away (CH-8, MA-5). */
export function keepsKey(policy: StandalonePolicy): void {
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

/** A prompt stays at its worker (B15). */
export function keepsPrompt(policy: StandalonePolicy): void {
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
