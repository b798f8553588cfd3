/**
 * `npm run soak`: millions of selections with everything that happens to a fleet, on virtual clocks. It ends with exit
 * code 1 when anything is violated: a count below zero or not back at zero, a bound exceeded, a heap that grows, a call
 * over five milliseconds. `KVROUTE_SOAK_SELECTIONS` sets the number of selections, `KVROUTE_SOAK_WIDE` the size of the
 * large fleets.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Meter } from './meter.js';
import { type PhaseResult, runPhase } from './run.js';
import { subjects, wideSubjects } from './subjects.js';

const selections = Number(process.env.KVROUTE_SOAK_SELECTIONS ?? 10_000_000);
const wideWorkers = Number(process.env.KVROUTE_SOAK_WIDE ?? 10_000);
const limitMs = 5;
/** What the second half may use more than the first: compiled code and its statistics still grow a little. */
const tolerance = 1.03;
/** Of the selections, for large fleets: some policies look at every worker. */
const wideShare = 0.02;
/** Of the selections, before calls are timed. */
const warmUpShare = 0.02;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Twice, with a pause: memory of array buffers is given back in the background. */
async function heapInUse(): Promise<number> {
  for (let i = 0; i < 2; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const started = performance.now();
let nextWordAt = 0;

function progress(phase: string, of: number): (done: number) => void {
  return (done) => {
    const seconds = (performance.now() - started) / 1000;
    if (seconds < nextWordAt) return;
    nextWordAt = seconds + 30;
    console.log(
      `${seconds.toFixed(0).padStart(6)} s  ${phase}: ${done.toLocaleString('en')} of ${of.toLocaleString('en')}`,
    );
  };
}

const wide = Math.floor(selections * wideShare);
const meter = new Meter(limitMs);
const results: PhaseResult[] = [
  await runPhase(
    {
      name: '24 workers',
      subjects,
      workers: 24,
      selections: selections - wide,
      warmUp: Math.ceil(selections * warmUpShare),
      heap: heapInUse,
      progress: progress('24 workers', selections - wide),
    },
    meter,
  ),
];
const wideMeter = new Meter(limitMs);
for (const subject of wideSubjects) {
  const share = Math.ceil(wide / wideSubjects.length);
  const name = `${wideWorkers.toLocaleString('en')} workers, ${subject.name}`;
  results.push(
    await runPhase(
      {
        name,
        subjects: [subject],
        workers: wideWorkers,
        selections: share,
        heap: heapInUse,
        progress: progress(name, share),
      },
      wideMeter,
    ),
  );
}
meter.stop();
wideMeter.stop();

const findings = results.flatMap((result) => [...result.findings]);
const number = (value: number): string => value.toLocaleString('en');
const megabytes = (bytes: number | undefined): string => ((bytes ?? 0) / 2 ** 20).toFixed(1);

console.log(`\nNode ${process.version}, ${((performance.now() - started) / 1000).toFixed(0)} s\n`);
console.log(
  'router'.padEnd(46) +
    ['selections', 'refused', 'calls', 'largest tree', 'pins', 'rotations', 'heads', 'recounts']
      .map((head) => head.padStart(14))
      .join(''),
);
for (const { name, subjects: rows } of results) {
  for (const row of rows) {
    const { selections: made, refused, calls, largestTree, mostPins, mostRotations, mostHeads, recounts } = row;
    const columns = [made, refused, calls, largestTree, mostPins, mostRotations, mostHeads, recounts];
    const label = rows.length === 1 ? name : row.name;
    console.log(label.padEnd(46) + columns.map((value) => number(value).padStart(14)).join(''));
  }
}

console.log(
  `\n${'heap and array buffers in use, MB'.padEnd(46)}${['first half', 'second half', 'ended'].map((head) => head.padStart(14)).join('')}`,
);
for (const { name, heap } of results) {
  console.log(name.padEnd(46) + heap.map((bytes) => megabytes(bytes).padStart(14)).join(''));
  const [middle = 0, end = 0] = heap;
  if (end > middle * tolerance)
    findings.push(`${name}: the heap grew from ${megabytes(middle)} to ${megabytes(end)} MB`);
}

for (const [fleet, { byLabel, longestGcMs }] of [
  ['24 workers', meter],
  [`${number(wideWorkers)} workers`, wideMeter],
] as const) {
  console.log(
    `\nCalls at ${fleet}. ms: longest by the wall clock | own: without collections and waiting (see meter.ts)`,
  );
  console.log(
    'call'.padEnd(24) +
      ['calls', 'ms', 'own', `> ${limitMs} ms`, 'without gc', 'own'].map((head) => head.padStart(14)).join(''),
  );
  for (const [label, times] of [...byLabel].sort(([, a], [, b]) => b.calls - a.calls)) {
    const { calls, longestWallMs, longestOwnMs, overWall, overWithoutGc, overOwn } = times;
    const columns = [
      number(calls),
      longestWallMs.toFixed(2),
      longestOwnMs.toFixed(2),
      overWall,
      overWithoutGc,
      overOwn,
    ];
    console.log(label.padEnd(24) + columns.map((value) => String(value).padStart(14)).join(''));
    if (overOwn > 0)
      findings.push(
        `${fleet}: ${overOwn} calls of ${label} took over ${limitMs} ms, the longest ${longestOwnMs.toFixed(2)}`,
      );
  }
  console.log(`longest collection ${longestGcMs.toFixed(1)} ms`);
}

console.log(findings.length === 0 ? '\nNothing violated.' : `\n${findings.length} violations:\n${findings.join('\n')}`);
process.exitCode = findings.length === 0 ? 0 : 1;
