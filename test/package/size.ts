/** `npm run check:size`: the sizes alone. */
import { sizeTask } from './sizes.js';
import { installTarball } from './tarball.js';
import { runTasks } from './task.js';

process.exitCode = (await runTasks([sizeTask(installTarball())])) ? 0 : 1;
