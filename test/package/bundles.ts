/** The page of `fixtures/page`, bundled for browsers by esbuild and by Vite, as a consumer of the tarball would. */
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build as esbuild } from 'esbuild';
import { build as vite } from 'vite';
import type { Consumer } from './tarball.js';
import { runNode, type Task } from './task.js';

export interface Bundle {
  readonly bundler: 'esbuild' | 'vite';
  /** Holds `index.html` and the scripts it names. */
  readonly directory: string;
  /** The one script. */
  readonly script: string;
}

/** What the page decides: the JSON text it leaves behind, parsed. */
export interface PageResult {
  readonly hash: string;
  readonly cacheAware: string;
  readonly consistentHashing: string;
  readonly portable: string;
  readonly refusal: string;
}

export async function makeBundles({ directory }: Consumer): Promise<Bundle[]> {
  const page = join(directory, 'page');
  cpSync(new URL('fixtures/page', import.meta.url), page, { recursive: true });

  const plain = join(directory, 'bundle-esbuild');
  await esbuild({
    entryPoints: [join(page, 'main.js')],
    outfile: join(plain, 'main.js'),
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'error',
  });
  cpSync(join(page, 'index.html'), join(plain, 'index.html'));

  const built = join(directory, 'bundle-vite');
  // The polyfill would be the bundle's only use of `document`.
  const options = { outDir: built, modulePreload: { polyfill: false } };
  await vite({ root: page, base: './', configFile: false, logLevel: 'error', build: options });
  const script = readdirSync(join(built, 'assets')).find((name) => name.endsWith('.js')) ?? '';
  return [
    { bundler: 'esbuild', directory: plain, script: join(plain, 'main.js') },
    { bundler: 'vite', directory: built, script: join(built, 'assets', script) },
  ];
}

/** Runs a bundle's script in Node, where no code may be made from strings. */
export async function runInNode({ bundler, script }: Bundle, { directory }: Consumer): Promise<PageResult> {
  const cwd = join(directory, `node-${bundler}`);
  mkdirSync(cwd, { recursive: true });
  const show = 'console.log(await globalThis.kvrouteResult);';
  writeFileSync(join(cwd, 'bundle.mjs'), `${readFileSync(script, 'utf8')}\n${show}\n`);
  return JSON.parse(await runNode(['--disallow-code-generation-from-strings', 'bundle.mjs'], { cwd }));
}

/** What is wrong with a result, or nothing. */
export function faultOf(result: PageResult, expectedHash: string): string | undefined {
  const { hash, cacheAware, consistentHashing, portable, refusal } = result;
  const used = (decisions: string): number => new Set(decisions.split(' ')).size;
  if (hash !== expectedHash) return `the hash is ${hash}`;
  if (refusal !== 'KVROUTE_CONFIG') return `a wrong option was answered with ${refusal}`;
  if (used(cacheAware) < 2 || used(consistentHashing) < 2 || used(portable) < 2) return 'all went to one worker';
  return undefined;
}

export function bundleTask(consumer: Consumer): Task {
  return {
    name: 'bundles: esbuild and Vite, run without code from strings',
    run: async () => {
      const results: string[] = [];
      for (const bundle of await makeBundles(consumer)) {
        const result = await runInNode(bundle, consumer);
        const fault = faultOf(result, 'built in');
        if (fault !== undefined) throw new Error(`${bundle.bundler}: ${fault}`);
        results.push(JSON.stringify(result));
      }
      if (new Set(results).size !== 1) throw new Error(`the bundles decide differently\n${results.join('\n')}`);
      return undefined;
    },
  };
}
