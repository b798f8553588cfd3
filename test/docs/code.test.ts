/**
 * The code of the documentation: every ```ts block compiles against the sources under the strict settings of the
 * project, and what is not marked `no-run` runs and prints what the comments behind its `console.log` lines say. And the
 * API reference: every exported name has a doc comment, and names that users compare are explained in the docs.
 */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { format } from 'node:util';
import ts from 'typescript';
import { describe, expect, it, vi } from 'vitest';
import { root } from './pages.js';
import { docsProgram, entryPoints, modules, pathOf } from './program.js';

const program = docsProgram();
const checker = program.getTypeChecker();

describe.each(modules)('the code of $name', (module) => {
  it('LB-63: compiles', () => {
    const file = program.getSourceFile(pathOf(module)) as ts.SourceFile;
    const found = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
    const messages = found.map(({ start = 0, messageText }) => {
      const { line } = ts.getLineAndCharacterOfPosition(file, start);
      return `${module.page}:${line + 1} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    });
    expect(messages).toEqual([]);
  }, 60_000);

  if (!module.runs) return;
  it('LB-63: runs and prints what it says', async () => {
    const printed: string[] = [];
    const log = vi.spyOn(console, 'log').mockImplementation((...values) => {
      printed.push(oneLine(format(...values)));
    });
    try {
      await import(pathOf(module));
    } finally {
      log.mockRestore();
    }
    const promised = [...module.code.matchAll(/console\.log\(.*\/\/ → (.*)$/gm)].map(([, text = '']) => oneLine(text));
    expect(printed).toEqual(promised);
  });
});

it('LB-63: there is code to check', () => {
  expect(modules.filter(({ runs }) => runs).length).toBeGreaterThan(10);
});

describe.each(entryPoints.map((path) => ({ path, entry: relative(root, path) })))(
  'the exports of $entry',
  ({ path }) => {
    it('LB-63: exist and have doc comments, their methods too', () => {
      expect(exportsOf(path).length).toBeGreaterThan(0);
      const missing = exportsOf(path).flatMap((exported) => {
        const symbol = original(exported);
        const methods = methodsOf(symbol).filter((method) => !isDocumented(method));
        const own = isDocumented(symbol) ? [] : [exported.name];
        return [...own, ...methods.map((method) => `${exported.name}.${method.name}`)];
      });
      expect(missing).toEqual([]);
    });
  },
);

describe('LB-63: names a user compares', () => {
  it.each([
    ['events-and-errors.md', ['WarningCode', 'SelectionReason', 'SelectionCode', 'LeaseEnd', 'ReportLoss']],
    ['engines.md', ['NoReportReason', 'LoadReportKind', 'RequestKind']],
  ])('%s explains every one of %j', (page, types) => {
    const text = readFileSync(join(root, 'docs', page), 'utf8');
    for (const type of types) {
      const names = literalsOf(type);
      expect(names.length, type).toBeGreaterThan(2);
      for (const name of names) expect(text).toContain(`\`${name}\``);
    }
  });
});

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function exportsOf(path: string): readonly ts.Symbol[] {
  const file = program.getSourceFile(path);
  const module = file && checker.getSymbolAtLocation(file);
  return module === undefined ? [] : checker.getExportsOfModule(module);
}

function original(symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

function isDocumented(symbol: ts.Symbol): boolean {
  return symbol.getDocumentationComment(checker).length > 0;
}

/** Methods a user calls: those of classes and interfaces, `@internal` ones left out. */
function methodsOf(symbol: ts.Symbol): readonly ts.Symbol[] {
  if (!(symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface))) return [];
  return [...(symbol.members?.values() ?? [])].filter((member) => {
    const isPublic = !member.name.startsWith('__') && !member.name.startsWith('#');
    const isInternal = member.getJsDocTags(checker).some((tag) => tag.name === 'internal');
    return isPublic && !isInternal && (member.flags & ts.SymbolFlags.Method) !== 0;
  });
}

/** The members of a union of string literals. */
function literalsOf(name: string): string[] {
  const symbol = entryPoints.flatMap((path) => exportsOf(path)).find((exported) => exported.name === name);
  const type = symbol && checker.getDeclaredTypeOfSymbol(original(symbol));
  return (type?.isUnion() ? type.types : []).flatMap((member) => (member.isStringLiteral() ? member.value : []));
}
