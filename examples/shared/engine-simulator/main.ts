/**
 * A simulated engine as a process of its own, started with `fork`: takes its options as JSON, sends its URL to the
 * parent, and ends when the parent does, however the parent ended.
 */
import type { EngineOptions } from './engine.js';
import { startEngine } from './server.js';

process.on('disconnect', () => process.exit(0));
// Ctrl-C reaches the whole process group; the parent decides when its engines end.
process.on('SIGINT', () => {});

const server = await startEngine(JSON.parse(process.argv[2] ?? '{}') as EngineOptions);
if (!process.connected) process.exit(0);
process.send?.({ url: server.url });
