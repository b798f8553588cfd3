/**
 * Checks as tasks: each does one thing and throws an `Error` that says what it found. `runTasks` runs at most two at a
 * time, since most of them start compilers, prints a line for each, and tells whether all of them passed.
 */
import { spawn } from 'node:child_process';

export interface Task {
  readonly name: string;
  /** Resolves with a remark for the line, if it has one. */
  run(): Promise<string | undefined> | string | undefined;
}

export async function runTasks(tasks: readonly Task[], atOnce = 2): Promise<boolean> {
  const started = performance.now();
  const waiting = [...tasks];
  let failures = 0;
  const work = async (): Promise<void> => {
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) {
      const begin = performance.now();
      const seconds = (): string => `${((performance.now() - begin) / 1000).toFixed(1)} s`;
      try {
        const remark = await task.run();
        console.log(`ok      ${task.name} (${seconds()})${remark === undefined ? '' : `: ${remark}`}`);
      } catch (error) {
        failures += 1;
        console.log(`FAILED  ${task.name} (${seconds()})\n${indented((error as Error).message)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const total = ((performance.now() - started) / 1000).toFixed(0);
  console.log(`${tasks.length - failures} of ${tasks.length} checks passed in ${total} s`);
  return failures === 0;
}

export interface ProgramOptions {
  readonly cwd: string;
  /** Sent SIGKILL after this many milliseconds. Default two minutes. */
  readonly timeoutMs?: number;
}

/** Runs Node with these arguments and resolves with its standard output. Anything but exit code 0 is an error. */
export function runNode(args: readonly string[], { cwd, timeoutMs = 120_000 }: ProgramOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd, timeout: timeoutMs, killSignal: 'SIGKILL' });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve(stdout);
      else reject(new Error(`exit ${code ?? signal}: node ${args.join(' ')}\n${readable(stdout + stderr)}`));
    });
  });
}

/** What a person can read of it: minified bundles quote themselves in full when they fail. */
function readable(output: string): string {
  return output
    .trimEnd()
    .split('\n')
    .slice(0, 40)
    .map((line) => (line.length > 300 ? `${line.slice(0, 300)}…` : line))
    .join('\n');
}

function indented(text: string): string {
  return text.replace(/^/gm, '        ');
}
