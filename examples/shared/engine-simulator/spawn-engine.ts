/** Simulated engines as separate processes. */
import { type ChildProcess, fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { EngineOptions } from './engine.js';

export interface EngineProcess {
  readonly pid: number;
  /** Where the engine listens now. */
  readonly url: string;
  /** Puts a fresh engine in the place of the old one: an empty cache, counters at 0, another port. */
  renew(): Promise<void>;
  /** Ends the process and resolves when it is gone. */
  stop(): Promise<void>;
}

/** Starts an engine in its own process and waits until it listens. The child ends with this process at the latest. */
export async function spawnEngine(options: EngineOptions = {}): Promise<EngineProcess> {
  const child = fork(fileURLToPath(new URL('./main.ts', import.meta.url)), [JSON.stringify(options)], {
    execArgv: ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  let url = await nextUrl(child);
  return {
    pid: child.pid as number,
    get url() {
      return url;
    },
    async renew() {
      child.send('renew');
      url = await nextUrl(child);
    },
    stop: () => stop(child),
  };
}

function nextUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const settle = (done: () => void) => {
      child.off('message', onMessage).off('error', onError).off('exit', onExit);
      done();
    };
    const onMessage = (message: unknown) => settle(() => resolve((message as { url: string }).url));
    const onError = (error: Error) => settle(() => reject(error));
    const onExit = (code: number | null) => settle(() => reject(new Error(`the engine process ended, code ${code}`)));
    child.on('message', onMessage).on('error', onError).on('exit', onExit);
  });
}

function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}
