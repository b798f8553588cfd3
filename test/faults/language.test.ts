/** Reported faults that the language, its types and its packaging invite: one test an id. */
import { readFileSync } from 'node:fs';
import * as kvroute from 'kvroute';
import {
  bucket,
  cacheAware,
  consistentHashing,
  createRouter,
  leastLoad,
  loadHash,
  manual,
  type PolicyConfig,
  passthrough,
  powerOfTwo,
  prefixHash,
  type RouteRequest,
  type Router,
  random,
  roundRobin,
  type StandalonePolicy,
} from 'kvroute';
import * as engines from 'kvroute/engines';
import * as metrics from 'kvroute/metrics';
import * as testing from 'kvroute/testing';
import { type ContractRuntime, fakeCandidate, fakeFleet, fakeReport } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { runScript } from './run-script.js';
import { fleet, isFull, keyed, names, pick, times } from './support.js';

const hash = await loadHash();

/** The policies that look at ids by position or by load, so that other ids make no other choice. */
const positional: Readonly<Record<string, (runtime: ContractRuntime) => StandalonePolicy>> = {
  random,
  round_robin: roundRobin,
  passthrough,
  least_load: leastLoad,
  power_of_two: powerOfTwo,
  cache_aware: cacheAware,
  bucket,
  manual,
};

/** The policies that hash ids: other ids are other places. */
const hashing: Readonly<Record<string, (runtime: ContractRuntime) => StandalonePolicy>> = {
  consistent_hashing: (runtime) => consistentHashing({ ...runtime, hash }),
  prefix_hash: (runtime) => prefixHash({ ...runtime, hash }),
};

/** The same over a ring where everything belongs to one worker: to hash many ids takes long. */
function withRing(owner: string): typeof hashing {
  const ring = { lookup: (_: bigint, isEligible: (id: string) => boolean) => (isEligible(owner) ? owner : undefined) };
  return {
    consistent_hashing: (runtime) => consistentHashing({ ...runtime, hash, ring }),
    prefix_hash: (runtime) => prefixHash({ ...runtime, hash, ring }),
  };
}

function choice(policy: StandalonePolicy, request: RouteRequest, candidates = fakeFleet(3)): string {
  const selection = policy.selectWorker(request, candidates);
  return selection.ok ? selection.worker.id : selection.reason;
}

describe('language, types and packaging', () => {
  it('B88: each format has declarations of its own, named before the code (proved whole by `npm run check:package`)', () => {
    const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    const entries = Object.entries<Record<string, Record<string, string>>>(manifest.exports).filter(
      ([path]) => path !== './package.json',
    );
    expect(entries.map(([path]) => path)).toEqual(['.', './engines', './metrics', './testing']);
    for (const [path, conditions] of entries) {
      const file = path === '.' ? 'index' : `${path.slice(2)}/index`;
      expect(Object.entries(conditions).map(([format, targets]) => [format, Object.entries(targets)])).toEqual([
        [
          'import',
          [
            ['types', `./dist/esm/${file}.d.ts`],
            ['default', `./dist/esm/${file}.js`],
          ],
        ],
        [
          'require',
          [
            ['types', `./dist/cjs/${file}.d.ts`],
            ['default', `./dist/cjs/${file}.js`],
          ],
        ],
      ]);
    }
    // For resolvers that do not read `exports`.
    expect([manifest.main, manifest.types]).toEqual(['./dist/cjs/index.js', './dist/cjs/index.d.ts']);
    expect(manifest.files).toContain('dist');
    expect(manifest.type).toBe('module');
    for (const namespace of [kvroute, engines, metrics, testing])
      expect(Object.keys(namespace)).not.toContain('default');
  });

  it('B89: one hash for all, ready before the first selection, and none needed where the host brings one', async () => {
    const { code, stdout, stderr } = await runScript(
      `
      import { consistentHashing, createRouter, loadHash, prefixHash } from 'kvroute';
      const keys = Array.from({ length: 500 }, (_, i) => 'key-' + i);
      const ids = ['w1', 'w2', 'w3', 'w4'];
      const make = async (options = {}) => {
        const router = await createRouter({ policy: 'consistent_hashing', ...options });
        for (const id of ids) router.addWorker({ id });
        return router;
      };
      const map = (router) => keys.map((key) => router.selectWorker({ routingKey: key }).worker.id).join();

      // A runtime that refuses to compile, and a host with a hash of its own.
      const { instantiate, compile } = WebAssembly;
      const { Module, Instance, Memory } = WebAssembly;
      const refuse = () => { throw new Error('refused'); };
      Object.assign(WebAssembly, { instantiate: refuse, compile: refuse, Module: refuse, Instance: refuse });
      const own = await make({ hash: (data) => BigInt(data.length) * 0x9e3779b97f4a7c15n % 2n ** 64n });
      const owners = map(own).length;
      Object.assign(WebAssembly, { instantiate, compile, Module, Instance });

      // Every instance is counted: one memory each.
      let instances = 0;
      WebAssembly.instantiate = (...args) => { instances += 1; return instantiate(...args); };
      const [first, second] = await Promise.all([make(), make()]);
      const before = map(first);
      const same = [before === map(second)];
      await new Promise((resolve) => setTimeout(resolve, ${isFull ? 1000 : 100}));
      same.push(before === map(first), before === map(await make()));
      const hash = await loadHash();
      const kept = Array.from({ length: 100 }, () => [consistentHashing({ hash }), prefixHash({ hash })]).flat();
      for (const policy of kept) policy.selectWorker({ routingKey: 'k' }, [{ id: 'w1', inFlight: 0 }]);
      console.log(owners > 0, same.join(), kept.length, instances);
    `,
      ['--disallow-code-generation-from-strings'],
    );
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'true true,true,true 200 1\n', stderr: '' });
  });

  it('B90: size is no reason for a RangeError: many workers, many ranks, long prompts', async () => {
    const size = 200_000;
    const idle = `w${size}`;
    const many = fakeFleet(size, (i) => ({ inFlight: i === size - 1 ? 0 : 3 }));
    // The others at that size take seconds: they run with KVROUTE_FULL_FAULTS=1.
    const tried = isFull ? { ...positional, ...withRing(idle) } : { cache_aware: cacheAware };
    for (const [name, make] of Object.entries(tried)) {
      expect(make({ seed: 1, clock: () => 0 }).selectWorker({ text: 'x' }, many).ok, name).toBe(true);
    }
    const policy = leastLoad({ seed: 1, clock: () => 0 });
    expect(choice(policy, {}, many)).toBe(idle);
    expect(policy.explain({}, many).policy.tieSet).toEqual([idle]);

    const router = await fleet(['w1'], { policy: 'least_load' });
    const ranks = times(size, (dpRank) => ({ dpRank, waitingTokens: 1, kvCacheUsage: 0, tokensPerSecond: 1 }));
    router.reportLoad('w1', { ranks });
    expect(router.explain({}).policy.scores?.[0]?.score).toBe(1);
    router.reportLoads(times(size, (i) => [`w${i + 2}`, fakeReport()] as const));

    const long = 'x'.repeat(5_000_000);
    for (const [name, make] of Object.entries({ ...positional, ...hashing })) {
      expect(make({ seed: 1, clock: () => 0 }).selectWorker({ text: long }, fakeFleet(3)).ok, name).toBe(true);
    }
    const affine = cacheAware({ seed: 1, clock: () => 0 });
    const home = choice(affine, { text: long });
    expect(affine.selectWorker({ text: `${long}y` }, fakeFleet(3))).toMatchObject({
      worker: { id: home },
      record: { branch: 'tree_match' },
    });
    const body = JSON.stringify({ messages: [{ role: 'user', content: long }] });
    expect(engines.describeRequest('openai_chat', body).text).toHaveLength(5_000_000);
  });

  it('B91: ids, keys, labels, models and prompts may be named like members of Object', async () => {
    const ids = ['__proto__', 'constructor', 'toString'];
    const before = Object.getOwnPropertyNames(Object.prototype).toSorted();
    const requests: readonly RouteRequest[] = [
      ...['__proto__', 'constructor', 'hasOwnProperty'].flatMap((word) => [
        { text: word },
        { routingKey: word },
        keyed(word),
        { model: word, text: word },
        { rid: word, namespace: { cacheSalt: word } },
      ]),
      { tokens: [1, 2, 3] },
      {},
    ];
    const odd = ids.map((id) => fakeCandidate({ id }));
    for (const [name, make] of Object.entries(positional)) {
      const [strange, plain] = [make({ seed: 91, clock: () => 0 }), make({ seed: 91, clock: () => 0 })];
      const picks = times(4, () => requests.map((request) => choice(strange, request, odd))).flat();
      const same = times(4, () => requests.map((request) => choice(plain, request))).flat();
      expect(
        picks.map((id) => `w${ids.indexOf(id) + 1}`),
        name,
      ).toEqual(same);
    }
    for (const [name, make] of Object.entries(hashing)) {
      const policy = make({ seed: 91, clock: () => 0 });
      const owners = times(200, (i) => choice(policy, { routingKey: `key-${i}` }, odd));
      expect(new Set(owners), name).toEqual(new Set(ids));
      for (const word of ids) expect(choice(policy, keyed(word), odd), name).toBe(choice(policy, keyed(word), odd));
    }

    const policies: readonly PolicyConfig[] = ['cache_aware', 'manual', 'consistent_hashing', 'least_load'];
    for (const policy of policies) {
      const router = await createRouter({ policy, seed: 1, modelAliases: new Map([['valueOf', '__proto__']]) });
      for (const id of ids) router.addWorker({ id, models: ids, labels: new Map([['__proto__', id]]) });
      for (const model of [...ids, 'valueOf']) {
        const acquired = router.acquire({ model, text: '__proto__', ...keyed('__proto__') });
        expect(acquired.ok && ids.includes(acquired.worker.id)).toBe(true);
        expect(acquired.record.model).toBe(model === 'valueOf' ? '__proto__' : model);
      }
      expect(router.workers().reduce((sum, { inFlight }) => sum + inFlight, 0)).toBe(4);
      const copy = await createRouter({ policy, seed: 1 });
      for (const id of ids) copy.addWorker({ id, models: ids });
      expect(copy.restore(JSON.parse(JSON.stringify(router.snapshot()))).skipped).toBe(0);
      expect(router.worker('hasOwnProperty')).toBeUndefined();
      expect(router.removeWorker('__proto__')).toBe(true);
    }
    expect(Object.getOwnPropertyNames(Object.prototype).toSorted()).toEqual(before);
  });

  it('B92: listeners may go, come back and fail while they are called, and change no result', async () => {
    const heard: string[] = [];
    const router: Router = await fleet(names(2), { policy: 'round_robin' });
    const b = (): void => {
      heard.push('B');
      router.off('selected', b);
    };
    router.on('selected', () => heard.push('A'));
    router.on('selected', b);
    router.on('selected', () => heard.push('C'));
    pick(router);
    pick(router);
    expect(heard).toEqual(['A', 'B', 'C', 'A', 'C']);

    // Selecting from within a once-listener runs it once.
    let once = 0;
    router.once('selected', () => {
      once += 1;
      if (once < 5) pick(router);
    });
    pick(router);
    expect(once).toBe(1);

    // Removing by the wrong function removes nothing.
    let runs = 0;
    router.once('notSelected', () => runs++);
    router.off('notSelected', () => runs++);
    router.selectWorker({ exclude: names(2) });
    router.selectWorker({ exclude: names(2) });
    expect(runs).toBe(1);

    const thrown = new Error('an observer failed');
    const failures: unknown[] = [];
    router.on('warning', ({ code, error }) => failures.push([code, error]));
    for (const event of ['selected', 'leaseBegan', 'leaseEnded'] as const) {
      router.on(event, () => {
        throw thrown;
      });
    }
    const acquired = router.acquire({});
    if (!acquired.ok) throw new Error(acquired.reason);
    expect(router.workers().reduce((sum, { inFlight }) => sum + inFlight, 0)).toBe(1);
    acquired.lease.end({ status: 200 });
    expect(router.workers().map(({ inFlight }) => inFlight)).toEqual([0, 0]);
    expect(failures).toEqual(times(3, () => ['listenerFailed', thrown]));
  });
});
