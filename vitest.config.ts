import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string): string => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    // Tests and examples import the package by its public names; the names lead to the source.
    alias: [
      { find: /^kvroute$/, replacement: source('index.ts') },
      { find: /^kvroute\/(engines|metrics|testing)$/, replacement: source('$1/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    // The totals are read by `.ci/run`.
    reporters: ['default', ['json', { outputFile: 'reports/tests.json' }]],
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      thresholds: { lines: 95, branches: 95 },
    },
  },
});
