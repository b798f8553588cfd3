/** Runs the conversations against an OpenAI-compatible base URL with the official client, and measures. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import type { Conversation, Turn } from './traffic.js';

type Message = OpenAI.ChatCompletionMessageParam;

/** What the clients saw. */
export interface Measurements {
  started: number;
  succeeded: number;
  aborted: number;
  readonly failures: string[];
  /** From sending a request to its first token, for every answer that was read to its end. */
  readonly timeToFirstTokenMs: number[];
}

/** Runs all conversations at once; resolves when the last one ended. `signal` breaks everything off. */
export async function runTraffic(
  baseUrl: string,
  conversations: readonly Conversation[],
  measured: Measurements,
  signal: AbortSignal,
): Promise<void> {
  // One listener for each conversation that is thinking or waiting.
  setMaxListeners(conversations.length, signal);
  // Without retries every failure of the gateway is seen and counted.
  const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: 'unused', maxRetries: 0 });
  await Promise.all(conversations.map((conversation) => runConversation(client, conversation, measured, signal)));
}

export function newMeasurements(): Measurements {
  return { started: 0, succeeded: 0, aborted: 0, failures: [], timeToFirstTokenMs: [] };
}

async function runConversation(
  client: OpenAI,
  { system, turns }: Conversation,
  measured: Measurements,
  signal: AbortSignal,
): Promise<void> {
  const messages: Message[] = [{ role: 'system', content: system }];
  for (const turn of turns) {
    await sleep(turn.thinkMs, undefined, { signal });
    messages.push({ role: 'user', content: turn.user });
    measured.started++;
    try {
      messages.push({ role: 'assistant', content: await ask(client, messages, turn, measured, signal) });
    } catch (error) {
      signal.throwIfAborted();
      measured.failures.push(String(error));
      return;
    }
  }
}

/** Streams one answer to its end, or until the user leaves. */
async function ask(
  client: OpenAI,
  messages: Message[],
  turn: Turn,
  measured: Measurements,
  signal: AbortSignal,
): Promise<string> {
  const { abort } = turn;
  const leave = new AbortController();
  const leaveNow = () => leave.abort();
  const left = new Promise<undefined>((resolve) => {
    leave.signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  signal.addEventListener('abort', leaveNow, { once: true });
  const timer = abort !== undefined && 'afterMs' in abort ? setTimeout(leaveNow, abort.afterMs) : undefined;
  try {
    // An aborted fetch may leave the read of its body pending for ever: whoever leaves does not wait for it.
    const answer = await Promise.race([readAnswer(client, messages, turn, leave), left]);
    signal.throwIfAborted();
    if (answer === undefined) {
      measured.aborted++;
      // How much had arrived depends on timing; the next turn's prompt must not.
      return '(stopped)';
    }
    measured.succeeded++;
    measured.timeToFirstTokenMs.push(answer.timeToFirstTokenMs);
    return answer.text;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leaveNow);
  }
}

async function readAnswer(
  client: OpenAI,
  messages: Message[],
  { maxTokens, abort }: Turn,
  leave: AbortController,
): Promise<{ readonly text: string; readonly timeToFirstTokenMs: number }> {
  const chunksToRead = abort !== undefined && 'afterChunks' in abort ? abort.afterChunks : Number.POSITIVE_INFINITY;
  const sentAt = performance.now();
  let timeToFirstTokenMs = Number.NaN;
  let text = '';
  let chunks = 0;
  let finished = false;
  const stream = await client.chat.completions.create(
    { model: 'demo', messages, max_tokens: maxTokens, stream: true },
    { signal: leave.signal },
  );
  for await (const { choices } of stream) {
    const word = choices[0]?.delta.content ?? '';
    finished ||= choices[0]?.finish_reason === 'length';
    if (word === '') continue;
    if (chunks++ === 0) timeToFirstTokenMs = performance.now() - sentAt;
    text += word;
    if (chunks >= chunksToRead) leave.abort();
  }
  if (!finished) throw new Error(`the answer broke off after ${chunks} chunks`);
  return { text, timeToFirstTokenMs };
}
