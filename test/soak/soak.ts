/**
 * `npm run soak`: millions of selections with everything that happens to a fleet, on virtual clocks. It ends with exit
 * code 1 when anything is violated: a count below zero or not back at zero, a bound exceeded, a heap that grows, a call
 * over five milliseconds (those of the start, `explain` and `rank` excepted).
 *
 * The traffic is the same whenever it is played, so a phase with calls over five milliseconds is played again: what the
 * machine did to a call the first time, it will hardly do to the same one of millions the second time.
 *
 * `KVROUTE_SOAK_SELECTIONS` sets the number of selections, `KVROUTE_SOAK_WIDE` the size of the large fleets.
 */
import { memoryAfterCollection } from '../support/heap.js';
import { isPerThread } from '../support/thread-cpu.js';
import { Meter, startLabel } from './meter.js';
import { type Phase, type PhaseResult, runPhase } from './run.js';
import { subjects, wideSubjects } from './subjects.js';

const selections = Number(process.env.KVROUTE_SOAK_SELECTIONS ?? 10_000_000);
const wideWorkers = Number(process.env.KVROUTE_SOAK_WIDE ?? 10_000);
const limitMs = 5;
/** What the second half may use more than the first: compiled code and its statistics still grow a little. */
const tolerance = 1.03;
const toleratedBytes = 2 ** 20;
/** Calls that return something for each worker, and are meant for people. */
const unjudged: readonly string[] = ['explain', 'rank'];
/** How often a phase is played when calls are suspect, the first time included. */
const plays = 3;
/** Selections of each router after which all its bounds are reached and its heap must be flat. */
const steadyAfter = 50_000;
/** Of the selections, for large fleets: some policies look at every worker. */
const wideShare = 0.02;
/** Of the selections of a phase, those that belong to its start: their time is printed and not judged. */
const startShare = 0.03;

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

const number = (value: number): string => value.toLocaleString('en');
const megabytes = (bytes: number | undefined): string => ((bytes ?? 0) / 2 ** 20).toFixed(1);
const columns = (values: readonly (string | number)[]): string =>
  values.map((value) => String(value).padStart(14)).join('');
const findings: string[] = [];

/** Runs a phase and prints what it found. */
async function soak(phase: Phase): Promise<void> {
  const { meter, result } = await play(phase);
  console.log(`\n${phase.name}`);
  findings.push(...result.findings.map((finding) => `${phase.name}: ${finding}`));
  printRouters(result);
  printHeap(result);
  printCalls(meter, phase.subjects.length > 1 ? 0 : 1);
  let suspects = [...meter.suspects].filter(([, { label }]) => !unjudged.includes(label));
  for (let played = 1; played < plays && suspects.length > 0; played++) {
    console.log(`  ${suspects.length} calls over ${limitMs} ms: the same calls again`);
    const { meter: again } = await play(phase);
    suspects = suspects.filter(([place]) => again.suspects.has(place));
  }
  for (const [place, { label, ownMs }] of suspects) {
    findings.push(
      `${phase.name}: call ${number(place)}, ${label}, over ${limitMs} ms every time, ${ownMs.toFixed(2)} once`,
    );
  }
}

async function play(phase: Phase): Promise<{ readonly meter: Meter; readonly result: PhaseResult }> {
  const meter = new Meter(limitMs);
  const startSelections = Math.ceil(phase.selections * startShare);
  const watch = { heap: () => memoryAfterCollection(50), progress: progress(phase.name, phase.selections) };
  const result = await runPhase({ ...phase, ...watch, startSelections }, meter);
  await meter.stop();
  return { meter, result };
}

function printRouters({ subjects: rows }: PhaseResult): void {
  const heads = ['selections', 'refused', 'calls', 'largest tree', 'pins', 'rotations', 'heads', 'recounts'];
  console.log('  router'.padEnd(34) + columns(heads));
  for (const {
    name,
    selections: made,
    refused,
    calls,
    largestTree,
    mostPins,
    mostRotations,
    mostHeads,
    recounts,
  } of rows) {
    const values = [made, refused, calls, largestTree, mostPins, mostRotations, mostHeads, recounts];
    console.log(`  ${name}`.padEnd(34) + columns(values.map(number)));
  }
}

function printHeap({ name, subjects: rows, heap: [middle = 0, end = 0, ended = 0] }: PhaseResult): void {
  console.log(
    `  heap and array buffers: first half ${megabytes(middle)} MB, second half ${megabytes(end)} MB, all ended ${megabytes(ended)} MB`,
  );
  const isSteady = rows.every((row) => row.selections >= 2 * steadyAfter);
  if (isSteady && end > middle * tolerance + toleratedBytes) {
    findings.push(`${name}: the heap grew from ${megabytes(middle)} to ${megabytes(end)} MB`);
  }
}

/** @param leastMs calls that never took longer are left out */
function printCalls({ byLabel, longestGcMs }: Meter, leastMs: number): void {
  console.log('  call'.padEnd(34) + columns(['calls', 'longest ms', 'own ms', `> ${limitMs} ms`, 'without gc', 'own']));
  for (const [label, times] of [...byLabel].sort(([, a], [, b]) => b.calls - a.calls)) {
    const { calls, longestWallMs, longestOwnMs, overWall, overWithoutGc, overOwn } = times;
    if (longestOwnMs < (label.startsWith(startLabel) ? limitMs : leastMs)) continue;
    const values = [number(calls), longestWallMs.toFixed(2), longestOwnMs.toFixed(2), overWall, overWithoutGc, overOwn];
    console.log(`  ${label}`.padEnd(34) + columns(values));
  }
  console.log(`  longest collection ${longestGcMs.toFixed(1)} ms`);
}

console.log(`Node ${process.version}, ${number(selections)} selections on virtual clocks`);
console.log('longest: by the wall clock; own: without collections and without waiting for a processor, an upper bound');
if (!isPerThread) console.log('own times include the CPU time of helper threads on this system');
const wide = Math.floor(selections * wideShare);
await soak({ name: '24 workers', subjects, workers: 24, selections: selections - wide });
for (const subject of wideSubjects) {
  const share = Math.ceil(wide / wideSubjects.length);
  await soak({
    name: `${number(wideWorkers)} workers, ${subject.name}`,
    subjects: [subject],
    workers: wideWorkers,
    selections: share,
  });
}
console.log(`\n${((performance.now() - started) / 1000).toFixed(0)} s`);
console.log(findings.length === 0 ? 'Nothing violated.' : `${findings.length} violations:\n${findings.join('\n')}`);
process.exitCode = findings.length === 0 ? 0 : 1;
