/**
 * The router's emitter (LB-50): events come after the state they tell of is committed, and are free when nobody listens,
 * since callers ask `heard` before they build a payload. A listener that throws never changes a result (LB-15); its error
 * is passed on as a `warning`. The emitter is a detail: none of its types are public (LB-61).
 */
import { EventEmitter } from 'eventemitter3';
import { refuse } from './errors.js';
import type { RouterEventName, RouterEvents, RouterListener } from './events.js';

export class EventHub {
  readonly #emitter = new EventEmitter<RouterEventName>();
  // The wrapper each listener was registered with, so that `off` finds it again.
  readonly #wrappers = new Map<RouterEventName, Map<unknown, (payload: unknown) => void>>();
  #holds = 0;
  #held: [RouterEventName, unknown][] = [];

  /** Whether anybody listens: ask before building a payload. */
  heard(event: RouterEventName): boolean {
    return this.#emitter.listenerCount(event) > 0;
  }

  emit<E extends RouterEventName>(event: E, payload: RouterEvents[E]): void {
    if (this.#holds > 0) this.#held.push([event, payload]);
    else this.#emitter.emit(event, payload);
  }

  /** From now on events wait for `release`: a commit tells what it caused when all of it is done (LB-50). Holds nest. */
  hold(): void {
    this.#holds += 1;
  }

  /** Tells what waited, in order. A listener may call the router again: its events come at once, these go on after. */
  release(): void {
    this.#holds -= 1;
    if (this.#holds > 0 || this.#held.length === 0) return;
    const held = this.#held;
    this.#held = [];
    for (const [event, payload] of held) this.#emitter.emit(event, payload);
  }

  /** Makes a change of several steps and tells of it when it is whole: no listener sees, or acts upon, half of it. */
  afterwards<T>(change: () => T): T {
    this.hold();
    try {
      return change();
    } finally {
      this.release();
    }
  }

  /** Subscribes and returns the function that unsubscribes. The same listener counts once an event. */
  on<E extends RouterEventName>(event: E, listener: RouterListener<E>): () => void {
    return this.#subscribe(event, listener, false);
  }

  once<E extends RouterEventName>(event: E, listener: RouterListener<E>): () => void {
    return this.#subscribe(event, listener, true);
  }

  off<E extends RouterEventName>(event: E, listener: RouterListener<E>): void {
    const wrapper = this.#wrappers.get(event)?.get(listener);
    if (wrapper === undefined) return;
    this.#wrappers.get(event)?.delete(listener);
    this.#emitter.off(event, wrapper);
  }

  #subscribe<E extends RouterEventName>(event: E, listener: RouterListener<E>, once: boolean): () => void {
    if (typeof event !== 'string') throw refuse('event', 'the name of an event', event);
    if (typeof listener !== 'function') throw refuse('listener', 'a function', listener);
    this.off(event, listener);
    const wrapper = (payload: unknown): void => {
      // Unsubscribed by a listener that was called before it: the emitter still has it on its round.
      if (this.#wrappers.get(event)?.get(listener) !== wrapper) return;
      // Before the call: a once-listener that emits the event again must not run twice (B92).
      if (once) this.off(event, listener);
      try {
        const returned: unknown = listener(payload as RouterEvents[E]);
        // An async listener fails later, and must not become an unhandled rejection of the host.
        if (returned instanceof Promise) returned.catch((error: unknown) => this.#listenerFailed(event, error));
      } catch (error) {
        this.#listenerFailed(event, error);
      }
    };
    const wrappers = this.#wrappers.get(event) ?? new Map();
    this.#wrappers.set(event, wrappers.set(listener, wrapper));
    this.#emitter.on(event, wrapper);
    return () => {
      if (this.#wrappers.get(event)?.get(listener) === wrapper) this.off(event, listener);
    };
  }

  #listenerFailed(event: RouterEventName, error: unknown): void {
    // A warning listener that throws would warn about itself for ever.
    if (event === 'warning') return;
    this.emit('warning', { code: 'listenerFailed', message: `a listener of ${event} threw`, fields: [], error });
  }
}
