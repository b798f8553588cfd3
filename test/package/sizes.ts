/**
 * What an import costs a consumer (LB-62): bundled by esbuild for ES2022, minified, compressed with brotli, in kB of 1000
 * bytes. A policy brings what its own options, its own decision and `StandalonePolicy` need, and no more.
 */
import { brotliCompressSync } from 'node:zlib';
import { build } from 'esbuild';
import type { Consumer } from './tarball.js';
import type { Task } from './task.js';

interface Budget {
  /** What is written after `export`. */
  readonly exports: string;
  readonly from: string;
  readonly maxBytes: number;
}

const budgets: readonly Budget[] = [
  { exports: '{ random }', from: 'kvroute', maxBytes: 4000 },
  { exports: '{ roundRobin }', from: 'kvroute', maxBytes: 4000 },
  { exports: '{ passthrough }', from: 'kvroute', maxBytes: 4000 },
  { exports: '{ leastLoad }', from: 'kvroute', maxBytes: 4000 },
  { exports: '{ powerOfTwo }', from: 'kvroute', maxBytes: 4000 },
  { exports: '{ bucket }', from: 'kvroute', maxBytes: 4000 },
  { exports: '{ consistentHashing }', from: 'kvroute', maxBytes: 4000 },
  { exports: '{ prefixHash }', from: 'kvroute', maxBytes: 4000 },
  { exports: '{ manual }', from: 'kvroute', maxBytes: 4000 },
  { exports: '{ cacheAware }', from: 'kvroute', maxBytes: 4000 },
  { exports: '*', from: 'kvroute', maxBytes: 30_000 },
];

interface Size extends Budget {
  readonly minifiedBytes: number;
  readonly brotliBytes: number;
}

async function measureSizes({ directory }: Consumer): Promise<Size[]> {
  return Promise.all(
    budgets.map(async (budget) => {
      const { outputFiles } = await build({
        stdin: { contents: `export ${budget.exports} from '${budget.from}';`, resolveDir: directory },
        bundle: true,
        minify: true,
        format: 'esm',
        target: 'es2022',
        write: false,
      });
      const code = outputFiles[0]?.contents ?? new Uint8Array();
      return { ...budget, minifiedBytes: code.length, brotliBytes: brotliCompressSync(code).length };
    }),
  );
}

function sizeTable(sizes: readonly Size[]): string {
  const kB = (bytes: number): string => (bytes / 1000).toFixed(2).padStart(9);
  const lines = sizes.map(
    ({ exports, from, minifiedBytes, brotliBytes, maxBytes }) =>
      `${`${exports} from ${from}`.padEnd(36)}${kB(minifiedBytes)}${kB(brotliBytes)}${kB(maxBytes)}`,
  );
  return [`${'kB'.padEnd(36)} minified   brotli   budget`, ...lines].join('\n');
}

export function sizeTask(consumer: Consumer): Task {
  return {
    name: 'sizes (LB-62)',
    run: async () => {
      const sizes = await measureSizes(consumer);
      const table = sizeTable(sizes);
      if (sizes.some(({ brotliBytes, maxBytes }) => brotliBytes > maxBytes)) throw new Error(`over budget\n${table}`);
      return `\n${table}`;
    },
  };
}
