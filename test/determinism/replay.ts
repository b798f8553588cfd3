/** A recorded sequence of calls, and what a router decides when it is replayed. */
import { createRouter, type RouterOptions, type SnapshotPiece } from 'kvroute';
import { manualClock, recordDecisions } from 'kvroute/testing';
import { optionsOf, type Subject } from '../soak/subjects.js';
import { Player } from '../support/player.js';
import { type Call, Traffic } from '../support/traffic.js';

/** One router and all calls that are made on it: plain data that can be sent to another process. */
export interface Recording {
  readonly name: string;
  readonly options: RouterOptions;
  readonly calls: readonly Call[];
}

/** What is called instead of a recorded call. */
export type Change = (call: Call, position: number) => readonly Call[];

export function recordingOf(subject: Subject, seed: number, steps: number): Recording {
  const traffic = new Traffic({ ...subject.traffic, seed, workers: 12, stepMs: 600, turmoil: 8 });
  const calls = [...traffic.start()];
  for (let step = 0; step < steps; step++) calls.push(...traffic.step());
  return { name: subject.name, options: { ...optionsOf(subject, seed), maxIdleMs: 20_000 }, calls };
}

/** Every decision and every lease as text, and what was learned in the end. */
export async function replay({ options, calls }: Recording, change: Change = (call) => [call]): Promise<string> {
  const clock = manualClock(5000);
  const router = await createRouter({ ...options, clock: clock.clock });
  const decisions = recordDecisions(router);
  const player = new Player(router, clock);
  for (const [position, call] of calls.entries()) for (const made of change(call, position)) player.play(made);
  player.endAll();
  return `${decisions.text}${router.snapshot().pieces.map(learnedText).join('')}`;
}

/** Heads are listed in the order of their places in memory, which means nothing. */
function learnedText({ model, leg, piece }: SnapshotPiece): string {
  if (piece.kind !== 'hash') return `${JSON.stringify([model, leg, piece])}\n`;
  const { workers, heads } = piece.data as { readonly workers: readonly string[]; readonly heads: readonly number[] };
  const lines: string[] = [];
  for (let at = 0; at < heads.length; ) {
    const [low, high, holders = 0] = heads.slice(at, at + 3);
    const held: (string | number | undefined)[] = [];
    for (at += 3; held.length < 3 * holders; at += 3) held.push(workers[heads[at] ?? -1], heads[at + 1], heads[at + 2]);
    lines.push(`${model} ${leg} head ${low} ${high} ${held.join(' ')}\n`);
  }
  return lines.sort().join('');
}
