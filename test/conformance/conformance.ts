/** Runs the rows of a conformance file (CC-10). */
import { loadHash } from 'kvroute';
import { type Difference, runDecisionRow } from './decision-row.js';
import { runFunctionRow } from './function-row.js';
import { isFunctionRow, readRow } from './row.js';

export interface RowResult {
  /** The row's id, or where it stands when it has none. */
  readonly id: string;
  /** What differed; undefined when the row passed. */
  readonly difference: Difference | undefined;
}

/** Runs one line. A row that cannot be read or mapped has failed, whatever the reason. */
export async function runLine(line: string, place: string): Promise<RowResult> {
  let id = place;
  try {
    const value: unknown = JSON.parse(line);
    id = idOf(value) ?? place;
    const row = readRow(value);
    const difference = isFunctionRow(row) ? await runFunctionRow(row) : await runDecisionRow(row, await loadHash());
    return { id, difference };
  } catch (error) {
    return {
      id,
      difference: { expected: 'a row that runs', came: error instanceof Error ? error.message : `${error}` },
    };
  }
}

/** The rows of a file's text; blank lines are none. */
export function linesOf(content: string, file: string): { readonly line: string; readonly place: string }[] {
  return content
    .split('\n')
    .map((line, i) => ({ line: line.trim(), place: `${file}:${i + 1}` }))
    .filter(({ line }) => line !== '');
}

/** The one line that reports a failed row. */
export function failureLine({ id, difference }: RowResult): string {
  return `${id}: expected ${oneLine(difference?.expected)}, came ${oneLine(difference?.came)}`;
}

function oneLine(value: string | undefined): string {
  return (value ?? '').replaceAll(/\s+/g, ' ');
}

function idOf(value: unknown): string | undefined {
  const id: unknown = (value as { readonly id?: unknown } | null)?.id;
  return typeof id === 'string' ? id : undefined;
}
