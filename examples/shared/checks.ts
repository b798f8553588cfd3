/** The short report of an example: what was tried, whether it came out right, and the exit code. */

export interface Checks {
  /** Prints a line; a wrong one makes the example fail. */
  check(isRight: boolean, line: string): void;
  /** 0 when every line was right. */
  readonly exitCode: number;
}

export function startChecks(print: (line: string) => void = console.log): Checks {
  let wrong = 0;
  return {
    check(isRight, line) {
      if (!isRight) wrong++;
      print(`${isRight ? 'ok    ' : 'WRONG '} ${line}`);
    },
    get exitCode() {
      return wrong === 0 ? 0 : 1;
    },
  };
}
