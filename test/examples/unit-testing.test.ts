/** The example is run as its README says, from the root of the repository. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { random } from 'kvroute';
import { policyContract } from 'kvroute/testing';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));

it('examples/unit-testing: every test passes, the contract of its own policy included', {
  timeout: 120_000,
}, async () => {
  const args = [vitest, 'run', '--root', 'examples/unit-testing', '--reporter', 'json'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
  const report = JSON.parse(stdout.slice(stdout.indexOf('{'))) as {
    success: boolean;
    numTotalTests: number;
    numPassedTests: number;
    testResults: { assertionResults: { title: string }[] }[];
  };
  const contract = policyContract((runtime) => random(runtime), { reachesAll: true });
  const total = 10 + contract.length;
  expect(report).toMatchObject({ success: true, numTotalTests: total, numPassedTests: total });
  const titles = report.testResults.flatMap(({ assertionResults }) => assertionResults.map(({ title }) => title));
  expect(titles).toContain('five lines pin down a decision');
  for (const { name } of contract) expect(titles).toContain(name);
});
