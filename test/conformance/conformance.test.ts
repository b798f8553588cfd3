/**
 * Every conformance row as a test: the project's own always, those of the shared folder when it is there. Without it
 * they are not registered, and a line says so.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { failureLine, linesOf, type RowResult, runLine } from './conformance.js';

const own = fileURLToPath(new URL('cases.jsonl', import.meta.url));
const shared = fileURLToPath(new URL('../../../shared/conformance/cases.jsonl', import.meta.url));

function register(title: string, file: string): void {
  describe(title, () => {
    for (const { line, place } of linesOf(readFileSync(file, 'utf8'), title)) {
      const { id = place, spec = '' } = JSON.parse(line) as { readonly id?: string; readonly spec?: string };
      it(`${spec}: ${id}`, async () => {
        const result: RowResult = await runLine(line, place);
        expect(result.difference === undefined ? 'passed' : failureLine(result)).toBe('passed');
      });
    }
  });
}

register('own conformance rows', own);
if (existsSync(shared)) register('shared conformance rows', shared);
else console.log('The shared conformance rows did not run: there is no ../shared/conformance/cases.jsonl.');
