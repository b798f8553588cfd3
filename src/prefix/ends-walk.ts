/** Reading a prefix tree out while it changes (LB-33): its ends with their uses describe it completely (see `Ends`). */
import type { RadixCore } from './radix-core.js';

/** Ends remembered, so that a walk finds its place again when some of them have moved. */
const endsRemembered = 256;

/**
 * Walks the ends of living tenants, oldest first, while the tree changes. An end that moves while it waits is met later.
 * Each step grows with what was recorded since the last one, so that the walk overtakes a busy tree.
 */
export class EndsWalk<Label> {
  readonly #core: RadixCore<Label>;
  /** The last of the ends visited. */
  #visited: { readonly end: number; readonly use: number }[] = [];
  /** Recordings of the tree at the last step. */
  #recordings: number;
  /** Set once the newest end was reached: what comes after is news, and a busy tree would never run out of it. */
  #isOver = false;

  constructor(core: RadixCore<Label>) {
    this.#core = core;
    this.#recordings = core.recordings;
  }

  /** The next ends: one, and one more for each recording since the last step. None when the walk is over. */
  next(): number[] {
    const { holdings, tenants, recordings } = this.#core;
    const wanted = 1 + (recordings - this.#recordings);
    this.#recordings = recordings;
    const found: number[] = [];
    let end = this.#isOver ? 0 : this.#resume();
    if (this.#visited.length >= 2 * endsRemembered) this.#visited = this.#visited.slice(-endsRemembered);
    for (; end !== 0 && found.length < wanted; end = this.#core.ends.newer(end)) {
      this.#visited.push({ end, use: holdings.use(end) });
      if (tenants.workerOf(holdings.tenant(end)) !== undefined) found.push(end);
    }
    this.#isOver = end === 0;
    return found;
  }

  /** The first end not visited. Mostly the one after the last visited; when that moved, after an earlier one. */
  #resume(): number {
    const { ends, holdings } = this.#core;
    for (let i = this.#visited.length - 1; i >= 0; i--) {
      const { end, use } = this.#visited[i] as { end: number; use: number };
      if (ends.has(end) && holdings.use(end) === use) return this.#after(ends.newer(end));
    }
    return this.#after(ends.oldest());
  }

  /** The first end from `end` on whose use is later than that of everything visited. */
  #after(end: number): number {
    const { ends, holdings } = this.#core;
    const use = this.#visited[this.#visited.length - 1]?.use ?? 0;
    let next = end;
    while (next !== 0 && holdings.use(next) < use) next = ends.newer(next);
    return next;
  }
}
