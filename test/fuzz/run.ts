/**
 * Calls everything public with hostile values for as long as asked:
 *
 *     npm run fuzz -- --seed 1 --rounds 20
 *     npm run fuzz -- --minutes 10
 *
 * The same seed makes the same calls. A fault ends the run: its seed and the calls that lead there are printed.
 */
import { parseArgs } from 'node:util';
import { Tally } from './judge.js';
import { properties } from './properties.js';

const { values } = parseArgs({
  options: { seed: { type: 'string' }, rounds: { type: 'string' }, minutes: { type: 'string' } },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const deadline = values.minutes === undefined ? Infinity : performance.now() + Number(values.minutes) * 60_000;
const rounds = Number(values.rounds ?? (values.minutes === undefined ? 10 : Infinity));
const runsPerRound = 100;

const tally = new Tally();
for (let round = 0; round < rounds && performance.now() < deadline; round++) {
  for (const { name, run } of properties) {
    try {
      tally.add(await run(runsPerRound, seed + round));
    } catch (error) {
      console.error(`${name}\nround ${round}: repeat with --seed ${seed + round} --rounds 1`);
      console.error(error);
      console.log(totals(1));
      process.exit(1);
    }
  }
  console.log(`round ${round}: ${tally.calls} calls`);
}
console.log(totals(0));

function totals(faults: number): string {
  const results = tally.calls - tally.refusals - faults;
  return `${tally.calls} calls, ${tally.refusals} refusals, ${results} results, ${faults} faults, seed ${seed}`;
}
