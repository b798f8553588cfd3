import { createRouter, leastLoad } from 'kvroute';
import {
  type Distribution,
  distribution,
  fakeFleet,
  fakeReport,
  type KvrouteMatchers,
  kvrouteMatchers,
} from 'kvroute/testing';
import { describe, expect, it } from 'vitest';

declare module 'vitest' {
  // biome-ignore lint/suspicious/noExplicitAny: vitest declares it so, and both declarations must agree
  interface Matchers<T = any> extends KvrouteMatchers<T> {}
}
expect.extend(kvrouteMatchers);

const busy = { id: 'busy', inFlight: 3, report: fakeReport({ waitingTokens: 4000 }) };
const idle = { id: 'idle', inFlight: 1, report: fakeReport() };
const selection = leastLoad().selectWorker({}, [busy, idle]);
const nobody = leastLoad().selectWorker({}, []);

describe('toSelect and toSelectOneOf', () => {
  it('pass for the selected worker', () => {
    expect(selection).toSelect('idle');
    expect(selection).not.toSelect('busy');
    expect(nobody).not.toSelect('idle');
    expect(selection).toSelectOneOf(['busy', 'idle']);
    expect(selection).not.toSelectOneOf(['busy']);
    expect(selection).not.toSelectOneOf([]);
    expect(nobody).not.toSelectOneOf(['idle']);
  });

  it('say who was selected instead, and why', () => {
    expect(() => expect(selection).toSelect('busy')).toThrow(
      'expected busy to be selected, got idle (least_load, expected wait 0 s, 1 in flight)',
    );
    expect(() => expect(selection).not.toSelect('idle')).toThrow(
      'expected anything but idle to be selected, got idle (least_load, expected wait 0 s, 1 in flight)',
    );
    expect(() => expect(nobody).toSelect('idle')).toThrow(
      'expected idle to be selected, got nobody: no_available_workers (least_load)',
    );
    expect(() => expect(nobody).toSelectOneOf(['a', 'b'])).toThrow(
      'expected one of a, b to be selected, got nobody: no_available_workers (least_load)',
    );
  });

  it('LB-11: take the results of a router, of acquire, and the selection of an explanation', async () => {
    const router = await createRouter({ policy: 'round_robin' });
    router.addWorker({ id: 'a' });
    expect(router.selectWorker({})).toSelect('a');
    expect(router.acquire({})).toSelect('a');
    expect(router.explain({}).selection).toSelect('a');
    expect(router.explain({ exclude: ['a'] }).selection).toSelectNobody('no_available_workers');
  });
});

describe('toSelectNobody', () => {
  it('passes when nobody was selected, for the reason when one is given', () => {
    expect(nobody).toSelectNobody();
    expect(nobody).toSelectNobody('no_available_workers');
    expect(nobody).not.toSelectNobody('waiting_cap');
    expect(selection).not.toSelectNobody();
  });

  it('says who was selected, or for which other reason nobody was', () => {
    expect(() => expect(selection).toSelectNobody()).toThrow(
      'expected nobody to be selected, got idle (least_load, expected wait 0 s, 1 in flight)',
    );
    expect(() => expect(nobody).toSelectNobody('overloaded')).toThrow(
      'expected nobody to be selected (overloaded), got nobody: no_available_workers (least_load)',
    );
  });
});

describe('toHaveBranch', () => {
  it('compares the branch of the record, also when nobody was selected', async () => {
    const router = await createRouter({ policy: 'prefix_hash' });
    expect(router.selectWorker({})).toHaveBranch('no_healthy_workers');
    router.addWorker({ id: 'a' });
    expect(router.selectWorker({ text: 'x' })).toHaveBranch('ring_hit');
    expect(router.selectWorker({ text: 'x' })).not.toHaveBranch('no_routing_key');
    expect(() => expect(router.selectWorker({ text: 'x' })).toHaveBranch('no_routing_key')).toThrow(
      'expected the branch no_routing_key, got a (prefix_hash, branch ring_hit, 0 in flight)',
    );
    expect(() => expect(selection).toHaveBranch('ring_hit')).toThrow(
      'expected the branch ring_hit, got idle (least_load, expected wait 0 s, 1 in flight)',
    );
  });
});

describe('toReach', () => {
  const even = distribution(leastLoad, {}, fakeFleet(2));

  it('passes for exactly the reachable workers, in any order', () => {
    expect(even).toReach(['w2', 'w1']);
    expect(even).not.toReach(['w1']);
    expect(even).not.toReach(['w1', 'w2', 'w3']);
    expect(distribution(leastLoad, {}, [], { seeds: 2 })).not.toReach([]);
  });

  it('says who is missing and who is too many', () => {
    expect(() => expect(even).toReach(['w1', 'w3'])).toThrow(
      'expected exactly w1, w3 to be reachable, got w1, w2 (never w3; also w2)',
    );
    expect(() => expect(even).not.toReach(['w1', 'w2'])).toThrow(
      'expected anything but exactly w1, w2 to be reachable, got w1, w2',
    );
    const partly: Distribution = { reachable: ['w1'], counts: new Map([['w1', 8]]), nobody: 2 };
    expect(() => expect(partly).toReach(['w1'])).toThrow(
      'expected exactly w1 to be reachable, got w1 (2 times nobody)',
    );
  });
});

describe('what is no result of a decision', () => {
  it('is a TypeError, so that not.toSelect cannot pass by accident', () => {
    const selectionError = new TypeError(
      'expected the result of selectWorker or acquire, or the selection of an explanation',
    );
    for (const value of [undefined, null, 'idle', {}, { ok: true }, { ok: true, worker: {}, record: {} }]) {
      expect(() => expect(value).not.toSelect('idle')).toThrow(selectionError);
      expect(() => expect(value).not.toSelectOneOf(['idle'])).toThrow(selectionError);
      expect(() => expect(value).not.toSelectNobody()).toThrow(selectionError);
      expect(() => expect(value).not.toHaveBranch('x')).toThrow(selectionError);
    }
    expect(() => expect({ ok: false, record: {} }).not.toSelectNobody('overloaded')).toThrow(selectionError);
    for (const value of [undefined, [], { reachable: ['a'] }, selection]) {
      expect(() => expect(value).not.toReach([])).toThrow(new TypeError('expected the result of distribution'));
    }
  });
});
