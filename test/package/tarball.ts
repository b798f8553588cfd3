/**
 * The package as a consumer gets it: packed, unpacked into the `node_modules` of an empty directory, with the
 * dependencies that `package.json` names beside it and nothing else. No network.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

export interface Consumer {
  /** A directory with `node_modules/kvroute`. */
  readonly directory: string;
  readonly tarball: string;
  /** Paths of the files in the tarball. */
  readonly files: readonly string[];
}

/** Packs what `npm run build` left in `dist` and installs it. The directory goes when the process ends. */
export function installTarball(): Consumer {
  checkBuild();
  const directory = mkdtempSync(join(tmpdir(), 'kvroute-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const pack = spawnSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', directory], {
    cwd: root,
    encoding: 'utf8',
  });
  if (pack.status !== 0) throw new Error(`npm pack failed\n${pack.stderr}`);
  const packed = JSON.parse(pack.stdout);
  // npm 12 keys the list by name.
  const { filename, files } = Array.isArray(packed) ? packed[0] : Object.values<typeof packed>(packed)[0];
  const tarball = join(directory, filename);
  const modules = join(directory, 'node_modules');
  const target = join(modules, 'kvroute');
  mkdirSync(target, { recursive: true });
  const tar = spawnSync('tar', ['-xzf', tarball, '-C', target, '--strip-components=1'], { encoding: 'utf8' });
  if (tar.status !== 0) throw new Error(`tar failed\n${tar.stderr}`);
  const { dependencies } = JSON.parse(readFileSync(join(target, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    symlinkSync(join(root, 'node_modules', name), join(modules, name), 'dir');
  }
  return { directory, tarball, files: files.map(({ path }: { path: string }) => path) };
}

/** A check of an old build would prove nothing. */
function checkBuild(): void {
  const newest = (directory: string): number => {
    const times = readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs);
    return Math.max(...times);
  };
  let built: number;
  try {
    built = newest(join(root, 'dist'));
  } catch {
    throw new Error('dist is missing: npm run build');
  }
  if (newest(join(root, 'src')) > built) throw new Error('dist is older than src: npm run build');
}
