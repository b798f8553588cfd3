/**
 * The shape of `src`: layers with imports only downwards, entry points beside the router that use its public surface
 * only, nothing ambient, no state in modules. Read off the syntax trees; every exception is listed with its reason.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const sourceDirectory = new URL('../src/', import.meta.url);

interface Import {
  readonly from: string;
  /** A file of `src`, or the bare name of a package. */
  readonly to: string;
  readonly typeOnly: boolean;
}

interface SourceModule {
  readonly path: string;
  readonly text: string;
  readonly tree: ts.SourceFile;
  /** Every node of the tree. */
  readonly nodes: readonly ts.Node[];
  readonly imports: readonly Import[];
}

const modules: readonly SourceModule[] = readdirSync(sourceDirectory, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .sort()
  .map((path) => {
    const text = readFileSync(new URL(path, sourceDirectory), 'utf8');
    const tree = ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true);
    return { path, text, tree, nodes: nodesOf(tree), imports: importsOf(path, tree) };
  });
const allImports = modules.flatMap(({ imports }) => imports);

/**
 * Lowest first. A module may import from its own layer and from those before it. The longest match counts; what is listed
 * nowhere is `router`.
 */
const layers: readonly { readonly name: string; readonly holds: readonly string[] }[] = [
  { name: 'runtime', holds: ['runtime/'] },
  { name: 'ground', holds: ['errors.ts', 'headers.ts', 'options/'] },
  { name: 'parts', holds: ['workers/', 'load/', 'prefix/', 'hashing/', 'sticky/'] },
  { name: 'policies', holds: ['request.ts', 'selection.ts', 'policies/'] },
  { name: 'pool', holds: ['router-options.ts', 'policies/create.ts', 'pool.ts'] },
  { name: 'router', holds: [] },
  { name: 'index', holds: ['index.ts'] },
];

/** Beside the router: they see what a host sees. */
const entryPoints = ['engines', 'metrics', 'testing'] as const;

/** The contract between the layers: imported from below too. */
const contract: ReadonlyMap<string, string> = new Map([
  ['policies/policy.ts', 'what a policy is: parts and options are written against it; it imports nothing but types'],
  ['policies/explanation.ts', 'the shape of an explanation; types only'],
  ['request.ts', 'the request as everything below the router reads it; below the policies, types only'],
  ['lease-outcome.ts', 'the shape of an outcome; types only'],
]);

/** Values that an entry point imports although the public surface lacks them. */
const entryPointExceptions: ReadonlyMap<string, string> = new Map([
  ['errors.ts', 'how errors are worded; no state, and the public classes live there'],
  ['runtime/all-of.ts', 'how lists from outside are checked; a pure function'],
  ['runtime/random.ts', 'seededRandom, which `kvroute` exports as well'],
  ['load/report.ts', 'reads the fields of the public type LoadReport'],
]);

/** Packages, and the one module that may touch each (LB-61). */
const packages: ReadonlyMap<string, string> = new Map([
  ['eventemitter3', 'event-hub.ts'],
  ['lru-cache', 'workers/request-scopes.ts'],
  ['xxhash-wasm', 'runtime/hash.ts'],
]);

describe('layers', () => {
  it('imports go downwards only, contract files aside', () => {
    const upwards = allImports.filter(
      ({ from, to, typeOnly }) =>
        !isEntryPoint(from) &&
        to.endsWith('.ts') &&
        layerOf(to) > layerOf(from) &&
        !(contract.has(to) && (typeOnly || to === 'policies/policy.ts')),
    );
    expect(upwards.map(asText)).toEqual([]);
  });

  it('the policy contract imports nothing but types', () => {
    const values = allImports.filter(({ from, typeOnly }) => from === 'policies/policy.ts' && !typeOnly);
    expect(values.map(asText)).toEqual([]);
  });

  it('no module imports itself, by whatever way round', () => {
    expect(cycles()).toEqual([]);
  });

  it('nothing imports an entry point, and none another one', () => {
    const intoEntryPoints = allImports.filter(({ from, to }) => isEntryPoint(to) && folderOf(from) !== folderOf(to));
    expect(intoEntryPoints.map(asText)).toEqual([]);
  });

  it('engines, metrics and testing take values from the public surface only', () => {
    const values = allImports.filter(
      ({ from, to, typeOnly }) =>
        isEntryPoint(from) &&
        folderOf(from) !== folderOf(to) &&
        !typeOnly &&
        to !== 'index.ts' &&
        !entryPointExceptions.has(to),
    );
    expect(values.map(asText)).toEqual([]);
  });

  it('every exception is needed', () => {
    const imported = new Set(allImports.filter(({ from, to }) => layerOf(to) > layerOf(from)).map(({ to }) => to));
    expect([...contract.keys()].filter((path) => !imported.has(path))).toEqual([]);
    const taken = new Set(
      allImports.filter(({ from, typeOnly }) => isEntryPoint(from) && !typeOnly).map(({ to }) => to),
    );
    expect([...entryPointExceptions.keys()].filter((path) => !taken.has(path))).toEqual([]);
  });

  it('LB-61: each dependency is imported by one module, and tslib by the compiler', () => {
    const bare = allImports.filter(({ to }) => !to.endsWith('.ts'));
    expect(bare.map(({ from, to }) => [to, from]).sort()).toEqual([...packages].sort());
    const { dependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    expect(Object.keys(dependencies).sort()).toEqual([...packages.keys(), 'tslib'].sort());
  });
});

describe('purity', () => {
  it('LB-1, LB-2: the global scope is read in four places, and no ambient name anywhere else', () => {
    const ambient =
      /^(globalThis|process|console|require|module|Buffer|Deno|Bun|self|window|document|navigator|performance|fetch|crypto|setTimeout|setInterval|setImmediate|queueMicrotask|eval|Function|Date|WeakRef|FinalizationRegistry)$/;
    const found = modules.flatMap(({ path, nodes }) =>
      nodes
        .filter(ts.isIdentifier)
        .filter((node) => ambient.test(node.text) && isReference(node))
        .map((node) => `${path}: ${node.text}`),
    );
    expect(found).toEqual([
      'engines/payload.ts: globalThis', // TextDecoder
      'runtime/clock.ts: globalThis', // the default clock
      'runtime/random.ts: globalThis', // the default generator
      'runtime/words.ts: globalThis', // a faster fill, where there is a Buffer
    ]);
  });

  it('LB-2: Math.random is called in one place', () => {
    const found = modules.filter(({ text }) => /Math\)?\.random\(\)/.test(text.replace(/^\s*(\*|\/\/).*$/gm, '')));
    expect(found.map(({ path }) => path)).toEqual(['runtime/random.ts']);
  });

  it('LB-4: no top-level await and no import at run time', () => {
    const found = modules.flatMap(({ path, nodes }) =>
      nodes
        .filter(
          (node) =>
            (ts.isAwaitExpression(node) && enclosingFunction(node) === undefined) ||
            (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword),
        )
        .map((node) => `${path}: ${node.getText()}`),
    );
    expect(found).toEqual([]);
  });

  it('LB-3: no module keeps state, but for the one compiled hash', () => {
    const variables = modules.flatMap(({ path, tree }) =>
      tree.statements
        .filter(ts.isVariableStatement)
        .filter(({ declarationList }) => (declarationList.flags & ts.NodeFlags.Const) === 0)
        .flatMap(({ declarationList }) => declarationList.declarations.map(({ name }) => `${path}: ${name.getText()}`)),
    );
    // Compiling WebAssembly once is its point; every caller would get an equal function anyway (B89).
    expect(variables).toEqual(['runtime/hash.ts: shared']);
    const statics = modules.flatMap(({ path, nodes }) =>
      nodes
        .filter(ts.isPropertyDeclaration)
        .filter((node) => hasModifier(node, ts.SyntaxKind.StaticKeyword))
        .filter((node) => !hasModifier(node, ts.SyntaxKind.ReadonlyKeyword))
        .map(({ name }) => `${path}: ${name.getText()}`),
    );
    expect(statics).toEqual([]);
  });

  it('LB-3: the constants of modules are never written to', () => {
    expect(modules.flatMap(writesToConstants)).toEqual([]);
  });

  it('the only inheritance is from errors', () => {
    const bases = modules.flatMap(({ nodes }) =>
      nodes
        .filter(ts.isHeritageClause)
        .filter(({ token, parent }) => token === ts.SyntaxKind.ExtendsKeyword && ts.isClassDeclaration(parent))
        .flatMap(({ types }) => types.map(({ expression }) => expression.getText())),
    );
    expect([...new Set(bases)].sort()).toEqual(['Error', 'KvRouteError']);
  });
});

describe('public types', () => {
  it('optional properties take undefined, for consumers with exactOptionalPropertyTypes', () => {
    const entries = modules.filter(
      ({ path }) => path === 'index.ts' || entryPoints.some((name) => path === `${name}/index.ts`),
    );
    const names = new Set(
      entries.flatMap(({ nodes }) => nodes.filter(ts.isExportSpecifier).map(({ name }) => name.text)),
    );
    const found = modules.flatMap(({ nodes }) =>
      nodes
        .filter(
          (node) => ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isClassDeclaration(node),
        )
        .filter(({ name }) => name !== undefined && names.has(name.text))
        .flatMap((declaration) =>
          nodesOf(declaration)
            .filter((node) => ts.isPropertySignature(node) || ts.isPropertyDeclaration(node))
            .filter(({ questionToken, type }) => questionToken !== undefined && !takesUndefined(type))
            .map(({ name }) => `${declaration.name?.text}.${name.getText()}`),
        ),
    );
    // Rows of a constant table: consumers read them and make none.
    expect(found).toEqual(['MetricRow.values', 'MetricRow.buckets']);
  });
});

describe('reading', () => {
  it('every file opens with what it is', () => {
    expect(modules.filter(({ text }) => !text.startsWith('/**')).map(({ path }) => path)).toEqual([]);
  });

  it('no file is over 400 lines', () => {
    expect(modules.filter(({ text }) => text.split('\n').length > 401).map(({ path }) => path)).toEqual([]);
  });
});

function importsOf(path: string, tree: ts.SourceFile): Import[] {
  const imports: Import[] = [];
  for (const node of tree.statements) {
    if (!ts.isImportDeclaration(node) && !ts.isExportDeclaration(node)) continue;
    if (node.moduleSpecifier === undefined) continue;
    const name = (node.moduleSpecifier as ts.StringLiteral).text;
    const to = name.startsWith('.') ? posix.join(posix.dirname(path), name).replace(/\.js$/, '.ts') : name;
    imports.push({ from: path, to, typeOnly: isTypeOnly(node) });
  }
  return imports;
}

function isTypeOnly(node: ts.ImportDeclaration | ts.ExportDeclaration): boolean {
  if (ts.isExportDeclaration(node)) {
    const { exportClause } = node;
    if (node.isTypeOnly) return true;
    return (
      exportClause !== undefined && ts.isNamedExports(exportClause) && exportClause.elements.every((e) => e.isTypeOnly)
    );
  }
  const clause = node.importClause;
  if (clause === undefined) return false;
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  const { namedBindings } = clause;
  return (
    clause.name === undefined &&
    namedBindings !== undefined &&
    ts.isNamedImports(namedBindings) &&
    namedBindings.elements.every((element) => element.isTypeOnly)
  );
}

function layerOf(path: string): number {
  let layer = layers.findIndex(({ name }) => name === 'router');
  let matched = '';
  for (const [i, { holds }] of layers.entries()) {
    for (const name of holds) {
      if (name.length > matched.length && path.startsWith(name)) [layer, matched] = [i, name];
    }
  }
  return layer;
}

function folderOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : '';
}

function isEntryPoint(path: string): boolean {
  return entryPoints.some((name) => path.startsWith(`${name}/`));
}

function asText({ from, to, typeOnly }: Import): string {
  return `${from} imports ${typeOnly ? 'types of ' : ''}${to}`;
}

/** Modules that reach themselves through imports of values. */
function cycles(): string[] {
  const next = new Map(
    modules.map(({ path, imports }) => [path, imports.filter(({ typeOnly }) => !typeOnly).map(({ to }) => to)]),
  );
  return [...next.keys()].filter((start) => {
    const seen = new Set<string>();
    const waiting = [...(next.get(start) ?? [])];
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (path === start) return true;
      if (seen.has(path)) continue;
      seen.add(path);
      waiting.push(...(next.get(path) ?? []));
    }
    return false;
  });
}

function nodesOf(tree: ts.Node): ts.Node[] {
  const nodes: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    nodes.push(node);
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return nodes;
}

/** Whether an identifier stands for a value: not a property, a member's name, a type or a declaration. */
function isReference(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node;
  if (ts.isTypeReferenceNode(parent) || ts.isTypeElement(parent) || ts.isQualifiedName(parent)) return false;
  if (ts.isModuleDeclaration(parent) || ts.isClassElement(parent) || ts.isBindingElement(parent)) return false;
  return !(ts.isVariableDeclaration(parent) || ts.isParameter(parent)) || parent.initializer === node;
}

function takesUndefined(type: ts.TypeNode | undefined): boolean {
  if (type === undefined) return false;
  if (ts.isUnionTypeNode(type)) return type.types.some(takesUndefined);
  return type.kind === ts.SyntaxKind.UndefinedKeyword || type.kind === ts.SyntaxKind.UnknownKeyword;
}

function hasModifier(node: ts.PropertyDeclaration, kind: ts.SyntaxKind): boolean {
  return node.modifiers?.some((modifier) => modifier.kind === kind) ?? false;
}

function enclosingFunction(node: ts.Node): ts.Node | undefined {
  return ts.findAncestor(node, ts.isFunctionLike);
}

/** Assignments to members of a module's constants, and calls of methods that change a collection. */
function writesToConstants({ path, tree, nodes }: SourceModule): string[] {
  const constants = new Set<string>();
  for (const statement of tree.statements) {
    if (ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations) constants.add(name.getText());
    }
    if (ts.isImportDeclaration(statement)) {
      const bindings = statement.importClause?.namedBindings;
      if (bindings !== undefined && ts.isNamedImports(bindings)) {
        for (const { name } of bindings.elements) constants.add(name.text);
      }
    }
  }
  const changing = /^(set|add|delete|clear|push|pop|shift|unshift|splice|sort|reverse|fill|copyWithin)$/;
  const rootOf = (node: ts.Node): ts.Node =>
    ts.isPropertyAccessExpression(node) || ts.isElementAccessExpression(node) ? rootOf(node.expression) : node;
  const isConstant = (node: ts.Node): boolean => {
    const root = rootOf(node);
    return ts.isIdentifier(root) && constants.has(root.text) && !isShadowed(root);
  };
  const found: string[] = [];
  for (const node of nodes) {
    const isWrite =
      (ts.isBinaryExpression(node) &&
        node.operatorToken.kind >= ts.SyntaxKind.FirstAssignment &&
        node.operatorToken.kind <= ts.SyntaxKind.LastAssignment &&
        !ts.isIdentifier(node.left) &&
        isConstant(node.left)) ||
      ((ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) &&
        (node.operator === ts.SyntaxKind.PlusPlusToken || node.operator === ts.SyntaxKind.MinusMinusToken) &&
        isConstant(node.operand)) ||
      (ts.isCallExpression(node) &&
        ts.isPropertyAccessExpression(node.expression) &&
        changing.test(node.expression.name.text) &&
        isConstant(node.expression.expression));
    if (isWrite) found.push(`${path}: ${node.getText()}`);
  }
  return found;
}

/** Whether a function around the identifier has a parameter or a variable of that name. */
function isShadowed(node: ts.Identifier): boolean {
  for (let scope = enclosingFunction(node); scope !== undefined; scope = enclosingFunction(scope.parent)) {
    const declares = nodesOf(scope).some(
      (inner) =>
        (ts.isParameter(inner) || ts.isVariableDeclaration(inner) || ts.isBindingElement(inner)) &&
        inner.name.getText() === node.text,
    );
    if (declares) return true;
  }
  return false;
}
