/** Runs one function row and compares the fields it expects. */
import type { Difference } from './decision-row.js';
import { rowFunctions } from './functions.js';
import { type FunctionRow, UnmappableRow } from './row.js';

/** Fields of which a row names only the parts it asserts. */
const subsetFields = ['options', 'rank', 'ranks', 'policy', 'counts'];

export async function runFunctionRow(row: FunctionRow): Promise<Difference | undefined> {
  const run = Object.hasOwn(rowFunctions, row.name) ? rowFunctions[row.name] : undefined;
  if (run === undefined) throw new UnmappableRow(`function ${row.name} is unknown`);
  const came = await run(row.request);
  for (const [field, expected] of Object.entries(row.expect)) {
    if (!(field in came)) return { expected: `${field} ${show(expected)}`, came: show(came) };
    const isSubset = subsetFields.includes(field);
    if (!matches(came[field], expected, isSubset)) {
      return { expected: `${field} ${show(expected)}`, came: show(came[field]) };
    }
  }
  return undefined;
}

/** Equal values; sets (of tenants) in any order; of options and ranks only the fields that are expected. */
function matches(came: unknown, expected: unknown, subset: boolean): boolean {
  if (typeof expected !== 'object' || expected === null) return Object.is(came, expected);
  if (typeof came !== 'object' || came === null || Array.isArray(came) !== Array.isArray(expected)) return false;
  if (Array.isArray(expected) && expected.every((item) => typeof item === 'string')) {
    return show([...(came as string[])].sort()) === show([...expected].sort());
  }
  const keys = Object.keys(expected);
  if ((!subset || Array.isArray(came)) && Object.keys(came).length !== keys.length) return false;
  return keys.every((key) => matches(Reflect.get(came, key), Reflect.get(expected, key), subset));
}

function show(value: unknown): string {
  return JSON.stringify(value) ?? 'undefined';
}
