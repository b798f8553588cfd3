/** The generated tables of the documentation say what the sources say. */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { policyNames } from '../../src/policies/names.js';
import { withTables } from '../tools/option-tables.js';
import { markdownFiles, root } from './pages.js';

describe('LB-40: generated tables', () => {
  it.each(markdownFiles().map((path) => relative(root, path)))('%s is as `npm run docs:options` writes it', (page) => {
    const markdown = readFileSync(`${root}${page}`, 'utf8');
    expect(markdown).toBe(withTables(markdown));
  });

  it('every option has a meaning and a statement id', () => {
    const tables = [
      'router',
      ...policyNames.filter((name) => !['passthrough', 'round_robin', 'random'].includes(name)),
    ];
    for (const name of [...tables, 'override', 'circuit_breaker', 'health', 'retry', 'runtime', 'host']) {
      const rows = withTables(`<!-- options:${name} -->\n<!-- /options:${name} -->`).split('\n').slice(3, -1);
      expect(rows.length, name).toBeGreaterThan(0);
      for (const row of rows) expect(row).toMatch(/^\| `\w+` \| [^|]+\|.*\| [^|]{10,} \| [A-Z]{2}-\d+ \|$/);
    }
  });
});
