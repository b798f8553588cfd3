/** Bytes in use after a collection: what a loop that should keep nothing is measured by, and what entries take. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

export function heapAfterCollection(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** The same with array buffers. Twice, with a pause: their memory is given back in the background. */
export async function memoryAfterCollection(pauseMs: number): Promise<number> {
  for (let i = 0; i < 2; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
