/**
 * LB-3: same options, seed, clock readings and calls, same decisions, byte for byte. The recorded calls hold churn, exact
 * ties, softmax draws, eviction and expiry for all ten policies; LB-5: when maintenance ran changes nothing.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { seededRandom } from 'kvroute/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { subjects } from '../soak/subjects.js';
import type { Call } from '../support/traffic.js';
import { type Change, type Recording, recordingOf, replay } from './replay.js';

const steps = 300;
const recordings = subjects.map((subject, i) => recordingOf(subject, i + 1, steps));
const texts = new Map<string, string>();

beforeAll(async () => {
  for (const recording of recordings) texts.set(recording.name, await replay(recording));
}, 60_000);

const textOf = ({ name }: Recording): string => texts.get(name) as string;

/** The first line in which two replays differ, with its neighbours: a readable failure. */
function difference(expected: string, text: string): string | undefined {
  const [before, after] = [expected.split('\n'), text.split('\n')];
  const at = before.findIndex((line, i) => line !== after[i]);
  if (at < 0 && before.length === after.length) return undefined;
  const shown = (lines: readonly string[]): string =>
    lines
      .slice(Math.max(0, at - 2), at + 1)
      .join('\n')
      .slice(0, 600);
  return `line ${at} of ${before.length}:\n${shown(before)}\n—— but ——\n${shown(after)}`;
}

async function inSecondProcess(sent: readonly Recording[]): Promise<readonly string[]> {
  const child = fork(fileURLToPath(new URL('replay-process.ts', import.meta.url)), {
    execArgv: ['--import', 'tsx'],
    serialization: 'advanced',
  });
  return new Promise((resolve, reject) => {
    child.once('message', (answer) => resolve(answer as readonly string[]));
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the second process ended with ${code}`)));
    child.send(sent as never);
  });
}

/** Equal data in other objects: nothing is shared with the recording, and fields come in another order. */
function rebuilt(call: Call): Call {
  const copy = structuredClone(call);
  if (copy.do === 'register') {
    const reversed = Object.fromEntries(Object.entries(copy.spec).reverse());
    return { ...copy, spec: { ...reversed, id: `${copy.spec.id} `.trimEnd() } };
  }
  return copy;
}

/** Calls `maintain()` after some calls, and in the middle of some pauses. */
const maintained =
  (isChosen: () => boolean): Change =>
  (call) => {
    if (!isChosen()) return [call];
    if (call.do !== 'clock') return [call, { do: 'maintain' }];
    const first = Math.floor(call.byMs / 3);
    return [{ do: 'clock', byMs: first }, { do: 'maintain' }, { do: 'clock', byMs: call.byMs - first }];
  };

describe('determinism', () => {
  it('the recordings hold what they are for', () => {
    const all = [...texts.values()].join('');
    const has = (part: string): boolean => all.includes(part);
    for (const branch of ['tree_match', 'spill', 'event_hit', 'event_miss', 'occupied_hit', 'vacant', 'ring_hit']) {
      expect(has(` ${branch} `), branch).toBe(true);
    }
    for (const end of ['by=expired', 'by=aborted', 'by=ended status=503']) expect(has(end), end).toBe(true);
    expect(has('refuse ')).toBe(true);
  });

  it.each(recordings)('LB-3: $name decides the same when it is replayed', async (recording) => {
    expect(difference(textOf(recording), await replay(recording))).toBeUndefined();
  });

  it.each(recordings)('LB-3: $name does not depend on the identity of objects', async (recording) => {
    const text = await replay(recording, (call) => [rebuilt(call)]);
    expect(difference(textOf(recording), text)).toBeUndefined();
  });

  it.each(recordings)('LB-5: $name does not depend on when maintenance ran', async (recording) => {
    // A clock that steps back is read as time standing still, so how often it is read would count: it only goes forward.
    const calls = recording.calls.filter((call) => call.do !== 'maintain' && !(call.do === 'clock' && call.byMs < 0));
    const steady = { ...recording, calls };
    const never = await replay(steady);
    expect(
      difference(
        never,
        await replay(
          steady,
          maintained(() => true),
        ),
      ),
    ).toBeUndefined();
    const random = seededRandom(7);
    expect(
      difference(
        never,
        await replay(
          steady,
          maintained(() => random() < 0.05),
        ),
      ),
    ).toBeUndefined();
  });

  it('LB-3: a second process decides the same', async () => {
    const answers = await inSecondProcess(recordings);
    for (const [i, recording] of recordings.entries()) {
      expect(difference(textOf(recording), answers[i] ?? ''), recording.name).toBeUndefined();
    }
  });
});
