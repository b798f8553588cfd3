/** Runs a script in a plain Node process: bundled from the sources, without a loader and without a test runner. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const source = (path: string): string => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));

/** How a process ended and what it printed. `code` is null when it had to be killed. */
export interface ScriptResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * @param text an ES module; it may import `kvroute`
 * @param flags flags of Node
 * @param patienceMs when the process is killed, if it has not ended by itself
 */
export async function runScript(
  text: string,
  flags: readonly string[] = [],
  patienceMs = 20_000,
): Promise<ScriptResult> {
  const folder = mkdtempSync(join(tmpdir(), 'kvroute-'));
  try {
    const outfile = join(folder, 'script.mjs');
    await build({
      stdin: { contents: text, resolveDir: fileURLToPath(new URL('.', import.meta.url)), loader: 'ts' },
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile,
      alias: { kvroute: source('index.ts') },
      logLevel: 'silent',
    });
    return await run([...flags, outfile], patienceMs);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function run(args: readonly string[], patienceMs: number): Promise<ScriptResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: patienceMs });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => {
      stdout += String(chunk);
    });
    child.stderr.on('data', (chunk) => {
      stderr += String(chunk);
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}
