/**
 * The tests that `npm run mutation` runs against every mutant: those of the parts that are mutated, so that a mutant costs
 * little. What only a whole gateway or a long run would notice counts as unnoticed.
 */
import { fileURLToPath } from 'node:url';
import { defineConfig, mergeConfig } from 'vitest/config';
import base from '../../vitest.config.js';

export default mergeConfig(
  { ...base, test: { ...base.test, include: undefined, reporters: [] } },
  defineConfig({
    root: fileURLToPath(new URL('../..', import.meta.url)),
    test: {
      include: [
        'test/{load,policies,sticky,workers,prefix,hashing,router}/**/*.test.ts',
        'test/contract/contract.test.ts',
        'test/conformance/conformance.test.ts',
      ],
      exclude: ['test/prefix/**/*data*.test.ts'],
    },
  }),
);
