/**
 * The pages of the documentation and their code. The ```ts blocks of one page form one module, in the order in which
 * they stand; a page with a block marked ```ts no-run is compiled only as far as that block is concerned: such a block
 * is a module of its own and never runs.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root: string = fileURLToPath(new URL('../../', import.meta.url));

/** README, CHANGELOG and every page under docs/, as absolute paths. */
export function markdownFiles(): string[] {
  const pages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .sort()
    .map((path) => join(root, 'docs', path));
  return [join(root, 'README.md'), join(root, 'CHANGELOG.md'), ...pages];
}

/** One module made of a page's code. */
export interface PageModule {
  /** Where it comes from, for messages and for its file name. */
  readonly page: string;
  readonly name: string;
  readonly code: string;
  readonly runs: boolean;
}

const fence = /^```(\w+)([^\n]*)\n([\s\S]*?)^```$/gm;

/** The modules of all pages. Lines keep their numbers, so that a diagnostic points into the page. */
export function pageModules(): PageModule[] {
  return markdownFiles().flatMap((path) => {
    const page = relative(root, path);
    const markdown = readFileSync(path, 'utf8');
    const name = page
      .replace(/\.md$/, '')
      .replaceAll(/[/\\.]/g, '-')
      .toLowerCase();
    const modules: PageModule[] = [];
    let running = '';
    for (const { 1: language, 2: mark = '', 3: code = '', index } of markdown.matchAll(fence)) {
      if (language !== 'ts') continue;
      const line = markdown.slice(0, index).split('\n').length;
      if (mark.trim() === 'no-run') {
        modules.push({ page, name: `${name}-line-${line}`, code: padded('', code, line), runs: false });
      } else {
        running = padded(running, code, line);
      }
    }
    if (running !== '') modules.push({ page, name, code: running, runs: true });
    return modules;
  });
}

function padded(before: string, code: string, line: number): string {
  const missing = line - before.split('\n').length + 1;
  return `${before}${'\n'.repeat(missing)}${code}`;
}
