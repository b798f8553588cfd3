/**
 * Follows the KV-event stream of every prefill worker and applies it to the router, so that it knows which prompts they
 * really hold (CA-90 to CA-93). The engines here send lines of JSON over HTTP, `[sequence, batch]`; over ZeroMQ, with
 * MessagePack, only the reading of a line would differ.
 *
 * After a gap the stream is asked for what is missing; what cannot be had any more is given up with a `reset`. A stream
 * that ends is taken up where it ended, after a wait that doubles from 100 ms to 30 s for as long as nothing comes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { KvEventPort, Router, Worker, WorkerId } from 'kvroute';
import { decodeKvEventBatch } from 'kvroute/engines';
import { type Dispatcher, request } from 'undici';

const shortestWaitMs = 100;
const longestWaitMs = 30_000;

/** Subscribes to the prefill workers that are registered now or later. @returns a function that ends it */
export function followKvEvents(router: Router, dispatcher: Dispatcher): () => void {
  const subscriptions = new Map<WorkerId, AbortController>();
  const start = (worker: Worker) => {
    if (worker.kind !== 'prefill') return;
    const stop = new AbortController();
    subscriptions.set(worker.id, stop);
    void subscribe(router.kvEvents, worker, dispatcher, stop.signal);
  };
  for (const worker of router.workers()) start(worker);
  const ignoreAdded = router.on('workerAdded', ({ worker }) => start(worker));
  const ignoreRemoved = router.on('workerRemoved', ({ worker }) => {
    subscriptions.get(worker.id)?.abort();
    subscriptions.delete(worker.id);
  });
  return () => {
    ignoreAdded();
    ignoreRemoved();
    for (const stop of subscriptions.values()) stop.abort();
  };
}

/** Where a stream goes on: the number of the batch wanted next; undefined = whatever comes next. */
type Position = string | undefined;

async function subscribe(
  kvEvents: KvEventPort,
  worker: Worker,
  dispatcher: Dispatcher,
  signal: AbortSignal,
): Promise<void> {
  // First of all everything the engine still has: a gateway that starts late should know what is cached already.
  let position: Position = '0';
  let waitMs = shortestWaitMs;
  while (!signal.aborted) {
    let hasApplied = false;
    let isGap = false;
    try {
      const from = position === undefined ? '' : `?from=${position}`;
      const { statusCode, body } = await request(`${worker.url}/kv_events${from}`, {
        dispatcher,
        signal,
        // An idle engine has nothing to tell.
        bodyTimeout: 0,
      });
      if (statusCode === 200) {
        for await (const line of linesOf(body)) {
          ({ position, isGap } = take(kvEvents, worker.id, line));
          if (isGap) break;
          hasApplied = true;
        }
      } else {
        await body.dump();
        if ([404, 405, 501].includes(statusCode)) {
          // This engine tells no events. What it once told is worth nothing without them.
          kvEvents.reset(worker.id);
          return;
        }
        if (statusCode === 410 && position !== undefined) {
          kvEvents.reset(worker.id);
          position = undefined;
          continue;
        }
      }
    } catch {
      // Broken off or not reached: the same as an end.
    }
    if (hasApplied) waitMs = shortestWaitMs;
    // Whoever replays the same gap again is asked less and less often.
    if (!(isGap && hasApplied)) {
      await sleep(waitMs, undefined, { signal }).catch(() => {});
      waitMs = Math.min(2 * waitMs, longestWaitMs);
    }
  }
}

function take(kvEvents: KvEventPort, worker: WorkerId, line: string): { position: Position; isGap: boolean } {
  const [sequence, batch] = parseLine(line);
  const result = kvEvents.applyBatch(worker, { sequence, events: decodeKvEventBatch(batch).events });
  if (result.result === 'gap') return { position: String(result.expected), isGap: true };
  if (result.result !== 'rejected') return { position: String(sequence + 1), isGap: false };
  // It cannot be read, and could not be a second time: what it told is lost.
  kvEvents.reset(worker);
  return { position: undefined, isGap: false };
}

function parseLine(line: string): [sequence: number, batch: unknown] {
  try {
    const [sequence, batch] = JSON.parse(line);
    return [sequence, batch];
  } catch {
    return [Number.NaN, undefined];
  }
}

async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
