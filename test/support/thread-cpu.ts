/**
 * CPU time of the main thread in milliseconds. Node 20 tells only that of the whole process, compiler and collector threads
 * included; Linux keeps one for each thread, up to date whenever the process has just been asked for its own. Elsewhere the
 * time of the process has to do, which is more.
 */
import { existsSync, openSync, readSync } from 'node:fs';

const path = `/proc/self/task/${process.pid}/schedstat`;
const file = existsSync(path) ? openSync(path, 'r') : undefined;
const buffer = Buffer.alloc(64);

/** Whether `threadCpuMs` is exactly what its name says. */
export const isPerThread: boolean = file !== undefined;

export function threadCpuMs(): number {
  const { user, system } = process.cpuUsage();
  if (file === undefined) return (user + system) / 1000;
  const length = readSync(file, buffer, 0, buffer.length, 0);
  return Number.parseInt(buffer.toString('latin1', 0, length), 10) / 1e6;
}
