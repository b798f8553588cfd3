/**
 * A simulated engine as a process of its own, started with `fork`: takes its options as JSON, sends its URL to the
 * parent, and ends when the parent does, however the parent ended. Any message asks for a fresh engine: the old one is
 * closed and a new one, with an empty cache and on another port, takes its place.
 */
import type { EngineOptions } from './engine.js';
import { startEngine } from './server.js';

process.on('disconnect', () => process.exit(0));
// Ctrl-C reaches the whole process group; the parent decides when its engines end.
process.on('SIGINT', () => {});

const options = JSON.parse(process.argv[2] ?? '{}') as EngineOptions;
let engine = await startEngine(options);
process.on('message', async () => {
  await engine.close();
  engine = await startEngine(options);
  process.send?.({ url: engine.url });
});
if (!process.connected) process.exit(0);
process.send?.({ url: engine.url });
