/** Inside this repository the package's name leads to its source; a project of your own needs no such file. */
import { defineConfig } from 'vitest/config';
import repository from '../../vitest.config.ts';

export default defineConfig({ resolve: repository.resolve ?? {}, cacheDir: '../../node_modules/.vite' });
