/** The packed package at work: both formats in plain Node, errors across them, and the runs that B74 and B89 ask for. */
import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from 'esbuild';
import type { Consumer } from './tarball.js';
import { runNode, type Task } from './task.js';

const fixtures = new URL('fixtures/', import.meta.url);

const programs: readonly { readonly name: string; readonly args: readonly string[] }[] = [
  { name: 'plain import', args: ['import.mjs'] },
  { name: 'plain require', args: ['require.cjs'] },
  { name: 'instanceof across formats', args: ['instance-of.mjs'] },
  { name: 'a script that forgets its routers ends (B74)', args: ['forgotten.mjs'] },
  { name: '200 routers at once (B89)', args: ['shared-hash.mjs'] },
  {
    name: 'no code from strings, WebAssembly allowed',
    args: ['--disallow-code-generation-from-strings', 'no-code-generation.mjs', 'wasm'],
  },
  {
    name: 'no code from strings, WebAssembly refused, hash of the host',
    args: ['--disallow-code-generation-from-strings', 'no-code-generation.mjs', 'no-wasm'],
  },
];

export function runningTasks(consumer: Consumer): Task[] {
  const cwd = join(consumer.directory, 'run');
  cpSync(new URL('run', fixtures), cwd, { recursive: true });
  return [
    ...programs.map(({ name, args }) => ({
      name: `run: ${name}`,
      run: async () => {
        await runNode(args, { cwd, timeoutMs: 60_000 });
        return undefined;
      },
    })),
    { name: 'run: the typed consumer, in both formats', run: () => runConsumer(cwd) },
  ];
}

/** The consumer whose types are checked also runs, and says the same in both formats. */
async function runConsumer(cwd: string): Promise<undefined> {
  const source = readFileSync(new URL('types/consumer.ts', fixtures), 'utf8');
  const outputs: string[] = [];
  for (const [file, format] of [
    ['consumer.mjs', 'esm'],
    ['consumer.cjs', 'cjs'],
  ] as const) {
    const { code } = transformSync(source, { loader: 'ts', format, target: 'es2022' });
    writeFileSync(join(cwd, file), `${code}\nprocess.once('exit', () => console.log(globalThis.kvrouteLines));\n`);
    outputs.push(await runNode([file], { cwd }));
  }
  assert.match(outputs[0] ?? '', /'KVROUTE_CONFIG maxWaiting'/);
  assert.equal(outputs[0], outputs[1]);
}
