/**
 * Follows a response body to its end, whatever kind of stream it is (LB-20, B30 to B33). All hooks are removed when the
 * body is over (LB-24); the callbacks may be called more than once, the lease takes the first.
 */

/** What became of the body. */
export interface BodyEnd {
  ended(): void;
  failed(): void;
  abandoned(): void;
}

/** The part of a Node stream that is used; readable, writable or both. */
interface NodeStreamLike {
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
  readonly destroyed?: boolean;
  readonly errored?: unknown;
  readonly readableEnded?: boolean;
  readonly writableFinished?: boolean;
}

interface ReadResult {
  readonly done?: boolean | undefined;
  readonly value?: unknown;
}

/** The part of a web `ReadableStream` that is used. */
interface WebStreamLike {
  getReader(): { read(): Promise<ReadResult>; cancel(reason?: unknown): Promise<void> };
}

interface WebStreamController {
  enqueue(chunk: unknown): void;
  close(): void;
  error(reason: unknown): void;
}

interface WebStreamSource {
  pull(controller: WebStreamController): Promise<void>;
  cancel(reason: unknown): Promise<void>;
}

type WebStreamConstructor = new (source: WebStreamSource) => unknown;

/** A body that is being followed. */
export interface FollowedBody<B> {
  /** What to relay: wrapped for web streams and async iterables, the body itself otherwise. */
  readonly body: B;
  /** Stops a wrapped body at its source, without waiting for the next chunk (B33). Never throws. */
  cancel(): void;
  /** Takes the hooks off a Node stream; the lease calls it when it ends some other way (LB-24). Never throws. */
  unhook(): void;
}

const nothing = (): void => {};

/** @throws TypeError for anything that is no stream */
export function followBody<B>(body: B, end: BodyEnd): FollowedBody<B> {
  if (body === undefined || body === null) {
    end.ended();
    return { body, cancel: nothing, unhook: nothing };
  }
  const stream = body as Partial<WebStreamLike & NodeStreamLike & AsyncIterable<unknown>>;
  if (typeof stream.getReader === 'function') return followWebStream(body as B & WebStreamLike, end);
  if (typeof stream.on === 'function' && typeof stream.off === 'function') {
    return { body, cancel: nothing, unhook: followNodeStream(body as B & NodeStreamLike, end) };
  }
  if (typeof stream[Symbol.asyncIterator] === 'function') {
    return followIterable(body as B & AsyncIterable<unknown>, end);
  }
  throw new TypeError('body: expected a web stream, a Node stream or an async iterable');
}

/**
 * The wrapper is made by the stream's own constructor, so it belongs to the same realm. It reads one chunk ahead, as
 * streams do by default: an empty body ends without a read and the last chunk needs no further pull (B30 c, e).
 */
function followWebStream<B>(body: B & WebStreamLike, end: BodyEnd): FollowedBody<B> {
  const reader = body.getReader();
  const Stream = (body as object).constructor as WebStreamConstructor;
  const wrapped = new Stream({
    async pull(controller) {
      let result: ReadResult;
      try {
        result = await reader.read();
      } catch (error) {
        end.failed();
        controller.error(error);
        return;
      }
      if (result.done) {
        end.ended();
        controller.close();
      } else {
        controller.enqueue(result.value);
      }
    },
    cancel(reason) {
      // Before the lease ends, which would cancel without the reason.
      const cancelled = reader.cancel(reason);
      end.abandoned();
      return cancelled;
    },
  }) as B;
  return { body: wrapped, cancel: () => void stop(() => reader.cancel()), unhook: nothing };
}

/** Stops a source, of whatever make. One that fails to stop has no one left to tell (LB-15). */
async function stop(source: () => unknown): Promise<void> {
  try {
    await source();
  } catch {}
}

/** @returns takes the hooks off */
function followNodeStream(stream: NodeStreamLike, end: BodyEnd): () => void {
  // Of a stream that can be read, such as a transform, what was read counts, not what was written to it.
  const isRead = stream.readableEnded !== undefined;
  const isOver = (): boolean => (isRead ? stream.readableEnded : stream.writableFinished) === true;
  const reportClosed = (): void => {
    if (isOver()) end.ended();
    else if (stream.errored) end.failed();
    else end.abandoned();
  };
  // Streams may be over before anybody could listen (B32).
  if (isOver() || stream.destroyed === true) {
    reportClosed();
    return nothing;
  }
  const unhook = (): void => {
    try {
      for (const [event, listener] of listeners) stream.off(event, listener);
    } catch {
      // A stream of the host's own that fails here keeps listeners that do nothing, and no count (LB-15).
    }
  };
  const settle = (report: () => void): void => {
    unhook();
    report();
  };
  const listeners: readonly (readonly [string, () => void])[] = [
    [isRead ? 'end' : 'finish', () => settle(end.ended)],
    // No `error` listener: it would swallow the host's errors. A stream that failed says so when it closes; a server's
    // response that closes without having finished lost its client (B31).
    ['close', () => settle(reportClosed)],
  ];
  for (const [event, listener] of listeners) stream.on(event, listener);
  return unhook;
}

function followIterable<B>(body: B & AsyncIterable<unknown>, end: BodyEnd): FollowedBody<B> {
  let running: AsyncIterator<unknown> | undefined;
  const wrapped: AsyncIterable<unknown> = {
    [Symbol.asyncIterator](): AsyncIterator<unknown> {
      const iterator = body[Symbol.asyncIterator]();
      running = iterator;
      return {
        async next() {
          try {
            const result = await iterator.next();
            if (result.done) end.ended();
            return result;
          } catch (error) {
            end.failed();
            throw error;
          }
        },
        async return(value) {
          end.abandoned();
          return (await iterator.return?.(value)) ?? { done: true, value };
        },
      };
    },
  };
  return { body: wrapped as B, cancel: () => void stop(() => running?.return?.()), unhook: nothing };
}
