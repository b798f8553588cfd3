/** The parts of the web platform's types that the API accepts, declared here so that `src` needs no DOM or Node types. */

/** What is read of an `AbortSignal`. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  /** What `route` rejects with after an abort. */
  readonly reason?: unknown;
  /** Called when a lease or a `route` begins to listen. */
  addEventListener(type: 'abort', listener: () => void): void;
  /** Called when it ends, whichever way (LB-24). */
  removeEventListener(type: 'abort', listener: () => void): void;
}

declare global {
  // TypeScript 5.0 with lib es2022 does not know it; engines from Node 20 on do.
  interface SymbolConstructor {
    readonly dispose: unique symbol;
  }
}
