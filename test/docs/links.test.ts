/** Links between the pages lead somewhere, every page can be reached, and nothing points into a machine. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { policyNames } from '../../src/policies/names.js';
import { markdownFiles, root } from './pages.js';

const pages = markdownFiles().map((path) => ({ path, page: relative(root, path), text: readFileSync(path, 'utf8') }));
const proseOf = (text: string): string => text.replace(/^```[\s\S]*?^```$/gm, '');

interface Link {
  readonly target: string;
  readonly anchor: string | undefined;
}

function linksOf({ path, text }: { readonly path: string; readonly text: string }): Link[] {
  return [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^https?:/.test(link))
    .map((link) => {
      const [file = '', anchor] = link.split('#');
      return { target: file === '' ? path : resolve(dirname(path), file), anchor };
    });
}

/** The anchors a page has, as GitHub makes them of headings. */
function anchorsOf(text: string): Set<string> {
  return new Set(
    [...proseOf(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

describe('LB-63: links', () => {
  it.each(pages)('$page: every link leads to a file and a heading', (page) => {
    for (const { target, anchor } of linksOf(page)) {
      expect(existsSync(target), `${page.page} → ${relative(root, target)}`).toBe(true);
      if (anchor === undefined) continue;
      expect([...anchorsOf(readFileSync(target, 'utf8'))], `${relative(root, target)}#${anchor}`).toContain(anchor);
    }
  });

  it('every page can be reached from the README', () => {
    const reached = new Set([join(root, 'README.md')]);
    for (const path of reached) {
      const page = pages.find((known) => known.path === path);
      for (const { target } of page === undefined ? [] : linksOf(page)) reached.add(target);
    }
    expect(pages.filter(({ path }) => !reached.has(path)).map(({ page }) => page)).toEqual([]);
  });

  it('every policy has a page, under the same headings', () => {
    const headings = [
      'What it does',
      'When to use it, when not',
      'Inputs',
      'When inputs are missing',
      'Options',
      'Cost',
      'Example',
    ];
    for (const name of policyNames) {
      const text = readFileSync(join(root, 'docs', 'policies', `${name.replaceAll('_', '-')}.md`), 'utf8');
      const found = [...proseOf(text).matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
      expect(found, name).toEqual(headings);
    }
  });

  it.each(pages)('$page: no path of a machine', ({ text }) => {
    expect(text).not.toMatch(/\/(?:home|root|tmp|work|Users)\//);
  });
});
