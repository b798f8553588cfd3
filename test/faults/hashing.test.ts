/** Reported faults of hashing, rings and random choice: one test an id. */
import {
  consistentHashing,
  createRouter,
  loadHash,
  type PolicyConfig,
  powerOfTwo,
  prefixHash,
  type RandomSource,
  type Router,
  RoutingConfigError,
  random,
  type StandalonePolicy,
} from 'kvroute';
import { distribution, fakeCandidate, fakeFleet } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { goldenIds, goldenKeys } from '../hashing/golden-keys.js';
import golden from '../hashing/ring-golden.json' with { type: 'json' };
import { fleet, isFull, keyed, names, pick, tally, times } from './support.js';

const hash = await loadHash();
const consistent = 'consistent_hashing';

function permutations(items: readonly string[]): string[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]));
}

function ownersOf(router: Router, keys: readonly string[]): string[] {
  return keys.map((key) => pick(router, keyed(key)));
}

function choice(policy: StandalonePolicy, request = {}, candidates = fakeFleet(4)): string {
  const selection = policy.selectWorker(request, candidates);
  return selection.ok ? selection.worker.id : selection.reason;
}

describe('hashing and rings', () => {
  it('B60: who owns a key depends on the set of ids alone, and the map of a fixed fleet is pinned', async () => {
    const keys = times(10_000, (i) => `key-${i}`);
    const orders = permutations(names(4));
    expect(orders).toHaveLength(24);
    const expected = ownersOf(await fleet(names(4), { policy: consistent }), keys);
    expect(tally(expected).size).toBe(4);
    // Every order with a share of the keys, the reverse order with all of them.
    for (const [i, order] of orders.entries()) {
      const [from, to] = isFull || i === 23 ? [0, keys.length] : [i * 400, i * 400 + 1000];
      const router = await fleet(order, { policy: consistent, seed: i });
      expect(ownersOf(router, keys.slice(from, to))).toEqual(expected.slice(from, to));
    }
    const router = await fleet(goldenIds.toReversed(), { policy: consistent });
    const owners = ownersOf(router, goldenKeys).map((id) => goldenIds.indexOf(id).toString(16));
    expect(owners.join('')).toBe(golden.owners.join(''));
  });

  it('B61: a request without a model draws from one ring over everybody, where a shared worker counts once', async () => {
    const router = await fleet(
      [
        { id: 'w1', models: ['m1', 'm2'] },
        { id: 'w2', models: ['m2'] },
      ],
      { policy: consistent },
    );
    const keys = times(10_000, (i) => `key-${i}`);
    const owners = ownersOf(router, keys);
    expect(Math.abs((tally(owners).get('w1') ?? 0) / 10_000 - 0.5)).toBeLessThan(0.09);
    expect(ownersOf(router, keys.slice(0, 500))).toEqual(owners.slice(0, 500));
    const ofModel = (model: string): Set<string> =>
      new Set(keys.slice(0, 500).map((key) => pick(router, { model, ...keyed(key) })));
    expect([ofModel('m1'), ofModel('m2')]).toEqual([new Set(['w1']), new Set(['w1', 'w2'])]);
    // The heads of prefix_hash find the same ring.
    const heads = await fleet(names(2), { policy: 'prefix_hash' });
    expect(heads.selectWorker({ text: 'no model at all' }).record.branch).toBe('ring_hit');
  });

  it('B62: similar names share evenly at 150 points each, and the number of points is not an option', async () => {
    const ids = times(16, (i) => `http://10.0.0.${i + 1}:8000`);
    const policy = consistentHashing({ hash, seed: 1, clock: () => 0 });
    const candidates = ids.map((id) => fakeCandidate({ id }));
    const counts = tally(times(100_000, (i) => choice(policy, { routingKey: `key-${i}` }, candidates)));
    expect(counts.size).toBe(16);
    for (const [id, count] of counts) expect(Math.abs(count / 1000 - 6.25), id).toBeLessThan(1.9);
    const refused = createRouter({ policy: { name: consistent, virtualNodes: 0 } as PolicyConfig });
    await expect(refused).rejects.toBeInstanceOf(RoutingConfigError);
    await expect(refused).rejects.toMatchObject({ field: 'policy.virtualNodes', value: 0 });
  });

  it('B63: a ring worker is passed over only when it is above both a multiple of the mean and a margin', () => {
    const request = { text: 'a prompt with a home' };
    const options = { hash, seed: 1, clock: () => 0 };
    const home = choice(prefixHash(options), request);
    const withTotal = (total: number, target: number): string => {
      const others = names(4).filter((id) => id !== home);
      const shares = new Map(others.map((id, i) => [id, Math.floor((total - target + i) / 3)]));
      const loads = fakeFleet(4, (i) => ({ inFlight: shares.get(`w${i + 1}`) ?? target }));
      expect(loads.reduce((sum, { inFlight }) => sum + inFlight, 0)).toBe(total);
      const selection = prefixHash(options).selectWorker(request, loads);
      const place = selection.ok && selection.worker.id === home ? 'home' : 'elsewhere';
      return `${place} by ${selection.record.branch}`;
    };
    expect(withTotal(40, 13)).toBe('home by ring_hit');
    expect(withTotal(40, 20)).toBe('home by ring_hit');
    expect(withTotal(40, 21)).toBe('elsewhere by load_balance_walk');
    expect(withTotal(800, 240)).toBe('home by ring_hit');
    expect(withTotal(800, 260)).toBe('elsewhere by load_balance_walk');
  });

  it('B64: text alone is enough for prefix_hash, and nothing at all still finds a worker', () => {
    const policy = prefixHash({ hash, seed: 1, clock: () => 0 });
    const candidates = fakeFleet(4, (i) => ({ inFlight: 4 - i }));
    const asked = { text: 'summarize the following paragraph' };
    const selections = times(10, () => policy.selectWorker(asked, candidates));
    expect(new Set(selections.map((selection) => selection.record.branch))).toEqual(new Set(['ring_hit']));
    expect(new Set(selections.map((selection) => selection.ok && selection.worker.id)).size).toBe(1);
    expect(policy.selectWorker({}, candidates)).toMatchObject({
      worker: { id: 'w4' },
      record: { branch: 'no_routing_key' },
    });
    // In this order: key, then tokens, then text.
    const all = { text: 'text', tokens: [1, 2, 3], ...keyed('key') };
    expect(choice(policy, all)).toBe(choice(policy, keyed('key')));
    expect(choice(policy, { text: 'other', tokens: [1, 2, 3] })).toBe(choice(policy, { tokens: [1, 2, 3] }));
  });

  it('B65: 64 bits are hashed as published and written with all their zeros', () => {
    expect(hash('')).toBe(17241709254077376921n);
    expect(hash('a')).toBe(15154266338359012955n);
    expect(hash('some data')).toBe(3211224724780031119n);
    expect(hash('你好😀')).toBe(4489866342998930253n);
    expect(hash(new TextEncoder().encode('你好😀'))).toBe(4489866342998930253n);
    expect(hash('k110').toString(16).padStart(16, '0')).toBe('0c47deca01440851');
    // What the package itself prints of 64 bits: the mark that stands for a routing key.
    const policy = consistentHashing({ hash, seed: 1, clock: () => 0 });
    const candidates = fakeFleet(1);
    const wrong: string[] = [];
    let leadingZeros = 0;
    const keys = isFull ? 1_000_000 : 20_000;
    for (let i = 0; i < keys; i++) {
      const mark = policy.selectWorker({ routingKey: `k${i}` }, candidates).record.keyHash ?? '';
      if (!/^[0-9a-f]{16}$/.test(mark)) wrong.push(`k${i} is ${mark}`);
      if (BigInt(`0x${mark}`).toString(16).padStart(16, '0') !== mark) wrong.push(`k${i} does not round-trip`);
      if (mark.startsWith('0')) leadingZeros += 1;
    }
    expect(wrong).toEqual([]);
    expect(leadingZeros).toBeGreaterThan(keys / 32);
  });

  it('B67: requests without a key spread, and a key that is none counts as none', () => {
    const spread = (request: object): Map<string, number> => {
      const policy = consistentHashing({ hash, seed: 67, clock: () => 0 });
      return tally(times(1000, () => choice(policy, request)));
    };
    const keyless = spread({});
    for (const id of names(4)) expect(Math.abs((keyless.get(id) ?? 0) - 250), id).toBeLessThanOrEqual(60);
    for (const key of ['', ' ', '\t \t', 'x'.repeat(129), 'é'.repeat(65), '\ud800']) {
      // The same seed: not similar, the same choices.
      expect(spread(keyed(key)), JSON.stringify(key)).toEqual(keyless);
    }
    expect(spread(keyed('x'.repeat(128))).size).toBe(1);
  });

  it('B68: the pair is two different workers, every pair as likely as any other', () => {
    const two = [fakeCandidate({ inFlight: 9 }), fakeCandidate({ id: 'w2' })];
    const policy = powerOfTwo({ loadMetric: 'requests', seed: 68, clock: () => 0 });
    expect(new Set(times(1000, () => choice(policy, {}, two)))).toEqual(new Set(['w2']));
    const graded = fakeFleet(3, (i) => ({ inFlight: i }));
    const counts = tally(times(3000, () => choice(policy, {}, graded)));
    // w1 wins both of its pairs, w2 the one against w3.
    expect(counts.has('w3')).toBe(false);
    expect(Math.abs((counts.get('w1') ?? 0) - 2000)).toBeLessThan(110);
    const { reachable } = distribution((runtime) => powerOfTwo({ ...runtime, loadMetric: 'requests' }), {}, graded);
    expect(reachable).toEqual(['w1', 'w2']);
  });

  it('B69: one generator serves all picks, so picks of one instant are independent', () => {
    let made = 0;
    let draws = 0;
    const counting: RandomSource = () => {
      draws += 1;
      return Math.abs(Math.sin(draws * 12.9898) * 43758.5453) % 1;
    };
    const clock = (): number => {
      made += 1;
      return 0;
    };
    const injected = random({ random: counting, clock });
    for (let i = 0; i < 100; i++) choice(injected);
    expect(draws).toBe(100);
    expect(made).toBeGreaterThan(0);

    const candidates = fakeFleet(5);
    const pickMany = (clockOf: () => number): string[] => {
      const policy = random({ seed: 69, clock: clockOf });
      return times(10_000, () => choice(policy, {}, candidates));
    };
    const picks = pickMany(() => 0);
    let chiSquare = 0;
    for (const count of tally(picks).values()) chiSquare += (count - 2000) ** 2 / 2000;
    // 4 degrees of freedom: p = 0.001 is at 18.47.
    expect(chiSquare).toBeLessThan(18.47);
    let run = 0;
    let longest = 0;
    for (const [i, id] of picks.entries()) {
      run = id === picks[i - 1] ? run + 1 : 1;
      longest = Math.max(longest, run);
    }
    expect(longest).toBeLessThanOrEqual(12);
    let now = 0;
    expect(pickMany(() => now++)).toEqual(picks);
    // Two unseeded policies of one instant are strangers to each other.
    const [one, other] = times(2, () => random({ clock: () => 0 }));
    const unseeded = (policy: StandalonePolicy | undefined) =>
      times(100, () => choice(policy as StandalonePolicy, {}, candidates));
    expect(unseeded(one)).not.toEqual(unseeded(other));
  });
});
