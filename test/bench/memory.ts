/**
 * Bytes that an entry of each structure takes: `npm run bench:memory`. Each structure is filled, the heap and the array
 * buffers are read before and after, both after collections, and the difference is divided by the entries. The last table
 * is the worst case of a default router as docs/memory.md works it out, with these numbers.
 */
import { createRouter, HashIndex, KvEventFeed, loadHash, StringTree, TokenTree } from 'kvroute';
import { Ring } from '../../src/hashing/ring.js';
import { PinMap } from '../../src/sticky/pins.js';
import { memoryAfterCollection } from '../support/heap.js';

/** Bytes that what `fill` returns keeps alive. */
async function bytesOf(fill: () => unknown): Promise<number> {
  const before = await memoryAfterCollection(100);
  const kept: unknown[] = [fill()];
  const after = await memoryAfterCollection(100);
  return kept.length === 0 ? 0 : after - before;
}

const bytes = new Map<string, number>();

function tell(entry: string, each: number, how: string): void {
  bytes.set(entry, each);
  console.log(`${entry.padEnd(34)}${each.toFixed(each < 100 ? 1 : 0).padStart(8)}   ${how}`);
}

const count = (value: number): string => value.toLocaleString('en');

/** All words of the letters `a` and `b`: a tree that parts at every character. */
function* words(a: string, b: string, length: number): Generator<string> {
  for (let i = 0; i < 2 ** length; i++) {
    yield Array.from({ length }, (_, bit) => (((i >> bit) & 1) === 0 ? a : b)).join('');
  }
}

const budget = 67_108_864;
console.log(`Node ${process.version}\n\n${'entry'.padEnd(34)}${'bytes'.padStart(8)}   measured with`);

// ——— string tree ———

function stringTree(prompts: Iterable<string>, holders: number): StringTree {
  const tree = new StringTree({ maxTreeSize: budget });
  for (const prompt of prompts) for (let i = 0; i < holders; i++) tree.insert(prompt, `w${i}`);
  return tree;
}

const depth = 16;
const parted = 2 ** (depth + 1) - 2;
const [one, three] = [
  await bytesOf(() => stringTree(words('你', '好', depth), 1)),
  await bytesOf(() => stringTree(words('你', '好', depth), 3)),
];
tell('string tree: holding', (three - one) / 2 / parted, `${count(parted)} nodes held by three workers instead of one`);
tell(
  'string tree: node, worst case',
  one / parted - (bytes.get('string tree: holding') ?? 0),
  `${count(parted)} nodes of one two-byte character, that included, half of them with two children`,
);
const long = 50_000;
const longChars = 200;
const longPrompts = function* (): Generator<string> {
  for (let i = 0; i < long; i++) yield String((i * 7919) % 1_000_003).padEnd(longChars, 'x');
};
let longNodes = 0;
let longUnits = 0;
const longBytes = await bytesOf(() => {
  const tree = stringTree(longPrompts(), 1);
  longNodes = tree.nodeCount;
  longUnits = tree.size;
  return tree;
});
tell(
  'string tree: node, long labels',
  (longBytes - longUnits) / longNodes - (bytes.get('string tree: holding') ?? 0),
  `${count(longNodes)} nodes, without the ${count(longUnits)} Latin-1 characters of their labels`,
);

// ——— token tree ———

const pages = 100_000;
const blockSize = 16;
function tokenTree(holders: number): TokenTree {
  const tree = new TokenTree({ maxTreeSize: budget, blockSize, salt: 1 });
  const tokens = new Uint32Array(2 * blockSize);
  for (let i = 0; i < pages / 2; i++) {
    // Two pages a prompt; two prompts share the first.
    tokens.fill(i >> 1, 0, blockSize).fill(i, blockSize);
    for (let holder = 0; holder < holders; holder++) tree.insert(tokens, `w${holder}`);
  }
  return tree;
}
let tokenNodes = 0;
let tokenUnits = 0;
const oneHolder = await bytesOf(() => {
  const tree = tokenTree(1);
  tokenNodes = tree.nodeCount;
  tokenUnits = tree.size;
  return tree;
});
const threeHolders = await bytesOf(() => tokenTree(3));
tell(
  'token tree: holding',
  (threeHolders - oneHolder) / 2 / tokenNodes,
  `${count(tokenNodes)} nodes held by three workers instead of one`,
);
tell(
  'token tree: node, worst case',
  (oneHolder - 4 * tokenUnits) / tokenNodes - (bytes.get('token tree: holding') ?? 0),
  `${count(tokenNodes)} nodes of one page, without 4 bytes for each of ${count(tokenUnits)} tokens`,
);

// ——— hash index, KV events ———

const heads = 140_000;
tell(
  'hash index: head',
  (await bytesOf(() => {
    const index = new HashIndex({ boundaries: [4], ttlMs: 60_000 });
    for (let i = 0; i < heads; i++) index.record(index.probe(Uint32Array.of(i, 1, 2, 3)), `w${i % 8}`, i);
    return index;
  })) / heads,
  `${count(heads)} heads`,
);

const blocks = 200_000;
function kvFeed(workers: number): KvEventFeed {
  const feed = new KvEventFeed();
  for (let worker = 0; worker < workers; worker++) {
    feed.addWorker(`w${worker}`, ['m']);
    for (let at = 0; at < blocks; at += 100) {
      const hashes = Array.from({ length: 100 }, (_, i) => at + i);
      const tokens = Uint32Array.from({ length: 100 * blockSize }, (_, i) => at + i);
      const batch = { sequence: at / 100, events: [{ type: 'stored' as const, hashes, tokens, blockSize }] };
      feed.applyBatch(`w${worker}`, batch, 0);
    }
  }
  return feed;
}
const oneEngine = await bytesOf(() => kvFeed(1));
const twoEngines = await bytesOf(() => kvFeed(2));
tell(
  'KV-event index: name',
  (twoEngines - oneEngine) / blocks,
  `${count(blocks)} blocks that a second worker stores too`,
);
tell('KV-event index: block', (2 * oneEngine - twoEngines) / blocks, `${count(blocks)} blocks`);

// ——— routing keys, rotations, window ———

const pins = 140_000;
const limits = { maxPins: 1_000_000, maxIdleMs: 0, evictionIntervalMs: 0 };
function pinMap(keyBytes: number): PinMap {
  const map = new PinMap(limits);
  for (let i = 0; i < pins; i++) map.put(`1:msingle:${String(i).padStart(keyBytes, 'k')}`, 'w1', undefined, i);
  return map;
}
tell('pin, longest key', (await bytesOf(() => pinMap(128))) / pins, `${count(pins)} pins with keys of 128 bytes`);
tell('pin, short key', (await bytesOf(() => pinMap(16))) / pins, `${count(pins)} pins with keys of 16 bytes`);

const router = await createRouter({ policy: 'round_robin', seed: 1 });
for (let i = 0; i < 64; i++) router.addWorker({ id: `w${i}`, models: ['m'] });
const rotations = 4096;
tell(
  'rotation',
  (await bytesOf(() => {
    for (let i = 0; i < rotations; i++) {
      const candidates = Array.from({ length: 12 }, (_, bit) => `w${2 * bit + ((i >> bit) & 1)}`);
      router.selectWorker({ model: 'm' }, candidates);
    }
    return router;
  })) / rotations,
  `${count(rotations)} sets of 12 workers`,
);

// ——— workers, rings, leases ———

const workers = 5000;
const hash = await loadHash();
const fleetOf = async (policy: 'random' | 'consistent_hashing'): Promise<number> => {
  const empty = await createRouter({ policy, seed: 1 });
  return bytesOf(() => {
    for (let i = 0; i < workers; i++) {
      empty.addWorker({ id: `http://10.0.${i >> 8}.${i & 255}:8000`, models: ['m'] });
    }
    empty.reportLoads(
      empty.workers().map(({ id }) => [id, { waitingRequests: 1, kvCacheUsage: 0.5, tokensPerSecond: 2000 }]),
    );
    empty.selectWorker({ model: 'm' });
    empty.selectWorker({});
    return empty;
  });
};
tell('worker', (await fleetOf('random')) / workers, `${count(workers)} workers with a report, in two pools`);
const nodesPerWorker = 150;
tell(
  'ring: node',
  (await bytesOf(() => {
    const ring = new Ring(hash);
    for (let i = 0; i < workers; i++) ring.add(`w${i}`);
    ring.lookup(0n, () => true);
    return ring;
  })) /
    (workers * nodesPerWorker),
  `${count(workers)} workers with ${nodesPerWorker} nodes each`,
);
const leases = 100_000;
tell(
  'lease',
  (await bytesOf(() => {
    const kept = Array.from({ length: leases }, () => router.begin('w1'));
    return [router, kept];
  })) / leases,
  `${count(leases)} open leases without a signal or a key`,
);

// ——— the worst case ———

const of = (entry: string): number => bytes.get(entry) ?? Number.NaN;
const [pools, fleet, open] = [2, 100, 10_000];
const maxPins = 1_000_000;
const holdings = budget / 16;
const rows: readonly (readonly [string, number])[] = [
  [
    'string trees',
    pools * (budget * 2 + holdings * (of('string tree: node, worst case') + of('string tree: holding'))),
  ],
  ['token trees', pools * (budget * 8 + holdings * (of('token tree: node, worst case') + of('token tree: holding')))],
  ['pins', maxPins * of('pin, longest key')],
  ['workers', fleet * of('worker')],
  ['open leases', open * of('lease')],
];
const text = (value: number): string => `${(value / 2 ** 20).toLocaleString('en', { maximumFractionDigits: 1 })} MiB`;
console.log(
  `\nWorst case of a default router (cache_aware), ${pools} pools (one model and \`unknown\`), ${fleet} workers, ${count(open)} open leases\n`,
);
for (const [name, size] of rows) console.log(name.padEnd(34) + text(size).padStart(16));
console.log('together'.padEnd(34) + text(rows.reduce((sum, [, size]) => sum + size, 0)).padStart(16));
console.log('\nNot in a default router:');
console.log('hash index, each pool'.padEnd(34) + text(1_000_000 * of('hash index: head')).padStart(16));
console.log('rings, each pool that hashes'.padEnd(34) + text(fleet * nodesPerWorker * of('ring: node')).padStart(16));
console.log('rotations, each pool'.padEnd(34) + text(rotations * of('rotation')).padStart(16));
