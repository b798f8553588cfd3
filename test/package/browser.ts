/**
 * `npm run check:browser`: the bundles in headless Chromium, each under two content security policies: WebAssembly allowed
 * and everything made from strings refused, and WebAssembly refused as well. The pages come from a server on loopback and
 * may ask nobody else. What they decide must be what the same bundle decides in Node (LB-3).
 *
 * Needs Debian's `chromium`, or the path of a Chromium in the variable `CHROMIUM`. Without one nothing is checked, and
 * the exit code says so.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, extname, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { type Bundle, faultOf, makeBundles, type PageResult, runInNode } from './bundles.js';
import { type Consumer, installTarball } from './tarball.js';
import { runTasks, type Task } from './task.js';

const policies = [
  { name: 'WebAssembly allowed', scripts: "'self' 'wasm-unsafe-eval'", hash: 'built in' },
  { name: 'WebAssembly refused', scripts: "'self'", hash: 'of the host' },
] as const;

const contentTypes: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript' };

const executable = findChromium();
if (executable === undefined) {
  console.error('not run: no Chromium. Install one (apt-get install chromium) or set CHROMIUM to its path.');
  process.exit(1);
}
const consumer = installTarball();
const bundles = await makeBundles(consumer);
const browser = await chromium.launch({
  executablePath: executable,
  // Root has no sandbox in a container.
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});
console.log(`Chromium ${browser.version()}`);
const passed = await runTasks(
  bundles.flatMap((bundle) => policies.map((policy) => pageTask(browser, bundle, policy, consumer))),
);
await browser.close();
process.exitCode = passed ? 0 : 1;

function pageTask(browser: Browser, bundle: Bundle, policy: (typeof policies)[number], consumer: Consumer): Task {
  return {
    name: `browser: ${bundle.bundler}, ${policy.name}`,
    run: async () => {
      const server = await serve(bundle.directory, `default-src 'self'; img-src data:; script-src ${policy.scripts}`);
      try {
        const { port } = server.address() as AddressInfo;
        const result = await resultOf(browser, `http://127.0.0.1:${port}`);
        const fault = faultOf(result, policy.hash);
        if (fault !== undefined) throw new Error(fault);
        const inNode = await runInNode(bundle, consumer);
        if (result.portable !== inNode.portable) throw new Error('the browser decides otherwise than Node');
        if (policy.hash === 'built in' && JSON.stringify(result) !== JSON.stringify(inNode)) {
          throw new Error(`the browser decides otherwise than Node: ${JSON.stringify(result)}`);
        }
        return undefined;
      } finally {
        server.closeAllConnections();
        server.close();
      }
    },
  };
}

/** Opens the page and waits for what it decided. Errors and requests to anybody else are faults. */
async function resultOf(browser: Browser, origin: string): Promise<PageResult> {
  const page = await browser.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) faults.push(`asked ${request.url()}`);
  });
  await page.goto(origin);
  await page.waitForFunction('globalThis.kvrouteResult !== undefined', undefined, { timeout: 30_000 });
  const text = await page.evaluate<string>('globalThis.kvrouteResult');
  await page.close();
  if (faults.length > 0) throw new Error(faults.join('\n'));
  return JSON.parse(text);
}

function serve(directory: string, contentSecurityPolicy: string): Promise<Server> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://127.0.0.1');
    const path = join(directory, pathname === '/' ? 'index.html' : pathname);
    if (!path.startsWith(directory) || !existsSync(path)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      'content-type': contentTypes[extname(path)] ?? 'application/octet-stream',
      'content-security-policy': contentSecurityPolicy,
    });
    response.end(readFileSync(path));
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

function findChromium(): string | undefined {
  const given = process.env.CHROMIUM;
  if (given !== undefined) return existsSync(given) ? given : undefined;
  const directories = (process.env.PATH ?? '').split(delimiter);
  return ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']
    .flatMap((name) => directories.map((directory) => join(directory, name)))
    .find((path) => existsSync(path));
}
