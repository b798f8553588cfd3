/**
 * `npm run check:package`, after publint, attw and knip: the tarball of the last build as consumers meet it. Needs no
 * network and no browser; `npm run check:browser` is the part that needs one.
 */
import { bundleTask } from './bundles.js';
import { contentsTasks } from './contents.js';
import { runningTasks } from './running.js';
import { sizeTask } from './sizes.js';
import { installTarball } from './tarball.js';
import { runTasks } from './task.js';
import { typeTasks } from './types.js';

const consumer = installTarball();
const passed = await runTasks([
  ...contentsTasks(consumer),
  ...runningTasks(consumer),
  bundleTask(consumer),
  sizeTask(consumer),
  ...typeTasks(consumer),
]);
process.exitCode = passed ? 0 : 1;
