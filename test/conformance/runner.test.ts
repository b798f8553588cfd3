/** The runner itself: what it must not let pass. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { failureLine, linesOf, runLine } from './conformance.js';

interface LooseRow {
  id: string;
  policy: string;
  config: Record<string, unknown>;
  workers: Record<string, unknown>[];
  setup?: Record<string, unknown>[];
  state?: Record<string, unknown>;
  request: Record<string, unknown>;
  expect: Record<string, unknown>;
}

const cases = fileURLToPath(new URL('cases.jsonl', import.meta.url));
const rows = linesOf(readFileSync(cases, 'utf8'), 'own').map(({ line }) => JSON.parse(line) as LooseRow);

function rowOf(id: string): LooseRow {
  const row = rows.find((known) => known.id === id);
  if (row === undefined) throw new Error(`no row ${id}`);
  return structuredClone(row);
}

async function outcomeOf(row: LooseRow): Promise<string> {
  const result = await runLine(JSON.stringify(row), 'here');
  return result.difference === undefined ? 'passed' : failureLine(result);
}

/** The row with one thing changed, and how the runner reports it. */
async function changed(id: string, change: (row: LooseRow) => void): Promise<string> {
  const row = rowOf(id);
  change(row);
  return outcomeOf(row);
}

describe('decision rows', () => {
  it('CC-10: a wrong winner is reported with what was expected and what came', async () => {
    expect(await changed('K-EW-1', (row) => (row.expect.worker = 'a'))).toBe('K-EW-1: expected a, came b');
    expect(await changed('K-EW-1', (row) => (row.expect = { none: true }))).toBe('K-EW-1: expected none, came b');
    expect(await changed('K-EW-9', (row) => (row.expect = { worker: 'a' }))).toBe('K-EW-9: expected a, came none');
  });

  it('CC-1: a set of winners must be exact', async () => {
    expect(await changed('K-EW-5', (row) => (row.expect.oneOf = ['b']))).toBe('K-EW-5: expected b, came c');
    expect(await changed('K-EW-5', (row) => (row.expect.oneOf = ['a', 'b', 'c']))).toBe(
      'K-EW-5: expected one of a,b,c, came never a',
    );
  });

  it('CC-1: a winner that only some draws give is not certain', async () => {
    const line = await changed('K-EW-5', (row) => (row.expect = { worker: 'b' }));
    expect(line).toBe('K-EW-5: expected b, came c');
  });

  it('every other field an outcome is compared by', async () => {
    expect(await changed('K-HA-1', (row) => (row.expect.branch = 'hash_spill'))).toBe(
      'K-HA-1: expected branch hash_spill, came branch hash_hit',
    );
    expect(await changed('K-HA-1', (row) => (row.expect.level = 16))).toBe('K-HA-1: expected level 16, came level 32');
    expect(await changed('K-CA-3', (row) => (row.expect.ratio = 0.2))).toBe(
      'K-CA-3: expected ratio 0.2, came ratio 0.1',
    );
    expect(await changed('K-ST-1', (row) => (row.expect.source = 'header'))).toBe(
      'K-ST-1: expected source header, came source rid',
    );
    expect(await changed('K-EW-3', (row) => (row.expect.scores = { y: 0.15, z: 1.35 }))).toBe(
      'K-EW-3: expected score of z 1.35, came 1.3500000000000003',
    );
    expect(await changed('K-EW-3', (row) => (row.expect.scores = { nobody: 1 }))).toBe(
      'K-EW-3: expected score of nobody 1, came undefined',
    );
  });

  it('a wrong assertion inside the setup fails the row, and the place is named', async () => {
    const line = await changed(
      'K-EW-10',
      (row) => (row.setup = [{ op: 'select', request: {}, expect: { worker: 'b' } }]),
    );
    expect(line).toBe('K-EW-10: expected b, came a in setup step 1');
  });

  it('a random choice is not stable', async () => {
    const line = await changed('K-CH-2', (row) => (row.expect.stable = true));
    expect(line).toBe('K-CH-2: expected the same worker whatever the draws, came a, b');
  });
});

describe('function rows', () => {
  it('CC-10: a wrong value is reported', async () => {
    expect(await changed('K-FN-1', (row) => (row.expect.value = 'conv'))).toBe(
      'K-FN-1: expected value "conv", came "conv_t1_r2"',
    );
    expect(await changed('K-FN-23', (row) => (row.expect.sizes = { w2: 11, w1: 1 }))).toBe(
      'K-FN-23: expected sizes {"w2":11,"w1":1}, came {"w2":11}',
    );
    expect(await changed('K-FN-36', (row) => (row.request.balanceAbsThreshold = -1))).toBe(
      'K-FN-36: expected ok true, came false',
    );
  });

  it('a field that the function does not tell is a failure', async () => {
    const line = await changed('K-FN-28', (row) => (row.expect.colour = 'red'));
    expect(line).toMatch(/^K-FN-28: expected colour "red", came \{.*"result":"gap"/);
  });
});

describe('CC-10: what cannot be mapped has failed', () => {
  const unmappable: [string, string, (row: LooseRow) => void, string][] = [
    ['an unknown policy', 'K-EW-1', (row) => (row.policy = 'fastest'), 'policy: must be one of'],
    ['an unknown function', 'K-FN-1', (row) => (row.policy = 'fn:nothing'), 'function nothing is unknown'],
    ['a field of the row', 'K-EW-1', (row) => Object.assign(row, { extra: 1 }), 'row has the unknown field extra'],
    ['a field of a worker', 'K-EW-1', (row) => (row.workers[0] = { id: 'a', inFlight: 0, weight: 2 }), 'field weight'],
    [
      'a field of a report',
      'K-EW-1',
      (row) => (row.workers[0] = { id: 'a', inFlight: 0, report: { x: 1 } }),
      'field x',
    ],
    [
      'a field of the request',
      'K-EW-1',
      (row) => (row.request = { prompt: 'x' }),
      'request has the unknown field prompt',
    ],
    [
      'a field of expect',
      'K-EW-1',
      (row) => (row.expect = { worker: 'b', tail: 1 }),
      'expect has the unknown field tail',
    ],
    ['a field of state', 'K-EW-1', (row) => (row.state = { moon: 1 }), 'state has the unknown field moon'],
    [
      'two outcomes',
      'K-EW-1',
      (row) => (row.expect = { worker: 'b', none: true }),
      'exactly one of worker, oneOf and none',
    ],
    ['no outcome', 'K-EW-1', (row) => (row.expect = { branch: 'x' }), 'exactly one of worker, oneOf and none'],
    ['an unknown step', 'K-EW-1', (row) => (row.setup = [{ op: 'dance' }]), 'setup op dance is unknown'],
    ['a field of a step', 'K-EW-1', (row) => (row.setup = [{ op: 'advance', hours: 1 }]), 'field hours'],
    ['an unknown option', 'K-EW-1', (row) => (row.config = { cacheTreshold: 1 }), 'cacheTreshold: is not an option'],
    ['an unknown worker', 'K-EW-1', (row) => (row.setup = [{ op: 'acquire', worker: 'z' }]), 'worker z is unknown'],
    [
      'ranges nobody can reach',
      'K-BU-2',
      (row) =>
        (row.state = {
          ranges: [
            ['a', 0, 0],
            ['b', 1, 5],
            ['c', 6, null],
          ],
        }),
      'ranges must ascend',
    ],
    [
      'more released than held',
      'K-EW-1',
      (row) => (row.setup = [{ op: 'release', worker: 'a' }]),
      'fewer requests in flight',
    ],
    [
      'an unknown tree op',
      'K-FN-23',
      (row) => (row.request = { kind: 'string', ops: [['grow', 'x']] }),
      'tree op grow is unknown',
    ],
    ['an unknown tree kind', 'K-FN-23', (row) => (row.request = { kind: 'oak', ops: [] }), 'tree kind oak is unknown'],
  ];

  for (const [what, id, change, message] of unmappable) {
    it(what, async () => {
      const line = await changed(id, change);
      expect(line.startsWith(`${id}: expected a row that runs, came `)).toBe(true);
      expect(line).toContain(message);
    });
  }

  it('a line that is no JSON', async () => {
    expect(failureLine(await runLine('{', 'file:7'))).toMatch(/^file:7: expected a row that runs, came /);
  });
});

describe('the program', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kvroute-rows-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  function run(content: string): { readonly code: number; readonly lines: string[] } {
    const file = join(folder, 'rows.jsonl');
    writeFileSync(file, content);
    const root = fileURLToPath(new URL('../..', import.meta.url));
    try {
      const output = execFileSync(process.execPath, ['--import', 'tsx', 'test/conformance/run.ts', file], {
        cwd: root,
        encoding: 'utf8',
      });
      return { code: 0, lines: output.trim().split('\n') };
    } catch (error) {
      const { status, stdout } = error as { readonly status: number; readonly stdout: string };
      return { code: status, lines: stdout.trim().split('\n') };
    }
  }

  it('CC-10: one line for each failing row, the totals last, and the exit code', () => {
    const wrong = rowOf('K-FN-1');
    wrong.expect.value = 'other';
    const content = [JSON.stringify(rowOf('K-FN-2')), '', JSON.stringify(wrong), ''].join('\n');
    expect(run(content)).toEqual({
      code: 1,
      lines: ['K-FN-1: expected value "other", came "conv_t1_r2"', '1 passed, 1 failed'],
    });
    expect(run(`${JSON.stringify(rowOf('K-FN-2'))}\n`)).toEqual({ code: 0, lines: ['1 passed, 0 failed'] });
  });
});
