/**
 * Writes the generated tables of the documentation between their markers, `<!-- options:cache_aware -->` to
 * `<!-- /options:cache_aware -->`: options with their defaults, ranges and the doc comment of their entry, the flags
 * that `fromFlags` translates, the router's events and the metrics. `npm run docs:options` writes them; a test fails when a page is
 * stale.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { metricTable } from '../../src/metrics/metric-table.js';
import { flagAliases, flagTable, hostTable } from '../../src/migrate/flag-table.js';
import type { NumberSpec, OptionSpec, OptionTable } from '../../src/options/spec.js';
import * as tables from '../../src/options/table.js';
import { runtimeTable } from '../../src/policies/runtime-options.js';
import { markdownFiles } from '../docs/pages.js';

const source = (path: string): string => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));

/** The option tables by the name their marker has. */
const optionTables: Readonly<Record<string, { readonly table: OptionTable; readonly constant: string }>> = {
  cache_aware: { table: tables.cacheAwareTable, constant: 'cacheAwareTable' },
  least_load: { table: tables.leastLoadTable, constant: 'leastLoadTable' },
  power_of_two: { table: tables.powerOfTwoTable, constant: 'powerOfTwoTable' },
  consistent_hashing: { table: tables.consistentHashingTable, constant: 'consistentHashingTable' },
  bucket: { table: tables.bucketTable, constant: 'bucketTable' },
  prefix_hash: { table: tables.prefixHashTable, constant: 'prefixHashTable' },
  manual: { table: tables.manualTable, constant: 'manualTable' },
  override: { table: tables.overrideTable, constant: 'overrideTable' },
  router: { table: tables.routerTable, constant: 'routerTable' },
  circuit_breaker: { table: tables.circuitBreakerTable, constant: 'circuitBreakerTable' },
  health: { table: tables.healthTable, constant: 'healthTable' },
  retry: { table: tables.retryTable, constant: 'retryTable' },
  worker_overload: { table: tables.workerOverloadTable, constant: 'workerOverloadTable' },
  worker_resilience: { table: tables.workerResilienceTable, constant: 'workerResilienceTable' },
};

const marker = /<!-- (options|flags|events|metrics):([\w-]+) -->\n[\s\S]*?<!-- \/\1:\2 -->/g;

/** A page with its generated tables as they should be. @throws Error for a marker that names no table */
export function withTables(markdown: string): string {
  return markdown.replace(
    marker,
    (_, kind: string, name: string) => `<!-- ${kind}:${name} -->\n${tableOf(kind, name)}\n<!-- /${kind}:${name} -->`,
  );
}

function tableOf(kind: string, name: string): string {
  if (kind === 'events') return eventsTable();
  if (kind === 'flags') return flagsTable();
  if (kind === 'metrics') return metricsTable();
  if (name === 'runtime')
    return optionsTable(runtimeTable, memberDocs('policies/runtime-options.ts', 'RuntimeOptions'));
  if (name === 'host') return optionsTable(hostTable, propertyDocs('migrate/flag-table.ts', 'hostTable'));
  const known = optionTables[name];
  if (known === undefined) throw new Error(`no table of options is called ${name}`);
  return optionsTable(known.table, propertyDocs('options/table.ts', known.constant));
}

function optionsTable(table: OptionTable, docs: ReadonlyMap<string, string>): string {
  const rows = Object.entries(table).map(([name, spec]) => {
    const unit = 'unit' in spec && spec.unit !== undefined ? spec.unit : '';
    return [`\`${name}\``, defaultText(spec), acceptedText(spec), unit, docs.get(name) ?? '', spec.id];
  });
  return markdownTable(['Option', 'Default', 'Accepted', 'Unit', 'Meaning', 'Id'], rows);
}

function defaultText(spec: OptionSpec): string {
  if (spec.kind === 'section') return 'see below';
  const value: unknown = 'default' in spec ? spec.default : undefined;
  if (value === undefined) return 'unset';
  if (typeof value === 'number') return code(literal(value));
  if (Array.isArray(value)) return code(`[${value.map((item) => literal(item)).join(', ')}]`);
  return code(literal(value));
}

function literal(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  return String(value).replace(/\B(?=(\d{3})+$)/g, typeof value === 'number' && value >= 10_000 ? '_' : '');
}

function acceptedText(spec: OptionSpec): string {
  switch (spec.kind) {
    case 'number':
    case 'integer':
      return rangeOf(spec);
    case 'boolean':
      return '`true`, `false`';
    case 'choice':
      return spec.values.map((value) => `\`'${value}'\``).join(', ');
    case 'ascending':
      return 'positive integers, ascending';
    case 'headerNames':
      return 'legal header names';
    case 'statusCodes':
      return 'HTTP status codes';
    case 'section':
      return 'an object';
    case 'opaque':
      return '';
  }
}

function rangeOf({ kind, min, max, above, infinite }: NumberSpec): string {
  const noun = kind === 'integer' ? 'integer ' : '';
  const last = infinite === true ? ', or `Infinity`' : '';
  if (above !== undefined) return `${noun}> ${above}${max === undefined ? last : `, ≤ ${max}`}`;
  return max === undefined ? `${noun}≥ ${min}${last}` : `${noun}${min} to ${max}`;
}

function flagsTable(): string {
  const aliasesOf = (flag: string): string =>
    Object.entries(flagAliases)
      .filter(([, known]) => known === flag)
      .map(([alias]) => ` (\`--${alias}\`)`)
      .join('');
  const rows = Object.entries(flagTable).map(([flag, { as, option, policies, section, sets }]) => {
    const set = sets === undefined ? '' : ` = \`${literal(sets)}\``;
    const place = policies?.map((policy) => `${policy}.${option}`) ?? [section ? `${section}.${option}` : option];
    return [
      `\`--${flag}\`${aliasesOf(flag)}`,
      place.map(code).join(', ') + set,
      as === 'seconds' ? 'seconds → ms' : '',
    ];
  });
  return markdownTable(['Flag', 'Option', 'Unit'], rows);
}

function metricsTable(): string {
  const rows = Object.values(metricTable).map(({ id, name, type, help, labels, setBy }) => {
    return [code(name), type, labels.map(code).join(', '), help, setBy, id];
  });
  return markdownTable(['Metric', 'Type', 'Labels', 'Meaning', 'Set by', 'Id'], rows);
}

function eventsTable(): string {
  const file = parse('events.ts');
  const rows = membersOf(file, 'RouterEvents').map((member) => {
    const type = member.type?.getText(file).replace(/\s+/g, ' ').replaceAll('readonly ', '').replace('; }', ' }') ?? '';
    return [`\`${member.name.getText(file)}\``, code(type), docOf(member)];
  });
  return markdownTable(['Event', 'Payload', 'Notes'], rows);
}

/** The doc comments of a table's entries, also of those it takes from other tables of its file. */
function propertyDocs(path: string, constant: string): ReadonlyMap<string, string> {
  const file = parse(path);
  const initializers = new Map<string, ts.Expression>();
  for (const statement of file.statements.filter(ts.isVariableStatement)) {
    for (const { name, initializer } of statement.declarationList.declarations) {
      if (initializer !== undefined) initializers.set(name.getText(file), initializer);
    }
  }
  const docs = new Map<string, string>();
  const collect = (node: ts.Node): void => {
    const other = ts.isIdentifier(node) ? initializers.get(node.text) : undefined;
    if (other !== undefined) collect(other);
    else if (ts.isPropertyAssignment(node) && docOf(node) !== '') docs.set(node.name.getText(file), docOf(node));
    else ts.forEachChild(node, collect);
  };
  const table = initializers.get(constant);
  if (table !== undefined) collect(table);
  return docs;
}

function memberDocs(path: string, name: string): ReadonlyMap<string, string> {
  const file = parse(path);
  return new Map(membersOf(file, name).map((member) => [member.name.getText(file), docOf(member)]));
}

function parse(path: string): ts.SourceFile {
  return ts.createSourceFile(path, readFileSync(source(path), 'utf8'), ts.ScriptTarget.ES2022, true);
}

function membersOf(file: ts.SourceFile, name: string): readonly ts.PropertySignature[] {
  const declared = file.statements.find(
    (statement): statement is ts.InterfaceDeclaration =>
      ts.isInterfaceDeclaration(statement) && statement.name.text === name,
  );
  if (declared === undefined) throw new Error(`${file.fileName} declares no interface ${name}`);
  return declared.members.filter(ts.isPropertySignature);
}

function docOf(node: ts.Node): string {
  return ts
    .getJSDocCommentsAndTags(node)
    .map((doc) => (ts.isJSDoc(doc) ? (ts.getTextOfJSDocComment(doc.comment) ?? '') : ''))
    .join(' ')
    .replace(/\s+/g, ' ');
}

function code(text: string): string {
  return `\`${text}\``;
}

function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(header), `|${header.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const path of markdownFiles()) {
    const before = readFileSync(path, 'utf8');
    const after = withTables(before);
    if (after === before) continue;
    writeFileSync(path, after);
    console.log(`wrote ${path}`);
  }
}
