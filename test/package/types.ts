/**
 * The declarations in the eyes of every supported compiler (LB-60): one consumer, compiled as ESM and as CommonJS under
 * each module resolution, with `skipLibCheck: false` and `exactOptionalPropertyTypes`. The library the consumer compiles
 * against differs from row to row: without any (`Symbol.dispose` has to come with the package) up to the newest (the
 * package's declaration must not clash with the compiler's own).
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Consumer, root } from './tarball.js';
import { runNode, type Task } from './task.js';

/** The compilers, oldest first, under the names they are installed by. */
const compilers = [
  { version: '5.0.4', name: 'typescript-5.0' },
  { version: '5.4.5', name: 'typescript-5.4' },
  { version: '5.9.3', name: 'typescript-5.9' },
  { version: '6.0.3', name: 'typescript' },
  { version: '7.0.2', name: 'typescript-7.0' },
] as const;

interface Row {
  readonly name: string;
  /** The extension of the consumer's file decides its format under node16 and nodenext. */
  readonly file: 'consumer.mts' | 'consumer.cts' | 'consumer.ts';
  readonly options: Readonly<Record<string, unknown>>;
  /** Both formats in one program. */
  readonly alsoEsm?: true;
  /** The first compiler that knows the options. */
  readonly since?: string;
}

const rows: readonly Row[] = [
  { name: 'ESM node16', file: 'consumer.mts', options: { module: 'node16', lib: ['es2022'] } },
  { name: 'CJS node16', file: 'consumer.cts', options: { module: 'node16', lib: ['es2022'] } },
  { name: 'ESM nodenext', file: 'consumer.mts', options: { module: 'nodenext', lib: ['es2023'] } },
  {
    name: 'CJS nodenext, with ESM in one program',
    file: 'consumer.cts',
    options: { module: 'nodenext', lib: ['esnext', 'dom'] },
    alsoEsm: true,
  },
  {
    name: 'ESM bundler',
    file: 'consumer.ts',
    options: { module: 'esnext', moduleResolution: 'bundler', lib: ['esnext', 'dom'] },
  },
  {
    name: 'CJS bundler',
    file: 'consumer.cts',
    options: { module: 'preserve', moduleResolution: 'bundler', lib: ['es2022'] },
    since: '5.4',
  },
];

export function typeTasks(consumer: Consumer): Task[] {
  const source = readFileSync(new URL('fixtures/types/consumer.ts', import.meta.url), 'utf8');
  return compilers.flatMap(({ version, name }) =>
    rows
      .filter(({ since }) => since === undefined || version >= since)
      .map((row, i) => ({
        name: `types: TypeScript ${version}, ${row.name}`,
        run: async () => {
          const compiler = join(root, 'node_modules', name);
          const installed = JSON.parse(readFileSync(join(compiler, 'package.json'), 'utf8')).version;
          if (installed !== version) throw new Error(`${name} is ${installed}`);
          const project = join(consumer.directory, `types-${version}-${i}`);
          writeProject(project, row, source);
          await runNode([join(compiler, 'bin', 'tsc'), '-p', project], { cwd: project });
          return undefined;
        },
      })),
  );
}

function writeProject(project: string, row: Row, source: string): void {
  mkdirSync(project);
  // `preserve` keeps the form of each import: a CommonJS file says `require`.
  const text = row.options.module === 'preserve' ? asRequires(source) : source;
  writeFileSync(join(project, row.file), text);
  if (row.alsoEsm) writeFileSync(join(project, 'consumer.mts'), source);
  const config = {
    compilerOptions: {
      target: 'es2022',
      types: [],
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noPropertyAccessFromIndexSignature: true,
      noEmit: true,
      skipLibCheck: false,
      // The compiler's own libraries are checked once, where both formats and the newest library meet: they take longest.
      skipDefaultLibCheck: row.alsoEsm !== true,
      ...row.options,
    },
    files: [row.file, ...(row.alsoEsm ? ['consumer.mts'] : [])],
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config));
}

/** The same program, asking for the CommonJS build in CommonJS's own words. */
function asRequires(source: string): string {
  let count = 0;
  return source.replace(/^import \{([^}]*)\} from ('[^']+');$/gm, (_, names: string, from: string) => {
    const module = `module${count++}`;
    const aliases = names
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '')
      .map((name) => {
        const plain = name.replace('type ', '');
        return `${name === plain ? 'import' : 'type'} ${plain} = ${module}.${plain};`;
      });
    return [`import ${module} = require(${from});`, ...aliases].join('\n');
  });
}
