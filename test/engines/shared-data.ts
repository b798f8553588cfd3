/**
 * Recorded payloads next to the checkout. They are no part of the package: where the folder is missing, the tests that
 * read it are not registered, and one line says so.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('../../../shared/data/', import.meta.url);

/** The path of a data folder, or undefined (said on stderr) when it is not there. */
export function sharedData(folder: string): URL | undefined {
  const url = new URL(`${folder}/`, root);
  if (existsSync(fileURLToPath(url))) return url;
  process.stderr.write(`not run: the tests on ../shared/data/${folder}, the folder is not there\n`);
  return undefined;
}

export function readShared(folder: URL, name: string): string {
  return readFileSync(new URL(name, folder), 'utf8');
}
