/** Starting simulated engines as separate processes. */
import { type ChildProcess, fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { EngineOptions } from './engine.js';

export interface EngineProcess {
  readonly url: string;
  readonly pid: number;
  /** Ends the process and resolves when it is gone. */
  stop(): Promise<void>;
}

/** Starts an engine in its own process and waits until it listens. The child ends with this process at the latest. */
export async function spawnEngine(options: EngineOptions = {}): Promise<EngineProcess> {
  const child = fork(fileURLToPath(new URL('./main.ts', import.meta.url)), [JSON.stringify(options)], {
    execArgv: ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('message', (message: { url: string }) => resolve(message.url));
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the engine process ended with code ${code}`)));
  });
  return { url, pid: child.pid as number, stop: () => stop(child) };
}

function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}
