/**
 * The conformance runner: `npm run conformance -- FILE…`. One line for each failing row, a last line
 * `N passed, N failed`, and exit code 1 when a row failed or a file could not be read (CC-10).
 */
import { readFileSync } from 'node:fs';
import { failureLine, linesOf, runLine } from './conformance.js';

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error('usage: npm run conformance -- FILE…');
  process.exit(2);
}
let passed = 0;
let failed = 0;
for (const file of files) {
  for (const { line, place } of linesOf(readFileSync(file, 'utf8'), file)) {
    const result = await runLine(line, place);
    if (result.difference === undefined) passed += 1;
    else {
      failed += 1;
      console.log(failureLine(result));
    }
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
