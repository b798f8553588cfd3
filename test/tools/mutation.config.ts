/**
 * The tests that `npm run mutation` runs against every mutant: those of the parts that are mutated and the models beside
 * them. What only a decision table, a whole gateway or a long run would notice counts as unnoticed.
 *
 * `KVROUTE_MUTATION_TESTS` names the folders of tests instead: for the trees, which every router test passes through, those
 * of `prefix,model` alone.
 *
 * What makes a mutant cheap: tests of full size are left out, and the models run a few hundred operations. The test files
 * share one module graph: nothing in the package has state outside its objects. The short files run first, since the first
 * failure ends the run. And a property that fails is not shrunk.
 */
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig, mergeConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import base from '../../vitest.config.js';

const folders = process.env.KVROUTE_MUTATION_TESTS ?? 'load,policies,sticky,workers,prefix,hashing,router,model';

/** By size: a short file tests one thing. */
class ShortFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const size = ({ moduleId }: TestSpecification): number => statSync(moduleId).size;
    return files.toSorted((a, b) => size(a) - size(b));
  }
}

export default mergeConfig(
  { ...base, test: { ...base.test, include: undefined, reporters: [] } },
  defineConfig({
    root: fileURLToPath(new URL('../..', import.meta.url)),
    test: {
      isolate: false,
      sequence: { sequencer: ShortFirst },
      env: { KVROUTE_NO_SHRINK: '1', KVROUTE_MODEL_OPS: '500' },
      testTimeout: 120_000,
      include: folders.split(',').map((folder) => `test/${folder}/**/*.test.ts`),
      exclude: ['test/prefix/**/*{data,fleets,full-size}*.test.ts'],
    },
  }),
);
