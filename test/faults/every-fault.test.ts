/** That every reported fault has its one test: the ids in the titles of this folder against the list of faults. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const folder = new URL('.', import.meta.url);

/** The titles of the fault tests, as written. */
function titles(): string[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.test.ts') && name !== 'every-fault.test.ts');
  return files.flatMap((name) => {
    const text = readFileSync(new URL(name, folder), 'utf8');
    return [...text.matchAll(/^ {2}it\(\s*(['"`])(.*)\1/gm)].map((match) => match[2] as string);
  });
}

const idOf = (title: string): string | undefined => /^(B\d\d): ./.exec(title)?.[1];

it('every title begins with an id, and no id is used twice', () => {
  const all = titles();
  expect(all.length).toBeGreaterThan(70);
  expect(all.filter((title) => idOf(title) === undefined)).toEqual([]);
  expect(new Set(all.map(idOf)).size).toBe(all.length);
});

const list = fileURLToPath(new URL('../../../shared/cases/reported-faults.md', import.meta.url));

if (existsSync(list)) {
  it('every reported fault has a test, and every test a reported fault', () => {
    const reported = [...readFileSync(list, 'utf8').matchAll(/^### (B\d\d) /gm)].map((match) => match[1]);
    expect(reported.length).toBeGreaterThan(70);
    expect(titles().map(idOf).toSorted()).toEqual(reported.toSorted());
  });
} else {
  process.stderr.write('not run: the comparison with ../shared/cases/reported-faults.md, the file is not there\n');
}
