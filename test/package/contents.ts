/** What is in the tarball: nothing but the two builds and their papers, and declarations that need no other package. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import type { Consumer } from './tarball.js';
import type { Task } from './task.js';

export function contentsTasks({ directory, files }: Consumer): Task[] {
  return [
    {
      name: 'tarball: the two builds and their papers, nothing else',
      run: () => {
        const papers = ['CHANGELOG.md', 'LICENSE', 'README.md', 'dist/cjs/package.json', 'package.json'];
        const other = files.filter((path) => !/^dist\/(esm|cjs)\/[a-z0-9/-]+(\.d\.ts|\.js)$/.test(path));
        assert.deepEqual(other.sort(), papers);
        const built = (format: string): string[] =>
          files
            .filter((path) => path.startsWith(`dist/${format}/`) && !path.endsWith('.json'))
            .map((path) => path.slice(9));
        assert.deepEqual(built('esm').sort(), built('cjs').sort());
        return `${files.length} files`;
      },
    },
    {
      name: 'declarations: no type of a dependency, and Symbol.dispose in both formats (LB-60, LB-61)',
      run: () => {
        const declarations = files.filter((path) => path.endsWith('.d.ts'));
        const read = (path: string): string => readFileSync(join(directory, 'node_modules/kvroute', path), 'utf8');
        for (const path of declarations) {
          const text = read(path);
          const from = ts.preProcessFile(text).importedFiles.map(({ fileName }) => fileName);
          assert.deepEqual(
            from.filter((name) => !name.startsWith('.')),
            [],
            path,
          );
          assert.doesNotMatch(text, /\/\/\/ <reference/, path);
        }
        for (const format of ['esm', 'cjs'])
          assert.match(read(`dist/${format}/abort-signal.d.ts`), /SymbolConstructor/);
        return `${declarations.length} files`;
      },
    },
  ];
}
