/**
 * The demo's traffic, the same for every policy: a seed decides every word, length, pause and abort. A few products
 * share long system prompts; each conversation starts with one of them and grows turn by turn.
 */

export interface Turn {
  readonly user: string;
  readonly maxTokens: number;
  /** Time the user takes before this turn. */
  readonly thinkMs: number;
  /** The user leaves: soon after asking, or in the middle of the answer. */
  readonly abort?: { readonly afterMs: number } | { readonly afterChunks: number };
}

export interface Conversation {
  readonly system: string;
  readonly turns: readonly Turn[];
}

export interface TrafficOptions {
  readonly seed: number;
  readonly products: number;
  readonly conversations: number;
  /** Conversations begin one after the other, spread over this time. */
  readonly rampMs: number;
}

export function makeTraffic(options: TrafficOptions): Conversation[] {
  const random = randomFrom(options.seed);
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const prose = (tokens: number) => {
    let text = '';
    // The simulated engine counts four characters as a token.
    while (text.length < tokens * 4) text += `${vocabulary[Math.floor(random() * vocabulary.length)]} `;
    return text;
  };

  const systems = Array.from({ length: options.products }, (_, i) => `Product ${i}. ${prose(between(600, 2_400))}`);
  return Array.from({ length: options.conversations }, (_, i) => ({
    // Every product once, then at random: some products are busier than others.
    system: systems[i < systems.length ? i : Math.floor(random() ** 1.5 * systems.length)] as string,
    turns: Array.from({ length: between(3, 5) }, (_, turn) => ({
      user: prose(between(30, 160)),
      maxTokens: between(10, 24),
      thinkMs: turn === 0 ? Math.round((i * options.rampMs) / options.conversations) : between(80, 300),
      // A handful of users leave in their third turn, most likely while the engine is still at the prompt, or in mid-answer.
      ...(i % 6 === 4 && turn === 2 ? { abort: i % 12 === 4 ? { afterMs: 40 } : { afterChunks: 4 } } : {}),
    })),
  }));
}

const vocabulary = (
  'order invoice account refund delivery address customer agent policy answer question window detail number date ' +
  'amount status never always please return check confirm explain offer before after within without between every ' +
  'request ticket product model version warranty payment method country language short polite exact'
).split(' ');

/** A small seeded generator (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
