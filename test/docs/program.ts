/** One TypeScript program over the code of the documentation and the entry points of the package. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { type PageModule, pageModules, root } from './pages.js';

// Not under test/: what is in there must not look like a source file. Ignored by git and by the linter.
const directory = join(root, 'reports', 'docs');

export const modules: readonly PageModule[] = pageModules();

/** The file a page's code is written to. */
export function pathOf(module: PageModule): string {
  return join(directory, `${module.name}.ts`);
}

/** The files behind the names of package.json's `exports`. */
export const entryPoints: readonly string[] = Object.keys(
  (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly exports: object }).exports,
)
  .filter((name) => !name.endsWith('.json'))
  .map((name) => join(root, 'src', name === '.' ? '' : name.slice(2), 'index.ts'));

/** Writes the code of all pages and makes the program; what is strict about the project is strict here. */
export function docsProgram(): ts.Program {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  for (const module of modules) writeFileSync(pathOf(module), `${module.code}\nexport {};\n`);
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, root);
  return ts.createProgram([...entryPoints, ...modules.map(pathOf)], {
    ...options,
    // Examples declare what a reader goes on with.
    noUnusedLocals: false,
    noUnusedParameters: false,
  });
}
